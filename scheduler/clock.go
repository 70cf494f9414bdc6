package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

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
	wake  time.Time // when something is to be done for it; zero: never
	seen  bool      // it was seen that wake has come …
	late  bool      // … long after
	busy  bool      // it is being done
	bad   bool      // its record is damaged
	begun uint64    // the last run that this process has handed over
	look  int       // at which it was there
}

// Run runs what is due until ctx ends, and returns when all that it began is
// quiet. It fails only if the jobs cannot be read at the start.
func (s *Scheduler) Run(ctx context.Context) error {
	defer s.live.Wait()
	if err := s.furnish(ctx); err != nil {
		return err
	}
	var looked, last time.Time
	for {
		now := s.now()
		if back := now.Before(last); back || time.Since(looked) >= lookAgain {
			err := s.look(ctx, back)
			switch {
			case err == nil || ctx.Err() != nil:
			case looked.IsZero():
				return err
			default:
				s.Log.Warn("jobs not read", "err", err)
			}
			looked = time.Now()
		}
		last = now
		select {
		case <-ctx.Done():
			return nil
		case <-s.nudge:
		case <-time.After(s.turn(ctx)):
		}
	}
}

// look reads all records: others may have written some. If the clock was put
// back, it begins anew.
func (s *Scheduler) look(ctx context.Context, back bool) error {
	s.mu.Lock()
	if s.looks++; back {
		s.slot, s.entries = time.Time{}, map[string]*entry{}
	}
	s.mu.Unlock()
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("look for jobs: %w", err)
		}
		s.see(ctx, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, e := range s.entries {
		if e.look < s.looks {
			delete(s.entries, id)
		}
	}
	return nil
}

// see reads one record, if it has changed. A damaged one is left alone (P21).
func (s *Scheduler) see(ctx context.Context, id string) {
	s.mu.Lock()
	e := s.entry(id)
	known, bad := e.rev, e.bad
	s.mu.Unlock()
	if _, rev, err := s.jobs.Get(ctx, id); err == nil && rev == known {
		return
	}
	j, rev, err := s.load(ctx, id)
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.bad = errors.Is(err, store.ErrDamaged); e.bad && !bad {
		s.Log.Warn("job left alone", "err", err)
	}
	if err == nil {
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

// note notes what the record of a job says, unless more is known. The caller holds mu.
func (s *Scheduler) note(e *entry, rev uint64, j Job) {
	if rev < e.rev {
		return
	}
	e.rev, e.seen, e.bad, e.wake = rev, false, false, j.Next
	now, r := s.now(), j.open()
	p, err := s.plan(j.Schedule, j.Created)
	switch {
	case j.over(), err == nil && p.behind(j.Next, now), r != nil && (r.Outcome == Waiting || !j.System && r.N != e.begun):
		e.wake = earlier(now, e.wake)
	case r != nil:
		e.wake = earlier(r.Began.Add(lostAfter), e.wake)
	}
}

// earlier returns the earlier of two times; zero is never.
func earlier(a, b time.Time) time.Time {
	if b.IsZero() || a.Before(b) && !a.IsZero() {
		return a
	}
	return b
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
		if !e.seen && !e.wake.After(now) {
			e.seen, e.late = true, now.Sub(e.wake) > patience
			if e.late {
				if s.slot.Before(now) {
					s.slot = now
				}
				e.wake, s.slot = s.slot, s.slot.Add(stagger)
			}
		}
		switch {
		case e.wake.After(now):
			wait = min(wait, e.wake.Sub(now))
		case s.working < hands: // others follow when one of these is done
			e.busy = true
			s.working++
			s.live.Go(func() { s.work(ctx, id, e) })
		}
	}
	return wait
}
