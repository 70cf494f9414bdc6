package subagents

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

const (
	interval      = time.Hour          // at which all subagents are reconciled
	taskTimeout   = time.Minute        // within which a session takes its task from the inbox
	maxDeliveries = 2                  // of one task, before it counts as lost
	retention     = 7 * 24 * time.Hour // of the record and the session of a subagent that has ended
)

// Run reconciles all subagents until ctx ends: at once, when the tasks that a
// crash may have lost are overdue, and then at regular intervals.
func (s *Supervisor) Run(ctx context.Context) {
	for n := 0; s.cfg.Retry(ctx, "reconcile subagents", s.reconcileAll) == nil && ctx.Err() == nil; n++ {
		pause := interval
		if n < maxDeliveries {
			pause = taskTimeout
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// reconcileAll does what is to be done next for each subagent.
func (s *Supervisor) reconcileAll(ctx context.Context) error {
	if err := s.Load(ctx); err != nil {
		return err
	}
	all, err := s.List(ctx, "")
	for _, c := range all {
		err = errors.Join(err, s.reconcile(ctx, c))
	}
	return err
}

// reconcile does what is to be done next for c. Its record alone decides, and for
// one at work whether its session has taken the task from the inbox.
func (s *Supervisor) reconcile(ctx context.Context, c tools.Subagent) error {
	overdue, deliveries := s.roster.taskStatus(c.ID)
	switch {
	case c.State.Over() && c.Report:
		return s.deliverReport(ctx, c)
	case c.State.Over() && time.Since(c.Ended) > retention:
		return s.forget(ctx, c.ID, func() error { return nil }) // its own subagents expire, too
	case c.State.Over() || !overdue:
		return nil
	case deliveries < maxDeliveries:
		return s.deliverTask(ctx, c)
	}
	return s.Interrupt(ctx, c.ID)
}

// deliverTask puts c's task into the inbox of its session.
func (s *Supervisor) deliverTask(ctx context.Context, c tools.Subagent) error {
	if err := s.cfg.Deliver(ctx, TaskMessage(c)); err != nil {
		return err
	}
	s.roster.with(c.ID, func(e *entry) {
		e.deliveries++
		e.due = time.Now().Add(taskTimeout)
	})
	return nil
}

// deliverReport tells c's parent how it ended, and notes that this is done.
func (s *Supervisor) deliverReport(ctx context.Context, c tools.Subagent) error {
	if err := s.cfg.Deliver(ctx, reportMessage(c)); err != nil {
		return err
	}
	_, err := s.update(ctx, c.ID, func(c *tools.Subagent) bool {
		c.Report = false
		return true
	})
	return err
}

// Move changes the state of a subagent, if state may follow the present one, and
// with it what else change does to the record; change may be nil. The parent is
// told where a report is due. After an error Move is called again: each of its
// parts takes effect once.
func (s *Supervisor) Move(
	ctx context.Context, id string, state tools.SubagentState, change func(*tools.Subagent),
) error {
	c, err := s.update(ctx, id, func(c *tools.Subagent) bool {
		if !c.State.CanBecome(state) {
			return false
		}
		c.State = state
		switch {
		case state.Over():
			c.Ended = time.Now()
		case state == tools.SubagentActive:
			c.Woken = time.Now()
		}
		if change != nil {
			change(c)
		}
		return true
	})
	if err != nil || !c.Report {
		return err
	}
	return s.reconcile(ctx, c)
}

// Interrupt ends a subagent whose task is nowhere, unless it has ended before.
func (s *Supervisor) Interrupt(ctx context.Context, id string) error {
	return s.Move(ctx, id, tools.SubagentFailed, func(c *tools.Subagent) { c.Result = "Its task was lost." })
}

// Cancel stops a subagent and those that work for it. Its parent reads why, if a
// report is due and tell is true. What people said that it has not read yet goes
// to the parent, unless that was stopped since (C-033).
func (s *Supervisor) Cancel(ctx context.Context, id, why string, tell bool) error {
	known, _ := s.roster.Watch(id)
	err := s.Move(ctx, id, tools.SubagentStopped, func(c *tools.Subagent) {
		c.Result = why
		c.Report = c.Report && tell
	})
	below := WorksFor(SessionOf(id))
	if err != nil {
		return errors.Join(err, s.CancelAll(ctx, below))
	}
	s.cfg.Stop(SessionOf(id), known.Parent) // first, so that it does not go on without those that it waits for
	return s.CancelAll(ctx, below)
}

// CancelAll stops those at work that match: nobody waits for them any more.
func (s *Supervisor) CancelAll(ctx context.Context, match func(tools.Subagent) bool) error {
	err := s.Load(ctx)
	for _, c := range s.roster.matching(match) {
		err = errors.Join(err, s.Cancel(ctx, c.ID, "It was stopped, because nobody waits for it any more.", false))
	}
	return err
}

// ForgetSession removes the subagents of a session that is about to be
// forgotten. If the session is a subagent's, that ends and reports so.
func (s *Supervisor) ForgetSession(ctx context.Context, session chat.SessionID) error {
	if err := s.Load(ctx); err != nil {
		return err
	}
	all, err := s.List(ctx, "")
	if err != nil {
		return err
	}
	if id := IDOf(session); id != "" {
		if err := s.Cancel(ctx, id, "It was forgotten.", true); err != nil {
			return err
		}
	}
	return s.forgetBelow(ctx, session, all)
}

// forgetBelow stops and removes those of all that work for session.
func (s *Supervisor) forgetBelow(ctx context.Context, session chat.SessionID, all []tools.Subagent) error {
	for _, c := range all {
		if c.Parent != session {
			continue
		}
		if err := s.Cancel(ctx, c.ID, "It was forgotten.", false); err != nil {
			return err
		}
		err := s.forget(ctx, c.ID, func() error { return s.forgetBelow(ctx, SessionOf(c.ID), all) })
		if err != nil {
			return err
		}
	}
	return nil
}

// forget removes the session and the record of a subagent, after it called first.
func (s *Supervisor) forget(ctx context.Context, id string, first func() error) error {
	if err := s.cfg.Forget(ctx, SessionOf(id), first); err != nil {
		return fmt.Errorf("forget subagent %s: %w", id, err)
	}
	return s.table.Delete(ctx, id)
}

// Receive notes that m, a message for the subagent id, was taken from the inbox. If
// the subagent has ended or is unknown, it is not working, and its record is
// returned. A damaged record is replaced by what m says of the task (P21).
func (s *Supervisor) Receive(ctx context.Context, id string, m chat.Message) (tools.Subagent, bool, error) {
	if err := s.Load(ctx); err != nil {
		return tools.Subagent{}, false, err
	}
	if working := s.roster.with(id, func(e *entry) { e.taken = true }); working {
		return tools.Subagent{}, true, nil
	}
	c, _, err := s.table.Get(ctx, id)
	if errors.Is(err, store.ErrDamaged) {
		c = lostRecord(id, m)
		err = s.table.Set(ctx, id, c)
	}
	c.ID = id // also of one that was forgotten
	return c, false, ignoreNotFound(err)
}

// NoteDelivery notes what became of the message that tells the report run of a
// subagent: the network has taken it if reason is "", else it has refused it for
// that reason, and may take it yet (P26). Other runs are ignored.
func (s *Supervisor) NoteDelivery(ctx context.Context, run, reason string) error {
	id, isReport := strings.CutPrefix(run, reportPrefix)
	if !isReport {
		return nil
	}
	_, err := s.update(ctx, id, func(c *tools.Subagent) bool {
		isNews := c.Undelivered != reason
		c.Undelivered = reason
		return isNews
	})
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	return err
}
