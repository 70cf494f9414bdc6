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
	patience = time.Minute            // a run that is due for longer was missed
	stagger  = 500 * time.Millisecond // between two runs that were missed (P13)
	retry    = 30 * time.Second       // what the disk or the chat did not take
	hands    = 16                     // runs that are handed over at once: the disk's commits are shared
)

// An entry is what is known of a job without a look at its record.
type entry struct {
	rev   uint64
	whose chat.Person // it counts as one of theirs
	wake  time.Time   // when something is to be done for it; zero: never
	busy  bool        // it is being done
	bad   bool        // its record is damaged
	begun uint64      // the last run that this process has handed over
}

// Run runs what is due until ctx ends, and returns when all that it began is
// quiet. It fails only if the jobs cannot be read at the start.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.live.Wait()
	if err := s.start(ctx); err != nil && ctx.Err() == nil {
		return err
	}
	for last := s.now(); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-s.nudge:
		case <-time.After(s.turn(ctx)):
		}
		now := s.now()
		if now.Before(last) {
			s.anew()
			if err := s.look(ctx); err != nil && ctx.Err() == nil {
				s.Log.Warn("jobs not read", "err", err)
			}
		}
		last = now
	}
}

// start makes ready for whoever comes first: Run, Add, Fire or Jobs.
func (s *Scheduler) start(ctx context.Context) error {
	s.adding.Lock()
	defer s.adding.Unlock()
	if s.started {
		return nil
	}
	err := errors.Join(s.furnish(ctx), s.look(ctx))
	s.started = err == nil
	return err
}

// look reads the records that have changed.
func (s *Scheduler) look(ctx context.Context) error {
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("look for jobs: %w", err)
		}
		j, rev, err := s.load(ctx, id)
		s.mu.Lock()
		switch e := s.entry(id); {
		case err != nil:
			s.trouble(id, e, err)
		case rev != e.rev:
			s.note(e, rev, j)
		}
		s.mu.Unlock()
	}
	return nil
}

// anew has the next look reckon everything again: the clock was put back.
func (s *Scheduler) anew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slot = time.Time{}
	for _, e := range s.entries {
		e.rev = 0
	}
}

// trouble notes that nothing could be done for a job: it is tried again later.
// A damaged record is left alone (P21). The caller holds mu.
func (s *Scheduler) trouble(id string, e *entry, err error) {
	switch {
	case errors.Is(err, store.ErrNotFound):
		delete(s.entries, id)
	case !errors.Is(err, store.ErrDamaged):
		s.Log.Warn("job not run", "job", id, "err", err, panics.Stack(err))
		e.begun, e.wake = 0, s.now().Add(retry)
	default:
		if !e.bad {
			s.Log.Warn("job left alone", "err", err)
		}
		e.bad, e.wake = true, time.Time{}
	}
}

// entry returns what is known of a job. The caller holds mu.
func (s *Scheduler) entry(id string) *entry {
	e := s.entries[id]
	if e == nil {
		e = &entry{}
		s.entries[id] = e
	}
	return e
}

// note notes what the record of a job says, unless more is known. The caller holds mu.
func (s *Scheduler) note(e *entry, rev uint64, j Job) {
	if rev < e.rev {
		return
	}
	e.rev, e.bad, e.wake = rev, false, j.Next
	if !j.System {
		e.whose = j.Whose()
	}
	now, r := s.now(), j.open()
	p, err := s.plan(j.Schedule, j.Created)
	switch {
	case j.over(), err == nil && p.astray(j.Next, now), r != nil && (r.Outcome == Waiting || !j.System && r.N != e.begun):
		e.wake = now
	case r != nil && (j.Next.IsZero() || j.Next.Sub(r.Began) > lostAfter):
		e.wake = r.Began.Add(lostAfter)
	}
}

// turn begins what is due by now, and returns how long to sleep.
func (s *Scheduler) turn(ctx context.Context) time.Duration {
	now, wait := s.now(), s.nap
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.entries {
		if e.busy || e.wake.IsZero() {
			continue
		}
		wake, late := e.wake, now.Sub(e.wake) > patience
		if late {
			wake = s.slot
		}
		switch {
		case wake.After(now):
			wait = min(wait, wake.Sub(now))
		case s.working < hands: // others follow when one of these is done
			if late {
				s.slot = now.Add(stagger)
			}
			e.busy = true
			s.working++
			s.live.Go(func() { s.work(ctx, id, e) })
		}
	}
	return wait
}
