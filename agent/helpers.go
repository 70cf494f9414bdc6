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

// cmdStop ends the turn under way and all helpers of the session (D-093). What
// the turn begins from then on it finds to be stopped.
func (p *Pool) cmdStop(ctx context.Context, m chat.Message) string {
	err := p.know(ctx)
	kids := func(k *kid) bool {
		run := k.At == m.At && strings.HasPrefix(string(k.Parent), runPrefix)
		return (run || k.Parent == m.Session()) && !k.Said.After(m.Time)
	}
	n := p.kin.under(kids)
	running := p.stop(m, n)
	switch err = errors.Join(err, p.dismissAll(ctx, kids)); {
	case err != nil:
		return p.sorry("stop all helpers", m.Session(), err)
	case running:
		return "" // the turn says so itself, in its last words
	case n > 0:
		return "Stopped " + helpers(n) + "."
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

// orders are what /agents does with helpers, and what it says afterwards.
var orders = map[string]string{"stop": "Stopped", "pause": "Paused", "resume": "Resumed", "tell": "Told"}

// cmdAgents lists the helpers at work, and does with them as it is told.
func (p *Pool) cmdAgents(ctx context.Context, m chat.Message) string {
	_, args := chat.Word(m.Text)
	what, args := chat.Word(args)
	what = strings.ToLower(what)
	which, words := chat.Word(args)
	if err := p.know(ctx); err != nil {
		return p.sorry("look at the helpers", m.Session(), err)
	}
	switch {
	case what == "":
		return p.listed(m)
	case orders[what] == "" || which == "" || what == "tell" && words == "":
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
		return "The IDs of several helpers begin like that; write more of it."
	}
	slices.SortFunc(kids, oldest)
	for _, k := range kids {
		if err := p.order(ctx, m, k, what, words); err != nil {
			return p.sorry(what+" helper "+k.ID, m.Session(), err)
		}
	}
	return orders[what] + " " + named(kids) + "."
}

// named names helpers as people know them.
func named(kids []kid) string {
	var all []string
	for _, k := range kids {
		all = append(all, fmt.Sprintf("'%s' (`%s`)", label(k.Child), k.ID))
	}
	names := strings.Join(all, ", ")
	if len(kids) == 1 {
		return "the helper " + names
	}
	return helpers(len(kids)) + ": " + names
}

// label is what people call c.
func label(c tools.Child) string { return cmp.Or(tame(c.Label, 80), c.ID) }

// toldTo ends the ID of a message that a person wrote to the helper id.
func toldTo(id string) string { return "/" + id }

// order does with k what m says.
func (p *Pool) order(ctx context.Context, m chat.Message, k kid, what, words string) error {
	from, to := tools.ChildActive, tools.ChildPaused
	switch what {
	case "stop":
		return p.dismiss(ctx, k.ID, "It was stopped by "+cmp.Or(tame(m.From.Name, 64), "a person")+".", k.At != m.At)
	case "tell":
		m.ID, m.Text, m.In = m.ID+toldTo(k.ID), words, helperSession(k.ID)
		return p.push(ctx, m)
	case "resume":
		from, to = to, from
	}
	_, err := p.change(ctx, k.ID, func(c *tools.Child) bool {
		turns := c.State == from
		if turns {
			c.State, c.Woken = to, time.Now()
		}
		return turns
	})
	return err
}

// knows says whether who says m may know of k: it is theirs, or they are an
// owner in private.
func knows(m chat.Message, k *kid) bool {
	return m.From.Role == chat.Owner && !m.Group || chat.Whose(k.At, k.From, k.Group) == chat.Whose(m.At, m.From, m.Group)
}

func oldest(a, b kid) int { return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID)) }

// listed tells which helpers are at work.
func (p *Pool) listed(m chat.Message) string {
	kids := p.kin.all(func(k *kid) bool { return knows(m, k) })
	if len(kids) == 0 {
		return "No helpers are at work."
	}
	slices.SortFunc(kids, oldest)
	text := "Helpers at work:\n"
	for _, k := range kids {
		p.mu.Lock()
		state := string(k.State)
		if r := p.running[helperSession(k.ID)]; r != nil {
			state = cmp.Or(state, r.doing)
		}
		p.mu.Unlock()
		text += fmt.Sprintf("\n- `%s` %s", k.ID, label(k.Child))
		if k.Agent != "" {
			text += " (" + tame(k.Agent, 80) + ")"
		}
		text += fmt.Sprintf(" – %s, began %s ago", cmp.Or(state, "waiting for its turn"), span(time.Since(k.Began)))
		switch k.rounds {
		case 0:
		case 1:
			text += ", 1 step done"
		default:
			text += fmt.Sprintf(", %d steps done", k.rounds)
		}
		if k.At != m.At {
			text += fmt.Sprintf(", for `%s`", k.At.Session())
		}
	}
	return text
}
