package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// routed returns m as it goes into the inbox: what a person says while a turn
// waits for a helper that is to hear it is said to the helper (C-033).
func (p *Pool) routed(ctx context.Context, m chat.Message, command string) chat.Message {
	if m.Origin != chat.FromPerson || m.In != "" || command != "" {
		return m
	}
	if err := p.know(ctx); err != nil {
		p.log.Error("helpers are not known yet", "err", err)
	}
	if id := p.kin.hearing(m.Session()); id != m.Session() {
		m.In = id
	}
	return m
}

// stopTurns ends the turn under way and all helpers of the session (D-093). What
// the turn begins from then on it finds to be stopped.
func stopTurns(ctx context.Context, p *Pool, m chat.Message) string {
	err := p.know(ctx)
	kids := func(k *kid) bool {
		run := k.At == m.At && strings.HasPrefix(string(k.Parent), runPrefix)
		return (run || k.Parent == m.Session()) && !k.Said.After(m.Time)
	}
	n := p.kin.under(kids)
	running := p.stop(m, n)
	switch err = errors.Join(err, p.dismissAll(ctx, kids)); {
	case err != nil:
		p.commandFailed("stop all helpers", m.Session(), err)
		return p.texts.Subagents.NotAll
	case running:
		return "" // the turn says so itself, in its last words
	case n > 0:
		return p.texts.Subagents.Stopped.With(p.texts.Subagents.Some.Of(n))
	}
	return p.texts.Commands.NoStop
}

// stoppedWith ends the answer that was stopped with n helpers.
func (p *Pool) stoppedWith(n int) string {
	if n == 0 {
		return p.texts.Turn.Stopped
	}
	return p.texts.Turn.StoppedWith.With(p.texts.Subagents.Some.Of(n))
}

// orders are what /agents does with helpers, and what it says afterwards.
func orders(say texts.Subagents) map[string]texts.Format {
	return map[string]texts.Format{"stop": say.Stopped, "pause": say.Paused, "resume": say.Resumed, "tell": say.Told}
}

// manageSubagents lists the helpers at work, and does with them as it is told.
func manageSubagents(ctx context.Context, p *Pool, m chat.Message) string {
	_, args := chat.Word(m.Text)
	what, args := chat.Word(args)
	what = strings.ToLower(what)
	which, words := chat.Word(args)
	if err := p.know(ctx); err != nil {
		return p.commandFailed("look at the helpers", m.Session(), err)
	}
	done := orders(p.texts.Subagents)[what]
	switch {
	case what == "":
		return p.listed(ctx, m)
	case done == "" || which == "" || what == "tell" && words == "":
		return p.texts.Subagents.Usage
	}
	kids := p.kin.all(func(k *kid) bool {
		mine := m.From.Role == chat.Owner || k.From.ID == m.From.ID
		return mine && knows(m, k) && (which == "all" || strings.HasPrefix(k.ID, strings.ToLower(which)))
	})
	switch {
	case len(kids) == 0:
		return p.texts.Subagents.Unknown
	case len(kids) > 1 && which != "all":
		return p.texts.Subagents.Several
	}
	slices.SortFunc(kids, oldest)
	for _, k := range kids {
		if err := p.order(ctx, m, k, what, words); err != nil {
			return p.commandFailed(what+" helper "+k.ID, m.Session(), err)
		}
	}
	return done.With(p.namesOf(kids))
}

// namesOf names helpers as people know them.
func (p *Pool) namesOf(kids []kid) string {
	say := p.texts.Subagents
	var all []string
	for _, k := range kids {
		all = append(all, say.Named.With(label(k.Child), k.ID))
	}
	names := strings.Join(all, ", ")
	if len(kids) == 1 {
		return say.One.With(names)
	}
	return say.More.With(say.Some.Of(len(kids)), names)
}

// label is what people call c.
func label(c tools.Child) string { return cmp.Or(conversation.Inline(c.Label, 80), c.ID) }

// toldTo ends the ID of a message that a person wrote to the helper id.
func toldTo(id string) string { return "/" + id }

// order does with k what m says.
func (p *Pool) order(ctx context.Context, m chat.Message, k kid, what, words string) error {
	from, to := tools.ChildActive, tools.ChildPaused
	switch what {
	case "stop":
		return p.dismiss(ctx, k.ID, "It was stopped by "+cmp.Or(conversation.Inline(m.From.Name, 64), "a person")+".", k.At != m.At)
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

// listed tells which helpers are at work, and whose reports did not arrive.
func (p *Pool) listed(ctx context.Context, m chat.Message) string {
	undelivered, err := p.undelivered(ctx, m)
	if err != nil {
		return p.commandFailed("look at the helpers", m.Session(), err)
	}
	return conversation.Join(p.working(m), undelivered)
}

// undelivered lists the helpers whose reports the network has refused (P26).
func (p *Pool) undelivered(ctx context.Context, m chat.Message) (text string, err error) {
	all, err := p.Children(ctx, "")
	for _, c := range all {
		if c.Undelivered == "" || !knows(m, &kid{Child: c}) {
			continue
		}
		text += "\n" + p.texts.Subagents.Undelivered.With(c.ID, label(c), p.texts.Span.Of(time.Since(c.Ended)), conversation.Inline(c.Undelivered, 200))
		if c.At != m.At {
			text += ", " + p.texts.Subagents.For.With(c.At.Session())
		}
	}
	if text != "" {
		text = p.texts.Subagents.NotTold + "\n" + text
	}
	return text, err
}

// working lists the helpers at work.
func (p *Pool) working(m chat.Message) string {
	kids := p.kin.all(func(k *kid) bool { return knows(m, k) })
	if len(kids) == 0 {
		return p.texts.Subagents.None
	}
	slices.SortFunc(kids, oldest)
	say := p.texts.Subagents
	text := say.List + "\n"
	for _, k := range kids {
		p.mu.Lock()
		state := string(k.State)
		if r := p.running[helperSession(k.ID)]; r != nil {
			state = cmp.Or(state, r.doing)
		}
		p.mu.Unlock()
		text += fmt.Sprintf("\n- `%s` %s", k.ID, label(k.Child))
		if k.Agent != "" {
			text += " (" + conversation.Inline(k.Agent, 80) + ")"
		}
		text += " – " + say.Began.With(cmp.Or(state, p.texts.Doing.Turn), p.texts.Span.Of(time.Since(k.Began)))
		if k.rounds > 0 {
			text += ", " + say.Steps.Of(k.rounds)
		}
		if k.At != m.At {
			text += ", " + say.For.With(k.At.Session())
		}
	}
	return text
}
