package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/panics"
	"parley/store"
)

const (
	lateAfter      = time.Minute            // a run that starts later than this counts as missed
	missedRunGap   = 500 * time.Millisecond // between the starts of two missed runs (P13)
	retryDelay     = 30 * time.Second       // after the store or the chat returned an error
	maxConcurrency = 16                     // jobs worked on at once, so that they share the store's commits
)

// jobState is what the loop keeps in memory about a job, so that it need not
// read the job's record.
type jobState struct {
	revision  uint64
	owner     chat.Person // the job counts towards this person's limit
	wakeAt    time.Time   // when the job needs attention; zero: never
	busy      bool        // a goroutine is working on the job
	damaged   bool        // the record cannot be decoded
	delivered uint64      // number of the last run that this process delivered
}

// Run runs jobs when they are due until ctx ends, and returns when every
// goroutine it started has returned. It fails only if the jobs cannot be read at
// the start.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.workers.Wait()
	if err := s.start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	for last := s.now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.nudge:
		case <-time.After(s.startDueJobs(ctx)):
		}
		now := s.now()
		if now.Before(last) {
			s.forgetRevisions()
			if err := s.readChangedJobs(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("jobs not read", "err", err)
			}
		}
		last = now
	}
}

// start adds the system jobs and reads all records. Whichever of Run, Add, Fire
// and Jobs is called first does it.
func (s *Scheduler) start(ctx context.Context) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.started {
		return nil
	}
	err := errors.Join(s.addSystemJobs(ctx), s.readChangedJobs(ctx))
	s.started = err == nil
	return err
}

// readChangedJobs reads the records whose revision differs from the one in memory.
func (s *Scheduler) readChangedJobs(ctx context.Context) error {
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("look for jobs: %w", err)
		}
		j, revision, err := s.load(ctx, id)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		s.mu.Lock()
		state := s.state(id)
		switch {
		case err != nil:
			s.noteError(id, state, err)
		case revision != state.revision:
			s.updateState(state, revision, j)
		}
		s.mu.Unlock()
	}
	return nil
}

// forgetRevisions makes the next readChangedJobs compute every wake-up time
// again. It is called when the wall clock was set back.
func (s *Scheduler) forgetRevisions() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.nextMissedRun = time.Time{}
	for _, state := range s.states {
		state.revision = 0
	}
}

// noteError notes that working on a job failed. The job is tried again after
// retryDelay, unless its record is damaged: then it is left alone (P21). The
// caller holds mu.
func (s *Scheduler) noteError(id string, state *jobState, err error) {
	if errors.Is(err, store.ErrNotFound) {
		delete(s.states, id)
		return
	}
	if !errors.Is(err, store.ErrDamaged) {
		s.Log.Warn("job not run", "job", id, "err", err, panics.Stack(err))
		state.delivered = 0
		state.wakeAt = s.now().Add(retryDelay)
		return
	}
	if !state.damaged {
		s.Log.Warn("damaged job ignored", "job", id, "err", err)
	}
	state.damaged = true
	state.wakeAt = time.Time{}
}

// state returns the state of a job, and adds it if the job is not known yet. The
// caller holds mu.
func (s *Scheduler) state(id string) *jobState {
	state := s.states[id]
	if state == nil {
		state = &jobState{}
		s.states[id] = state
	}
	return state
}

// updateState sets state to what the record j says, unless a later revision is
// known. The caller holds mu.
func (s *Scheduler) updateState(state *jobState, revision uint64, j Job) {
	if revision < state.revision {
		return
	}
	state.revision = revision
	state.damaged = false
	state.wakeAt = j.Next
	if !j.System {
		state.owner = j.Whose()
	}
	now := s.now()
	r := j.openRun()
	p, err := s.plan(j.Schedule, j.Created)
	isStale := err == nil && p.isStale(j.Next, now)
	mustDeliver := r != nil && (r.Outcome == Waiting || !j.System && r.N != state.delivered)
	switch {
	case j.isOver(), isStale, mustDeliver:
		state.wakeAt = now
	case r != nil && (j.Next.IsZero() || j.Next.Sub(r.Began) > lostAfter):
		state.wakeAt = r.Began.Add(lostAfter)
	}
}

// startDueJobs starts a goroutine for each job that needs attention now, and
// returns how long to sleep until the next one does.
func (s *Scheduler) startDueJobs(ctx context.Context) time.Duration {
	now := s.now()
	sleep := s.maxSleep
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, state := range s.states {
		if state.busy || state.wakeAt.IsZero() {
			continue
		}
		wakeAt := state.wakeAt
		isLate := now.Sub(wakeAt) > lateAfter
		if isLate {
			wakeAt = s.nextMissedRun
		}
		if wakeAt.After(now) {
			sleep = min(sleep, wakeAt.Sub(now))
			continue
		}
		if s.working >= maxConcurrency {
			continue // it starts when one of those at work is done
		}
		if isLate {
			s.nextMissedRun = now.Add(missedRunGap)
		}
		state.busy = true
		s.working++
		s.workers.Go(func() { s.processJob(ctx, id, state) })
	}
	return sleep
}
