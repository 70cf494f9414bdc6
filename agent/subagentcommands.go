package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/agent/activity"
	"parley/agent/conversation"
	"parley/agent/subagents"
	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// route returns m as it goes into the inbox: what a person says while a turn
// waits for a subagent that listens goes to that subagent (C-033).
func (p *Pool) route(ctx context.Context, m chat.Message, command string) chat.Message {
	if m.Origin != chat.FromPerson || m.In != "" || command != "" {
		return m
	}
	listener, err := p.subagents.Listener(ctx, m.Session())
	if err != nil {
		p.log.Error("subagents could not be loaded yet", "err", err)
	}
	if listener != m.Session() {
		m.In = listener
	}
	return m
}

// stopTurns ends the turn under way and all subagents of the session (D-093). What
// the turn begins from then on finds that it is stopped.
func stopTurns(ctx context.Context, p *Pool, m chat.Message) string {
	mine := func(c tools.Subagent) bool {
		ofRun := c.At == m.At && strings.HasPrefix(string(c.Parent), runPrefix)
		return (ofRun || c.Parent == m.Session()) && !c.Said.After(m.Time)
	}
	n, err := p.subagents.Count(ctx, mine)
	running := p.activities.Interrupt(m, n, func(id chat.SessionID, a *activity.Activity) bool {
		return id == m.Session() || a.At == m.At && strings.HasPrefix(string(id), runPrefix)
	})
	switch err = errors.Join(err, p.subagents.CancelAll(ctx, mine)); {
	case err != nil:
		p.commandFailed("stop all subagents", m.Session(), err)
		return p.texts.Subagents.NotAll
	case running:
		return "" // the turn says so itself, in its last words
	case n > 0:
		return p.texts.Subagents.Stopped.With(p.texts.Subagents.Some.Of(n))
	}
	return p.texts.Commands.NoStop
}

// stoppedWith ends the answer that was stopped together with n subagents.
func stoppedWith(say *texts.Agent, n int) string {
	if n == 0 {
		return say.Turn.Stopped
	}
	return say.Turn.StoppedWith.With(say.Subagents.Some.Of(n))
}

// actionTexts tells for each action of /agents what is said when it is done.
func actionTexts(say texts.Subagents) map[string]texts.Format {
	return map[string]texts.Format{"stop": say.Stopped, "pause": say.Paused, "resume": say.Resumed, "tell": say.Told}
}

// manageSubagents lists the subagents at work, or stops, pauses, resumes or tells them
// something.
func manageSubagents(ctx context.Context, p *Pool, m chat.Message) string {
	_, args := chat.Word(m.Text)
	action, args := chat.Word(args)
	action = strings.ToLower(action)
	which, words := chat.Word(args)
	if action == "" {
		return listSubagents(ctx, p, m)
	}
	done := actionTexts(p.texts.Subagents)[action]
	if done == "" || which == "" || action == "tell" && words == "" {
		return p.texts.Subagents.Usage
	}
	visible := subagents.VisibleTo(m)
	chosen, err := p.subagents.Working(ctx, func(c tools.Subagent) bool {
		mine := m.From.Role == chat.Owner || c.From.ID == m.From.ID
		return mine && visible(c) && (which == "all" || strings.HasPrefix(c.ID, strings.ToLower(which)))
	})
	switch {
	case err != nil:
		return p.commandFailed("look at the subagents", m.Session(), err)
	case len(chosen) == 0:
		return p.texts.Subagents.Unknown
	case len(chosen) > 1 && which != "all":
		return p.texts.Subagents.Several
	}
	for _, c := range chosen {
		if err := control(ctx, p, m, c, action, words); err != nil {
			return p.commandFailed(action+" subagent "+c.ID, m.Session(), err)
		}
	}
	return done.With(namesOf(p, chosen))
}

// control does with c what m says.
func control(ctx context.Context, p *Pool, m chat.Message, c tools.Subagent, action, words string) error {
	switch action {
	case "stop":
		who := cmp.Or(conversation.Inline(m.From.Name, 64), "a person")
		return p.subagents.Cancel(ctx, c.ID, "It was stopped by "+who+".", c.At != m.At)
	case "tell":
		m.ID += toldTo(c.ID)
		m.Text = words
		m.In = subagents.SessionOf(c.ID)
		return p.push(ctx, m)
	case "pause":
		return p.subagents.Move(ctx, c.ID, tools.SubagentPaused, nil)
	}
	return p.subagents.Move(ctx, c.ID, tools.SubagentActive, nil)
}

// toldTo ends the ID of a message that a person wrote to the subagent id.
func toldTo(id string) string { return "/" + id }

// namesOf names subagents as people know them.
func namesOf(p *Pool, all []tools.Subagent) string {
	say := p.texts.Subagents
	var names []string
	for _, c := range all {
		names = append(names, say.Named.With(label(c), c.ID))
	}
	joined := strings.Join(names, ", ")
	if len(all) == 1 {
		return say.One.With(joined)
	}
	return say.More.With(say.Some.Of(len(all)), joined)
}

// label is what people call c.
func label(c tools.Subagent) string { return cmp.Or(conversation.Inline(c.Label, 80), c.ID) }

// listSubagents tells which subagents are at work, and which reports did not arrive.
func listSubagents(ctx context.Context, p *Pool, m chat.Message) string {
	working, err := p.subagents.Working(ctx, subagents.VisibleTo(m))
	all, bad := p.subagents.List(ctx, "")
	if err = cmp.Or(err, bad); err != nil {
		return p.commandFailed("look at the subagents", m.Session(), err)
	}
	return conversation.Join(listWorking(p, m, working), listUndelivered(p, m, all))
}

// listUndelivered lists the subagents whose reports the network has refused (P26).
func listUndelivered(p *Pool, m chat.Message, all []tools.Subagent) string {
	say := p.texts.Subagents
	visible := subagents.VisibleTo(m)
	list := ""
	for _, c := range all {
		if c.Undelivered == "" || !visible(c) {
			continue
		}
		ago := p.texts.Span.Of(time.Since(c.Ended))
		why := conversation.Inline(c.Undelivered, 200)
		list += "\n" + say.Undelivered.With(c.ID, label(c), ago, why) + chatOf(p, m, c)
	}
	if list == "" {
		return ""
	}
	return say.NotTold + "\n" + list
}

// chatOf tells for which chat c works, unless it is that of m.
func chatOf(p *Pool, m chat.Message, c tools.Subagent) string {
	if c.At == m.At {
		return ""
	}
	return ", " + p.texts.Subagents.For.With(c.At.Session())
}

// listWorking lists the subagents at work.
func listWorking(p *Pool, m chat.Message, working []tools.Subagent) string {
	say := p.texts.Subagents
	if len(working) == 0 {
		return say.None
	}
	list := say.List + "\n"
	for _, c := range working {
		list += fmt.Sprintf("\n- `%s` %s", c.ID, label(c))
		if c.Agent != "" {
			list += " (" + conversation.Inline(c.Agent, 80) + ")"
		}
		list += " – " + say.Began.With(activityOf(p, c), p.texts.Span.Of(time.Since(c.Began)))
		if rounds := p.subagents.Roster().Rounds(c.ID); rounds > 0 {
			list += ", " + say.Steps.Of(rounds)
		}
		list += chatOf(p, m, c)
	}
	return list
}

// activityOf tells what c is doing.
func activityOf(p *Pool, c tools.Subagent) string {
	a, _ := p.activities.Get(subagents.SessionOf(c.ID))
	return cmp.Or(string(c.State), a.Doing, p.texts.Doing.Turn)
}
