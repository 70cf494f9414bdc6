package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// routed returns m as it goes into the inbox: what a person says while a turn
// waits for a helper that is to hear it is said to the helper (C-033).
func (p *Pool) routed(ctx context.Context, m chat.Message, command string) chat.Message {
	if m.Origin != chat.FromPerson || m.In != "" || command != "" {
		return m
	}
	if err := p.know(ctx); err != nil {
		p.Log.Error("helpers are not known yet", "err", err)
		return m
	}
	if id := p.kin.hearing(m.Session()); id != m.Session() {
		m.In = id
	}
	return m
}

func (p *Pool) cmdStop(ctx context.Context, m chat.Message) string {
	err := p.know(ctx)
	kids := p.kin.under(m.Session(), func(c tools.Child) bool { return !c.Said.After(m.Time) })
	if p.stop(m, len(kids)) {
		if err = p.dismissKids(ctx, kids, "stopped by the person"); err != nil {
			return p.sorry("stop all helpers", m.Session(), err)
		}
		return "" // the turn says so itself, in its last words
	}
	if err == nil {
		err = p.dismissKids(ctx, kids, "stopped by the person")
	}
	switch {
	case err != nil:
		return p.sorry("stop all helpers", m.Session(), err)
	case len(kids) > 0:
		return "Stopped " + someHelpers(len(kids)) + "."
	}
	return wordsNoStop
}

func someHelpers(n int) string {
	if n == 1 {
		return "a helper"
	}
	return fmt.Sprintf("%d helpers", n)
}

// wordsStoppedWith ends the answer that was stopped with n helpers.
func wordsStoppedWith(n int) string {
	if n == 0 {
		return wordsStopped
	}
	return "(Stopped, with " + someHelpers(n) + ".)"
}

// cmdAgents lists the helpers at work and does with them as it is told.
func (p *Pool) cmdAgents(ctx context.Context, m chat.Message) string {
	_, args := cut(m.Text)
	what, args := cut(args)
	which, words := cut(args)
	if err := p.know(ctx); err != nil {
		return p.sorry("look at the helpers", m.Session(), err)
	}
	if what == "" {
		return p.listed(m)
	}
	do, done := p.order(m, what, words)
	if do == nil || which == "" {
		return "Write /agents, /agents stop ID or all, /agents pause ID, /agents resume ID, or /agents tell ID WORDS."
	}
	kids := p.kin.all(func(c tools.Child) bool {
		return p.mayLook(m, c) && (m.From.Role == chat.Owner || c.From.ID == m.From.ID) && (which == "all" || strings.HasPrefix(c.ID, strings.ToLower(which)))
	})
	switch {
	case len(kids) == 0:
		return "There is no such helper of yours at work; /agents lists them."
	case len(kids) > 1 && which != "all":
		return "There are several helpers whose ID begins so."
	}
	for _, k := range kids {
		if err := do(ctx, k.Child); err != nil {
			return p.sorry(what+" helper "+k.ID, m.Session(), err)
		}
	}
	return done + " " + someHelpers(len(kids)) + "."
}

// mayLook says whether who says m may know of c: it is theirs, or they are an
// owner in private.
func (p *Pool) mayLook(m chat.Message, c tools.Child) bool {
	return m.From.Role == chat.Owner && !m.Group || chat.Whose(c.At, c.From, c.Group) == chat.Whose(m.At, m.From, m.Group)
}

// listed tells which helpers are at work.
func (p *Pool) listed(m chat.Message) string {
	kids := p.kin.all(func(c tools.Child) bool { return p.mayLook(m, c) })
	if len(kids) == 0 {
		return "No helpers are at work."
	}
	slices.SortFunc(kids, func(a, b kid) int { return a.Began.Compare(b.Began) })
	var b strings.Builder
	b.WriteString("Helpers at work:\n")
	for _, k := range kids {
		p.mu.Lock()
		state, r := "waiting", p.running[helperSession(k.ID)]
		if r != nil {
			state = r.doing
		}
		p.mu.Unlock()
		if k.State == tools.ChildPaused {
			state = "paused"
		}
		fmt.Fprintf(&b, "\n- `%s` %s – %s, since %s, rounds: %d", k.ID, tame(k.Label, 80), state, span(time.Since(k.Began)), k.rounds)
		if k.At != m.At {
			fmt.Fprintf(&b, ", for `%s`", k.At.Session())
		}
	}
	return b.String()
}

// order returns what /agents does with a helper when it is told what, and what
// it says afterwards.
func (p *Pool) order(m chat.Message, what, words string) (do func(context.Context, tools.Child) error, done string) {
	turn := func(from, to tools.ChildState) func(context.Context, tools.Child) error {
		return func(ctx context.Context, c tools.Child) error {
			_, err := p.change(ctx, c.ID, func(c *tools.Child) bool {
				was := c.State
				if was == from {
					c.State, c.Woken = to, time.Now()
				}
				return was == from
			})
			return ignore(err, store.ErrNotFound)
		}
	}
	switch {
	case what == "stop":
		return func(ctx context.Context, c tools.Child) error {
			below := p.kin.under(helperSession(c.ID), func(tools.Child) bool { return true })
			err := p.stopChild(ctx, c.ID, "It was stopped by "+cmp.Or(tame(m.From.Name, 64), "a person")+".", c.At != m.At)
			return errors.Join(err, p.dismissKids(ctx, below, "its parent was stopped"))
		}, "Stopped"
	case what == "pause":
		return turn(tools.ChildActive, tools.ChildPaused), "Paused"
	case what == "resume":
		return turn(tools.ChildPaused, tools.ChildActive), "Resumed"
	case what == "tell" && words != "":
		return func(ctx context.Context, c tools.Child) error {
			told := m
			told.ID, told.Text, told.In = m.ID+"/"+c.ID, words, helperSession(c.ID)
			return p.push(ctx, told)
		}, "Told"
	}
	return nil, ""
}
