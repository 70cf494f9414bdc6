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
	}
	if id := p.kin.hearing(m.Session()); id != m.Session() {
		m.In = id
	}
	return m
}

// cmdStop ends the turn under way and all helpers of the session (D-093).
func (p *Pool) cmdStop(ctx context.Context, m chat.Message) string {
	err := p.know(ctx)
	kids := p.kin.under(m.Session(), func(k *kid) bool { return !k.Said.After(m.Time) })
	running := p.stop(m, len(kids))
	switch err = errors.Join(err, p.dismissAll(ctx, kids)); {
	case err != nil:
		return p.sorry("stop all helpers", m.Session(), err)
	case running:
		return "" // the turn says so itself, in its last words
	case len(kids) > 0:
		return "Stopped " + helpers(len(kids)) + "."
	}
	return wordsNoStop
}

func helpers(n int) string {
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
	return "(Stopped, with " + helpers(n) + ".)"
}

// cmdAgents lists the helpers at work, and does with them as it is told.
func (p *Pool) cmdAgents(ctx context.Context, m chat.Message) string {
	_, args := cut(m.Text)
	what, args := cut(args)
	which, words := cut(args)
	if err := p.know(ctx); err != nil {
		return p.sorry("look at the helpers", m.Session(), err)
	}
	order, done := p.order(m, what, words)
	switch {
	case what == "":
		return p.listed(m)
	case order == nil || which == "":
		return wordsAgents
	}
	kids := p.kin.all(func(k *kid) bool {
		mine := m.From.Role == chat.Owner || k.From.ID == m.From.ID
		return mine && knows(m, k) && (which == "all" || strings.HasPrefix(k.ID, strings.ToLower(which)))
	})
	switch {
	case len(kids) == 0:
		return "There is no such helper of yours at work; /agents lists them."
	case len(kids) > 1 && which != "all":
		return "There are several helpers whose ID begins so."
	}
	for _, k := range kids {
		if err := order(ctx, k); err != nil {
			return p.sorry(what+" helper "+k.ID, m.Session(), err)
		}
	}
	return done + " " + helpers(len(kids)) + "."
}

// knows says whether who says m may know of k: it is theirs, or they are an
// owner in private.
func knows(m chat.Message, k *kid) bool {
	return m.From.Role == chat.Owner && !m.Group || chat.Whose(k.At, k.From, k.Group) == chat.Whose(m.At, m.From, m.Group)
}

// listed tells which helpers are at work.
func (p *Pool) listed(m chat.Message) string {
	kids := p.kin.all(func(k *kid) bool { return knows(m, k) })
	if len(kids) == 0 {
		return "No helpers are at work."
	}
	slices.SortFunc(kids, func(a, b kid) int { return a.Began.Compare(b.Began) })
	text := "Helpers at work:\n"
	for _, k := range kids {
		p.mu.Lock()
		state := string(k.State)
		if r := p.running[helperSession(k.ID)]; r != nil {
			state = cmp.Or(state, r.doing)
		}
		p.mu.Unlock()
		text += fmt.Sprintf("\n- `%s` %s – %s, for %s, rounds: %d", k.ID, tame(k.Label, 80), cmp.Or(state, "waiting"), span(time.Since(k.Began)), k.rounds)
		if k.At != m.At {
			text += fmt.Sprintf(", for `%s`", k.At.Session())
		}
	}
	return text
}

// order returns what /agents does with a helper when it is told what, and what
// it says afterwards; nil if that makes no sense.
func (p *Pool) order(m chat.Message, what, words string) (do func(context.Context, kid) error, done string) {
	turn := func(from, to tools.ChildState) func(context.Context, kid) error {
		return func(ctx context.Context, k kid) error {
			_, err := p.change(ctx, k.ID, func(c *tools.Child) bool {
				if c.State != from {
					return false
				}
				c.State, c.Woken = to, time.Now()
				return true
			})
			return err
		}
	}
	switch {
	case what == "stop":
		return func(ctx context.Context, k kid) error {
			below := p.kin.under(helperSession(k.ID), func(*kid) bool { return true })
			err := p.dismiss(ctx, k.ID, "It was stopped by "+cmp.Or(tame(m.From.Name, 64), "a person")+".", k.At != m.At)
			return errors.Join(err, p.dismissAll(ctx, below))
		}, "Stopped"
	case what == "pause":
		return turn(tools.ChildActive, tools.ChildPaused), "Paused"
	case what == "resume":
		return turn(tools.ChildPaused, tools.ChildActive), "Resumed"
	case what == "tell" && words != "":
		return func(ctx context.Context, k kid) error {
			told := m
			told.ID, told.Text, told.In = m.ID+"/"+k.ID, words, helperSession(k.ID)
			return p.push(ctx, told)
		}, "Told"
	}
	return nil, ""
}
