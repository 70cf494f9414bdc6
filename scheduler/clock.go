package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	lookAgain = time.Minute            // at what others have written
	patience  = time.Minute            // a run that is due for longer was missed
	stagger   = 500 * time.Millisecond // between two runs that were missed (P13)
	retry     = 30 * time.Second       // what the disk or the chat did not take
	hands     = 16                     // runs that are handed over at once: the disk's commits are shared
)

// An entry is what is known of a job between two looks at its record.
type entry struct {
	rev   uint64
	whose chat.Person
	wake  time.Time // when something is to be done for it; zero: never
	seen  bool      // it was seen that wake has come …
	late  bool      // … long after
	busy  bool      // it is being done
	bad   bool      // its record is damaged
	begun uint64    // the run that this process has handed over
	look  int       // at which it was there
}

// A task is a job for which something is to be done.
type task struct {
	*entry
	id string
}

// Run runs what is due until ctx ends, and returns when all that it began is
// quiet. It fails only if the jobs cannot be read at the start.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.live.Wait()
	if err := s.furnish(ctx); err != nil {
		return err
	}
	for first := true; ; first = false {
		if err := s.lookAround(ctx, first); first && err != nil {
			return err
		} else if err != nil && ctx.Err() == nil {
			s.Log.Warn("jobs not read", "err", err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.nudge:
		case <-time.After(s.turn(ctx)):
		}
	}
}

// lookAround looks at all records from time to time, and after the clock was put back.
func (s *Scheduler) lookAround(ctx context.Context, first bool) error {
	now := s.now()
	s.mu.Lock()
	back, old := now.Before(s.last) || first, time.Since(s.looked) >= lookAgain
	if s.last = now; back {
		s.slot = time.Time{}
	}
	s.mu.Unlock()
	if !back && !old {
		return nil
	}
	return s.look(ctx, back)
}

// look reads the records that have changed, or all.
func (s *Scheduler) look(ctx context.Context, all bool) error {
	s.mu.Lock()
	s.looks++
	look := s.looks
	s.mu.Unlock()
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("look for jobs: %w", err)
		}
		s.see(ctx, id, all)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.entries {
		if e.look < look {
			delete(s.entries, id)
		}
	}
	s.looked = time.Now()
	return nil
}

// see reads one record, if it has changed. A damaged one is left alone (P21).
func (s *Scheduler) see(ctx context.Context, id string, anyway bool) {
	s.mu.Lock()
	e := s.entry(id)
	known, bad := e.rev, e.bad
	s.mu.Unlock()
	if _, rev, err := s.jobs.Get(ctx, id); err == nil && rev == known && !anyway {
		return
	}
	j, rev, err := s.load(ctx, id)
	if err != nil && !bad && errors.Is(err, store.ErrDamaged) {
		s.Log.Warn("job left alone", "job", id, "err", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.bad = err != nil; err == nil && e.rev == known { // nobody has seen more meanwhile
		s.note(e, rev, j)
	}
}

// entry returns what is known of a job. The caller holds mu.
func (s *Scheduler) entry(id string) *entry {
	e := s.entries[id]
	if e == nil {
		e = &entry{}
		s.entries[id] = e
	}
	e.look = s.looks
	return e
}

// note notes what the record of a job says. The caller holds mu.
func (s *Scheduler) note(e *entry, rev uint64, j Job) {
	e.rev, e.whose, e.seen, e.bad, e.wake = rev, j.Whose(), false, false, j.Next
	now := s.now()
	p, err := s.plan(j.Schedule, j.Created)
	r := j.open()
	switch {
	case j.over(), err == nil && p.behind(j.Next, now),
		r != nil && (r.Outcome == Waiting || !j.System && r.N != e.begun):
		e.wake = earlier(now, e.wake)
	case r != nil:
		e.wake = earlier(r.Began.Add(lostAfter), e.wake)
	}
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) {
		return a
	}
	return b
}

// poke lets the clock look whether there is something to do.
func (s *Scheduler) poke() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// turn has done what is due by now, and returns how long to sleep.
func (s *Scheduler) turn(ctx context.Context) time.Duration {
	now, wait := s.now(), s.nap
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.entries {
		if e.busy || e.wake.IsZero() {
			continue
		}
		if !e.seen && !e.wake.After(now) {
			e.seen, e.late = true, now.Sub(e.wake) > patience
			if e.late {
				if s.slot.Before(now) {
					s.slot = now
				}
				e.wake, s.slot = s.slot, s.slot.Add(stagger)
			}
		}
		if e.wake.After(now) {
			wait = min(wait, e.wake.Sub(now))
			continue
		}
		e.busy = true
		s.queue = append(s.queue, task{e, id})
	}
	slices.SortFunc(s.queue, func(a, b task) int { return a.wake.Compare(b.wake) })
	for range min(len(s.queue), hands-s.working) {
		s.working++
		s.live.Go(func() { s.work(ctx) })
	}
	return wait
}
