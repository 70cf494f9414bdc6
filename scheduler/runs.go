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

// load reads the record of a job. A system job that no longer exists is not found.
func (s *Scheduler) load(ctx context.Context, id string) (Job, uint64, error) {
	j, revision, err := s.jobs.Get(ctx, id)
	if err != nil {
		return Job{}, revision, fmt.Errorf("job %s: %w", id, err)
	}
	if err := checkRecord(id, j, s.System); err != nil {
		return Job{}, revision, fmt.Errorf("job %s: %w", id, err)
	}
	return j, revision, nil
}

// checkRecord returns why j is not the record of a job with this ID. The gateway's own jobs are those of system.
func checkRecord(id string, j Job, system []System) error {
	switch {
	case j.ID != id:
		return store.ErrDamaged
	case j.System && systemJob(system, id) == nil:
		return store.ErrNotFound
	}
	return nil
}

// change updates the record of a job with f, which may return store.ErrUnchanged.
// A job that is over is removed, before or after f, and is then not found.
func (s *Scheduler) change(ctx context.Context, id string, f func(*Job) error) (Job, error) {
	wasOver := false
	var refused error
	j, revision, err := s.jobs.Update(ctx, id, func(j *Job) error {
		if err := checkRecord(id, *j, s.System); err != nil {
			return err
		}
		if wasOver = j.isOver(); wasOver {
			return store.ErrNotFound
		}
		refused = f(j)
		return refused
	})
	if wasOver {
		if err := s.deleteJob(ctx, id); err != nil {
			return Job{}, err
		}
	}
	if err != nil && refused != nil {
		return Job{}, refused
	}
	if err != nil {
		return Job{}, fmt.Errorf("job %s: %w", id, err)
	}
	if j.isOver() {
		return j, s.deleteJob(ctx, id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateState(s.state(id), revision, j)
	return j, nil
}

func (s *Scheduler) deleteJob(ctx context.Context, id string) error {
	if err := s.jobs.Delete(ctx, id); err != nil {
		return fmt.Errorf("job %s: %w", id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.states, id)
	return nil
}

// wake makes the loop check at once whether a job needs attention.
func (s *Scheduler) wake() {
	select {
	case s.nudge <- struct{}{}:
	default:
	}
}

// processJob does what a job needs now, and tells the loop when it is done.
func (s *Scheduler) processJob(ctx context.Context, id string, state *jobState) {
	err := panics.Try(func() error { return s.advanceAndDeliver(ctx, id, state) })
	s.mu.Lock()
	if err != nil && ctx.Err() == nil {
		s.noteError(id, state, err)
	}
	state.busy = false
	s.working--
	hasRoom := s.working <= maxConcurrency/2 // not each time, because the loop then reads all states
	s.mu.Unlock()
	if hasRoom {
		s.wake()
	}
}

// advanceAndDeliver claims the run of a job that is due, by changing the job's
// record, and delivers it. A run that was claimed earlier, but perhaps never
// delivered, is delivered again under the same key (P12).
func (s *Scheduler) advanceAndDeliver(ctx context.Context, id string, state *jobState) error {
	s.mu.Lock()
	delivered := state.delivered
	s.mu.Unlock()
	claimed := false
	j, err := s.change(ctx, id, func(j *Job) error {
		changed, err := s.advance(ctx, j)
		r := j.openRun()
		claimed = r != nil && r.Outcome == Waiting
		if claimed {
			r.Outcome = Running
			r.Began = s.now()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		state.delivered = j.N
		if err != nil || changed || claimed {
			return err
		}
		return store.ErrUnchanged
	})
	r := j.openRun()
	switch {
	case err != nil || r == nil:
		return err
	case claimed && j.System:
		s.workers.Go(func() { s.runSystemJob(ctx, j, *r) })
	case !j.System && (claimed || r.N != delivered):
		return s.deliverRun(ctx, j, *r)
	}
	return nil
}

// advance adds to j the runs that have become due by now, and reports whether it
// changed j.
func (s *Scheduler) advance(ctx context.Context, j *Job) (changed bool, err error) {
	now := s.now()
	p, err := s.plan(j.Schedule, j.Created)
	if err != nil { // such as a time zone that this system does not know
		j.switchOff(cmp.Or(Say(s.Texts.Refusals, err), s.Texts.Damaged))
		return true, nil
	}
	changed = j.expireLostRun(*s.Texts, now)
	if p.isStale(j.Next, now) {
		j.Next = p.next(now)
		changed = true
	}
	if j.Next.IsZero() || j.Next.After(now) {
		return changed, nil
	}
	j.catchUp(*s.Texts, p, now)
	if j.Off {
		id, text := missedNotice(*s.Texts, j, p)
		err = s.Tell(ctx, id, j.At, text)
	}
	return true, err
}

// deliverRun sends the message of a run to the agent, with the role that the
// job's author has now (R-S24).
func (s *Scheduler) deliverRun(ctx context.Context, j Job, r Run) error {
	role, err := s.Role(ctx, j.At, j.By)
	if err != nil {
		return fmt.Errorf("ask for the role of %s: %w", j.By.ID, err)
	}
	if role == chat.Unknown {
		s.Log.Warn("job refused: its author may not talk to the agent any more",
			"job", j.ID, "by", j.By.ID, "channel", j.At.Channel)
		return s.endRun(ctx, j.ID, r.N, Ended{Outcome: Refused, Note: s.Texts.NotAllowed})
	}
	j.By.Role = role
	return s.Deliver(ctx, s.Message(j, r))
}

// runSystemJob runs one of the gateway's own jobs. A panic counts as a failed run.
func (s *Scheduler) runSystemJob(ctx context.Context, j Job, r Run) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.system.set(j.ID, stop)
	defer s.system.set(j.ID, nil)
	var e Ended
	err := panics.Try(func() (err error) {
		e, err = systemJob(s.System, j.ID).Do(ctx, j, r)
		return err
	})
	switch {
	case err != nil && errors.Is(context.Cause(ctx), errStopped):
		e.Outcome = Stopped
	case err != nil && ctx.Err() != nil:
		e.Outcome = Interrupted
		e.Note = s.Texts.Closed
	case err != nil:
		e.Outcome = Failed
		e.Note = err.Error()
		s.Log.Warn("job failed", "job", j.ID, "err", err, panics.Stack(err))
	case e.Outcome == Running:
		return
	}
	e.Outcome = cmp.Or(e.Outcome, Done)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), retryDelay)
	defer cancel()
	if err := s.endRun(ctx, j.ID, r.N, e); err != nil {
		s.Log.Warn("end of a run not recorded", "job", j.ID, "err", err)
	}
}

// Ended records how the run that m started has ended. Repeating the call changes
// nothing, and a message that belongs to no run is ignored.
func (s *Scheduler) Ended(ctx context.Context, m chat.Message, e Ended) error {
	if m.Options == nil || m.Options.Job == "" || e.Outcome == Running {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(m.ID, m.Options.Job+"/"), 10, 64)
	if err != nil {
		return nil
	}
	if !slices.Contains([]Outcome{Answered, Silent, Interrupted, Stopped}, e.Outcome) {
		e.Note = cmp.Or(e.Note, e.Text, string(e.Outcome))
		e.Outcome = Failed
	}
	return s.endRun(ctx, m.Options.Job, n, e)
}

// NoteDelivery records what became of the answer of a run; run is the ID of the
// message that started it. With reason "" the network accepted the answer.
// Otherwise it refused the answer for that reason, and may still accept it later
// (P26). Repeating the call changes nothing.
func (s *Scheduler) NoteDelivery(ctx context.Context, run, reason string) error {
	return changeRun(ctx, s, run, func(j *Job, r *Run) bool { return j.noteDelivery(r, reason, s.now()) })
}

// NoteUsage records what a run has used so far; run is the ID of the message that
// started it. Usage can grow after the answer, because subagents may still work
// for the run, and several at once: the calls may come in any order. Repeating a
// call changes nothing.
func (s *Scheduler) NoteUsage(ctx context.Context, run string, tokens int, cost float64) error {
	return changeRun(ctx, s, run, func(_ *Job, r *Run) bool {
		if tokens <= r.Tokens && cost <= r.Cost { // what is used only grows
			return false
		}
		r.Tokens = max(r.Tokens, tokens)
		r.Cost = max(r.Cost, cost)
		return true
	})
}

// changeRun lets change alter the run that the message with the ID run started, if
// its record still exists; change reports whether it changed anything.
func changeRun(ctx context.Context, s *Scheduler, run string, change func(*Job, *Run) bool) error {
	i := strings.LastIndex(run, "/")
	n, err := strconv.ParseUint(run[i+1:], 10, 64)
	if err != nil || i < 0 {
		return nil
	}
	_, err = s.change(ctx, run[:i], func(j *Job) error {
		i := j.indexOfRun(n)
		if i < 0 || !change(j, &j.Runs[i]) {
			return store.ErrUnchanged
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) { // the job was removed in the meantime
		return nil
	}
	return err
}

// indexOfRun returns the index of run n in j.Runs, or -1.
func (j *Job) indexOfRun(n uint64) int {
	return slices.IndexFunc(j.Runs, func(r Run) bool { return r.N == n })
}

// endRun records how a run ended. A run that was given up as interrupted may still
// end. If people must be told about failures, that message is sent before the
// record changes, and its ID keeps it from being sent twice.
func (s *Scheduler) endRun(ctx context.Context, id string, n uint64, e Ended) error {
	_, err := s.change(ctx, id, func(j *Job) (err error) {
		i := j.indexOfRun(n)
		if i < 0 || j.Runs[i].Outcome != Interrupted && &j.Runs[i] != j.openRun() {
			return store.ErrUnchanged
		}
		r := &j.Runs[i]
		if j.endRun(r, e, s.now()) {
			id := fmt.Sprintf("cron/%s/failing/%d", j.ID, n)
			err = s.Tell(ctx, id, j.At, s.Texts.Failing.With(j.Name, r.Note))
		}
		once := j.wasLastTime()
		if e.Outcome == Refused || once && (e.Outcome == Failed || r.Outcome == Undelivered) {
			j.switchOff(r.Note) // keep the job, so that people can see what went wrong
		} else if once {
			j.Off = false // the job is over
		}
		return err
	})
	if errors.Is(err, store.ErrNotFound) { // the job was removed in the meantime
		return nil
	}
	return err
}
