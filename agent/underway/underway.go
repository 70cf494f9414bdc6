// Package underway lists what the agent has under way, turns, runs of jobs, subagents
// and commands, and stops one of them.
package underway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/agent/activity"
	"parley/agent/subagents"
	"parley/chat"
	"parley/store"
	"parley/tools"
)

// A List is what an agent has under way.
type List struct {
	Activities *activity.Set
	Subagents  *subagents.Supervisor
	Background subagents.Background
}

// New returns the List of those.
func New(a *activity.Set, s *subagents.Supervisor, b subagents.Background) List { return List{a, s, b} }

// The beginnings of the IDs of work.
const (
	turnPrefix    = "turn:"    // and the session
	taskPrefix    = "task:"    // and the ID of the subagent
	commandPrefix = "command:" // and the ID of the command
)

// All returns what is under way and can be stopped, the oldest first.
func (l List) All(ctx context.Context) (all []chat.Work, err error) {
	working, err := l.Subagents.Working(ctx, func(tools.Subagent) bool { return true })
	if err != nil {
		return nil, err
	}
	turns := l.Activities.All()
	for session, a := range turns {
		if a.Said.IsZero() || subagents.IDOf(session) != "" {
			continue // nobody can stop it, or it is listed as a subagent
		}
		w := chat.Work{
			ID: turnPrefix + string(session), Kind: chat.WorkTurn, Doing: a.Doing, Session: session, Since: a.Since,
		}
		if a.Options != nil && a.Options.Job != "" {
			w.Kind, w.What = chat.WorkJob, a.Options.Job
		}
		all = append(all, w)
	}
	for _, s := range working {
		w := chat.Work{ID: taskPrefix + s.ID, Kind: chat.WorkTask, Session: s.Parent, Since: s.Began}
		w.What = subagents.Label(s)
		w.Doing = turns[subagents.SessionOf(s.ID)].Doing
		if s.State == tools.SubagentPaused {
			w.Doing = string(s.State)
		}
		all = append(all, w)
	}
	commands, err := l.commands(ctx)
	for _, c := range commands {
		w := chat.Work{ID: commandPrefix + c.ID, Kind: chat.WorkCommand, Session: c.Session, Since: c.Began}
		w.What = chat.OneLine(c.What)
		all = append(all, w)
	}
	slices.SortFunc(all, func(a, b chat.Work) int {
		return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.ID, b.ID))
	})
	return all, err
}

func (l List) commands(ctx context.Context) ([]subagents.BackgroundTask, error) {
	if l.Background.List == nil {
		return nil, nil
	}
	return l.Background.List(ctx, "")
}

// Stop stops the work of that ID, as who asks, and returns what it was. The error is
// store.ErrNotFound if it is over. A turn says in its chat that it was stopped, and takes
// along the subagents that it waits for; whoever began a background task is told.
func (l List) Stop(ctx context.Context, id, who string) (chat.Work, error) {
	all, err := l.All(ctx)
	if err != nil {
		return chat.Work{}, err
	}
	i := slices.IndexFunc(all, func(w chat.Work) bool { return w.ID == id })
	if i < 0 {
		return chat.Work{}, store.ErrNotFound
	}
	w := all[i]
	switch w.Kind {
	case chat.WorkTask:
		return w, l.Subagents.Cancel(ctx, strings.TrimPrefix(id, taskPrefix), "It was stopped by "+who+".", true)
	case chat.WorkCommand:
		if l.Background.Stop(w.Session, strings.TrimPrefix(id, commandPrefix)) == 0 {
			return w, store.ErrNotFound
		}
		return w, nil
	}
	waitedFor := func(c tools.Subagent) bool { return c.Parent == w.Session && !c.Report }
	n, err := l.Subagents.Count(ctx, waitedFor)
	if err != nil {
		return w, err
	}
	this := func(session chat.SessionID, _ *activity.Activity) bool { return session == w.Session }
	if !l.Activities.Interrupt(chat.Message{Time: time.Now()}, n, this) {
		return w, store.ErrNotFound
	}
	return w, l.Subagents.CancelAll(ctx, waitedFor)
}

// StopAll stops what is under way for those who theirs selects, as who asks: their turns, runs of their jobs,
// subagents, and commands. The role of a sender is the one that they had when the work began.
func (l List) StopAll(ctx context.Context, theirs func(at chat.Address, from chat.Sender) bool, who string) error {
	ids := map[string]bool{}
	for session, a := range l.Activities.All() {
		if theirs(a.At, a.From) {
			ids[turnPrefix+string(session)] = true
		}
	}
	working, err := l.Subagents.Working(ctx, func(s tools.Subagent) bool { return theirs(s.At, s.From) })
	if err != nil {
		return err
	}
	for _, s := range working {
		ids[taskPrefix+s.ID] = true
	}
	commands, err := l.commands(ctx)
	if err != nil {
		return err
	}
	for _, c := range commands {
		if theirs(c.At, c.From) {
			ids[commandPrefix+c.ID] = true
		}
	}
	var errs []error
	for id := range ids {
		if _, err := l.Stop(ctx, id, who); err != nil && !errors.Is(err, store.ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}
