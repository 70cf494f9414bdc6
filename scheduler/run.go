package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/chat"
	"parley/panics"
	"parley/store"
)

// load reads a record. A system job that no longer exists is not found.
func (s *Scheduler) load(ctx context.Context, id string) (Job, uint64, error) {
	j, rev, err := s.jobs.Get(ctx, id)
	if err == nil {
		err = s.checkRecord(id, j)
	}
	if err != nil {
		return Job{}, rev, fmt.Errorf("job %s: %w", id, err)
	}
	return j, rev, nil
}

// checkRecord reports why j is not the record of a job with that id.
func (s *Scheduler) checkRecord(id string, j Job) error {
	switch {
	case j.ID != id:
		return store.ErrDamaged
	case j.System && s.system(id) == nil:
		return store.ErrNotFound
	}
	return nil
}

// change updates the record of a job by f, which may return store.ErrUnchanged.
// A job that is over is removed, and is not found the next time.
func (s *Scheduler) change(ctx context.Context, id string, f func(*Job) error) (Job, error) {
	over := false
	var refused error
	j, rev, err := s.jobs.Update(ctx, id, func(j *Job) error {
		if err := s.checkRecord(id, *j); err != nil {
			return err
		}
		if over = j.over(); over {
			return store.ErrNotFound
		}
		refused = f(j)
		return refused
	})
	if over {
		if err := s.forget(ctx, id); err != nil {
			return Job{}, err
		}
	}
	if err != nil && refused != nil {
		return Job{}, refused
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	if j.over() {
		return j, s.forget(ctx, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.entry(id), rev, j)
	return j, nil
}

func (s *Scheduler) forget(ctx context.Context, id string) error {
	if err := s.jobs.Delete(ctx, id); err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.entries, id)
	return nil
}

// poke lets the clock look whether there is something to do.
func (s *Scheduler) poke() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// work does what is to be done for a job by now.
func (s *Scheduler) work(ctx context.Context, id string, e *entry) {
	err := panics.Try(func() error { return s.attend(ctx, id, e) })
	s.mu.Lock()
	if err != nil && ctx.Err() == nil {
		s.trouble(id, e, err)
	}
	e.busy = false
	s.working--
	few := s.working <= hands/2 // it costs a look at all entries
	s.mu.Unlock()
	if few {
		s.poke()
	}
}

// attend does what is to be done for a job by now: it claims the run that is
// due, by changing the record, and hands it over. A run that was claimed and
// maybe never handed over is so now, under the same key (P12).
func (s *Scheduler) attend(ctx context.Context, id string, e *entry) error {
	s.mu.Lock()
	begun, claimed := e.begun, false
	s.mu.Unlock()
	j, err := s.change(ctx, id, func(j *Job) error {
		changed, err := s.advance(ctx, j)
		r := j.open()
		if claimed = r != nil && r.Outcome == Waiting; claimed {
			r.Outcome, r.Began = Running, s.now()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.begun = j.N; err == nil && !changed && !claimed {
			err = store.ErrUnchanged
		}
		return err
	})
	r := j.open()
	switch {
	case err != nil || r == nil:
		return err
	case claimed && j.System:
		s.live.Go(func() { s.do(ctx, j, *r) })
	case !j.System && (claimed || r.N != begun):
		return s.hand(ctx, j, *r)
	}
	return nil
}

// advance brings j up to now, and says whether that changed it.
func (s *Scheduler) advance(ctx context.Context, j *Job) (changed bool, err error) {
	now := s.now()
	p, err := s.plan(j.Schedule, j.Created)
	if err != nil { // a zone that is not known any more
		j.stop(cmp.Or(Say(s.Texts.Refusals, err), s.Texts.Damaged))
		return true, nil
	}
	changed = j.lose(*s.Texts, now)
	if p.astray(j.Next, now) {
		j.Next, changed = p.next(now), true
	}
	if j.Next.IsZero() || j.Next.After(now) {
		return changed, nil
	}
	if j.due(*s.Texts, p, now); j.Off {
		err = s.Tell(ctx, fmt.Sprintf("cron/%s/missed/%d", j.ID, p.At.Unix()), j.At, s.Texts.TooLate.With(j.Name, minute(p.At.In(p.zone))))
	}
	return true, err
}

// hand gives a run to the agent, with the rights that who made the job has by
// now (R-S24).
func (s *Scheduler) hand(ctx context.Context, j Job, r Run) error {
	role, err := s.Role(ctx, j.At, j.By)
	switch {
	case err != nil:
		return fmt.Errorf("ask for the role of %s: %w", j.By.ID, err)
	case role == chat.Unknown:
		s.Log.Warn("job refused: who made it may not talk to the agent any more", "job", j.ID, "by", j.By.ID, "channel", j.At.Channel)
		return s.end(ctx, j.ID, r.N, Ended{Outcome: Refused, Note: s.Texts.NotAllowed})
	}
	j.By.Role = role
	return s.Deliver(ctx, s.Message(j, r))
}

// do runs a job of the house. If it panics or hangs, that is its own trouble.
func (s *Scheduler) do(ctx context.Context, j Job, r Run) {
	var e Ended
	err := panics.Try(func() (err error) {
		e, err = s.system(j.ID).Do(ctx, j, r)
		return err
	})
	switch {
	case err != nil && ctx.Err() != nil:
		e.Outcome, e.Note = Interrupted, s.Texts.Closed
	case err != nil:
		e.Outcome, e.Note = Failed, err.Error()
		s.Log.Warn("job failed", "job", j.ID, "err", err, panics.Stack(err))
	case e.Outcome == Running:
		return
	}
	e.Outcome = cmp.Or(e.Outcome, Done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retry)
	defer cancel()
	if err := s.end(ctx, j.ID, r.N, e); err != nil {
		s.Log.Warn("end of a job not noted", "job", j.ID, "err", err)
	}
}

// Ended notes how the run ended that m is. To tell it again changes nothing,
// and a message that is no run is none of its business.
func (s *Scheduler) Ended(ctx context.Context, m chat.Message, e Ended) error {
	if m.Options == nil || m.Options.Job == "" || e.Outcome == Running {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(m.ID, m.Options.Job+"/"), 10, 64)
	if err != nil {
		return nil
	}
	if !slices.Contains([]Outcome{Answered, Silent, Interrupted, Stopped}, e.Outcome) {
		e.Note, e.Outcome = cmp.Or(e.Note, e.Text, string(e.Outcome)), Failed
	}
	return s.end(ctx, m.Options.Job, n, e)
}

// NoteDelivery notes what became of what a run said, whose message has the ID run: with
// reason "" the network has taken it, else it has refused it for that reason, and
// may take it yet (P26). To tell it again changes nothing.
func (s *Scheduler) NoteDelivery(ctx context.Context, run, reason string) error {
	return changeRun(ctx, s, run, func(j *Job, r *Run) bool { return j.noteDelivery(r, reason) })
}

// NoteUsage notes what a run, whose message has the ID run, has used by now:
// subagents may work for it after its answer. To tell it again changes nothing.
func (s *Scheduler) NoteUsage(ctx context.Context, run string, tokens int, cost float64) error {
	return changeRun(ctx, s, run, func(_ *Job, r *Run) bool {
		if r.Tokens == tokens && r.Cost == cost {
			return false
		}
		r.Tokens = tokens
		r.Cost = cost
		return true
	})
}

// changeRun has change alter the run whose message has the ID run, if it is still
// known; change reports whether it did.
func changeRun(ctx context.Context, s *Scheduler, run string, change func(*Job, *Run) bool) error {
	i := strings.LastIndex(run, "/")
	n, err := strconv.ParseUint(run[i+1:], 10, 64)
	if err != nil || i < 0 {
		return nil
	}
	_, err = s.change(ctx, run[:i], func(j *Job) error {
		i := slices.IndexFunc(j.Runs, func(r Run) bool { return r.N == n })
		if i < 0 || !change(j, &j.Runs[i]) {
			return store.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
		return nil
	}
	return err
}

// end notes how a run ended. One that was given up may still end. What people
// are told is on its way before the record says so, and its id keeps it from
// being said again.
func (s *Scheduler) end(ctx context.Context, id string, n uint64, e Ended) error {
	_, err := s.change(ctx, id, func(j *Job) (err error) {
		i := slices.IndexFunc(j.Runs, func(r Run) bool { return r.N == n })
		if i < 0 || j.Runs[i].Outcome != Interrupted && &j.Runs[i] != j.open() {
			return store.ErrUnchanged
		}
		if j.end(&j.Runs[i], e, s.now()) {
			err = s.Tell(ctx, fmt.Sprintf("cron/%s/failing/%d", j.ID, n), j.At, s.Texts.Failing.With(j.Name, j.Runs[i].Note))
		}
		once := j.lastTime()
		if e.Outcome == Refused || once && (e.Outcome == Failed || j.Runs[i].Outcome == Undelivered) {
			j.stop(j.Runs[i].Note) // it stays, to be seen
		} else if once {
			j.Off = false // it is over, at last
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) { // it was removed meanwhile
		return nil
	}
	return err
}
