package subagents

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
	"parley/tools"
)

// A Command is the slash command /agents: it lists the subagents at work, or stops,
// pauses, resumes or tells them something.
type Command struct {
	Supervisor *Supervisor
	Texts      *texts.Agent
	Deliver    func(context.Context, chat.Message) error // puts a message into the inbox
	Doing      func(chat.SessionID) string               // what is under way in a session
	Background Background
}

// actionTexts tells for each action of /agents what is said when it is done.
func actionTexts(say texts.Subagents) map[string]texts.Format {
	return map[string]texts.Format{"stop": say.Stopped, "pause": say.Paused, "resume": say.Resumed, "tell": say.Told}
}

// Answer does what m says, and returns what the person is told.
func (c Command) Answer(ctx context.Context, m chat.Message) (string, error) {
	_, args := chat.Word(m.Text)
	action, args := chat.Word(args)
	action = strings.ToLower(action)
	which, words := chat.Word(args)
	if action == "" {
		return c.list(ctx, m)
	}
	done := actionTexts(c.Texts.Subagents)[action]
	if done == "" || which == "" || action == "tell" && words == "" {
		return c.Texts.Subagents.Usage, nil
	}
	visible := VisibleTo(m)
	chosen, err := c.Supervisor.Working(ctx, func(s tools.Subagent) bool {
		mine := m.From.Role == chat.Owner || s.From.ID == m.From.ID
		return mine && visible(s) && (which == "all" || strings.HasPrefix(s.ID, strings.ToLower(which)))
	})
	if err != nil {
		return "", fmt.Errorf("look at the subagents: %w", err)
	}
	commands := 0
	if action == "stop" {
		commands = c.Background.StopMatching(m.Session(), which)
	}
	switch {
	case len(chosen) == 0 && commands > 0:
		return done.With(c.Texts.Subagents.Some.Of(commands)), nil
	case len(chosen) == 0:
		return c.Texts.Subagents.Unknown, nil
	case len(chosen) > 1 && which != "all":
		return c.Texts.Subagents.Several, nil
	}
	for _, s := range chosen {
		if err := c.control(ctx, m, s, action, words); err != nil {
			return "", fmt.Errorf("%s subagent %s: %w", action, s.ID, err)
		}
	}
	return done.With(c.namesOf(chosen)), nil
}

// control does with s what m says.
func (c Command) control(ctx context.Context, m chat.Message, s tools.Subagent, action, words string) error {
	switch action {
	case "stop":
		who := cmp.Or(chat.Inline(m.From.Name, 64), "a person")
		return c.Supervisor.Cancel(ctx, s.ID, "It was stopped by "+who+".", s.At != m.At)
	case "tell":
		m.ID += toldTo(s.ID)
		m.Text = words
		m.In = SessionOf(s.ID)
		return c.Deliver(ctx, m)
	case "pause":
		return c.Supervisor.Move(ctx, s.ID, tools.SubagentPaused, nil)
	}
	return c.Supervisor.Move(ctx, s.ID, tools.SubagentActive, nil)
}

// toldTo ends the ID of a message that a person wrote to the subagent id.
func toldTo(id string) string { return "/" + id }

// IsToldTo reports whether a person wrote m to the subagent id.
func IsToldTo(id string, m chat.Message) bool { return strings.HasSuffix(m.ID, toldTo(id)) }

// namesOf names subagents as people know them.
func (c Command) namesOf(all []tools.Subagent) string {
	say := c.Texts.Subagents
	var names []string
	for _, s := range all {
		names = append(names, say.Named.With(Label(s), s.ID))
	}
	joined := strings.Join(names, ", ")
	if len(all) == 1 {
		return say.One.With(joined)
	}
	return say.More.With(say.Some.Of(len(all)), joined)
}

// Label returns what people call s.
func Label(s tools.Subagent) string { return cmp.Or(chat.Inline(s.Label, 80), s.ID) }

// list tells which subagents are at work, and which reports did not arrive.
func (c Command) list(ctx context.Context, m chat.Message) (string, error) {
	working, err := c.Supervisor.Working(ctx, VisibleTo(m))
	all, bad := c.Supervisor.List(ctx, "")
	if err = cmp.Or(err, bad); err != nil {
		return "", fmt.Errorf("look at the subagents: %w", err)
	}
	commands, err := c.Background.Describe(ctx, m.Session(), c.Texts)
	if err != nil {
		return "", err
	}
	text := c.listWorking(m, working, commands)
	if undelivered := c.listUndelivered(m, all); undelivered != "" {
		text += "\n\n" + undelivered
	}
	return text, nil
}

// listUndelivered lists the subagents whose reports the network has refused (P26).
func (c Command) listUndelivered(m chat.Message, all []tools.Subagent) string {
	say := c.Texts.Subagents
	visible := VisibleTo(m)
	list := ""
	for _, s := range all {
		if s.Undelivered == "" || !visible(s) {
			continue
		}
		ago := c.Texts.Span.Of(time.Since(s.Ended))
		why := chat.Inline(s.Undelivered, 200)
		list += "\n" + say.Undelivered.With(s.ID, Label(s), ago, why) + c.chatOf(m, s)
	}
	if list == "" {
		return ""
	}
	return say.NotTold + "\n" + list
}

// chatOf tells for which chat s works, unless it is that of m.
func (c Command) chatOf(m chat.Message, s tools.Subagent) string {
	if s.At == m.At {
		return ""
	}
	return ", " + c.Texts.Subagents.For.With(s.At.Session())
}

// listWorking lists the subagents at work, and below them the commands.
func (c Command) listWorking(m chat.Message, working []tools.Subagent, commands string) string {
	say := c.Texts.Subagents
	if len(working) == 0 && commands == "" {
		return say.None
	}
	list := say.List + "\n"
	for _, s := range working {
		list += fmt.Sprintf("\n- `%s` %s", s.ID, Label(s))
		if s.Agent != "" {
			list += " (" + chat.Inline(s.Agent, 80) + ")"
		}
		doing := cmp.Or(string(s.State), c.Doing(SessionOf(s.ID)), c.Texts.Doing.Turn)
		list += " – " + say.Began.With(doing, c.Texts.Span.Of(time.Since(s.Began)))
		if rounds := c.Supervisor.Roster().Rounds(s.ID); rounds > 0 {
			list += ", " + say.Steps.Of(rounds)
		}
		list += c.chatOf(m, s)
	}
	return list + commands
}
