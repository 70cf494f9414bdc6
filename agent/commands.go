package agent

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"parley/agent/budget"
	"parley/agent/conversation"
	"parley/chat"
	"parley/texts"
)

// A Command is something that is done without a model.
type Command struct {
	Name, Help string

	// Do answers it, in the order it was given among what is said in the session.
	// After a crash it may be done again for the same message, whose Key tells.
	// The error is for the log: the person reads that it could not be done. It is
	// nil of those that the Pool does itself.
	Do func(context.Context, chat.Message) (string, error)
}

// Commands returns those that each Pool has, in the order people are shown them,
// with help from say.
func Commands(say texts.Help) []Command {
	return []Command{
		{"new", say.New, nil},
		{"stop", say.Stop, nil},
		{"retry", say.Retry, nil},
		{"undo", say.Undo, nil},
		{"search", say.Search, nil},
		{"status", say.Status, nil},
		{"approvals", say.Approvals, nil},
		{"agents", say.Agents, nil},
		{"verbose", say.Verbose, nil},
		{"model", say.Model, nil},
		{"tools", say.Tools, nil},
		{"context", say.Context, nil},
		{"usage", say.Usage, nil},
		{"raise", say.Raise, nil},
		{"toolstats", say.ToolStats, nil},
		{"help", say.Help, nil},
	}
}

// deeds are what commands do as they come in, also beside a turn under way. To
// do one twice does no harm. Those that are nil pass through the inbox like any
// message: they change the conversation, in the order they were given, or take
// their time.
var deeds = map[string]func(*Pool, context.Context, chat.Message) string{
	"new": nil, "retry": nil, "search": nil, "undo": nil, "tools": nil, "context": nil,
	"verbose": (*Pool).cmdVerbose, "toolstats": (*Pool).cmdToolStats,
	"stop": (*Pool).cmdStop, "approvals": (*Pool).cmdApprovals, "status": (*Pool).cmdStatus, "model": (*Pool).cmdModel,
	"agents": (*Pool).cmdAgents, "usage": (*Pool).cmdUsage, "raise": (*Pool).cmdRaise, "help": (*Pool).cmdHelp, "start": (*Pool).cmdHelp,
	unknownCommand: (*Pool).cmdUnknown,
}

// chores are those commands that pass through the inbox and change no history.
var chores = map[string]func(*worker, context.Context, chat.Message) string{
	"search": (*worker).found, "undo": (*worker).cmdUndo, "tools": (*worker).cmdTools, "context": (*worker).cmdContext,
}

// command returns the command that a person gives by m, such as "new" for "/new", or "".
func (p *Pool) command(m chat.Message) string {
	word, _ := chat.Word(m.Text)
	name, ok := strings.CutPrefix(strings.ToLower(word), "/")
	if !ok || m.Origin != chat.FromPerson || m.In != "" {
		return ""
	}
	if _, known := deeds[name]; known || p.more(name) != nil {
		return name
	}
	if commandShape.MatchString(word) && len(m.Files) == 0 {
		return unknownCommand
	}
	return ""
}

// unknownCommand stands for a command that there is not. A model is not asked
// about it: whoever mistypes /stop wants no answer of a model.
const unknownCommand = "?"

// commandShape is what a command looks like, unlike a path such as /etc/hosts.
var commandShape = regexp.MustCompile(`^/[A-Za-z][A-Za-z0-9_-]{0,31}(@[A-Za-z0-9_]+)?$`)

func (p *Pool) cmdUnknown(_ context.Context, m chat.Message) string {
	word, _ := chat.Word(m.Text)
	return p.texts.Commands.Unknown.With(word)
}

// more returns the command called name that is not the Pool's own, or nil.
func (p *Pool) more(name string) *Command {
	if i := slices.IndexFunc(p.config.Commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		return &p.config.Commands[i]
	}
	return nil
}

// chore returns what does the command called name, if that passes through the
// inbox and changes no history.
func (w *worker) chore(name string) func(*worker, context.Context, chat.Message) string {
	c := w.pool.more(name)
	if c == nil {
		return chores[name]
	}
	return func(w *worker, ctx context.Context, m chat.Message) string {
		text, err := c.Do(ctx, m)
		if err != nil {
			return w.pool.sorry("do that", w.id, err)
		}
		return text
	}
}

// sorry notes why what could not be done, and says that a command was not.
func (p *Pool) sorry(what string, id chat.SessionID, err error) string {
	p.log.Error("not done: "+what, "session", id, "err", err)
	return p.texts.Commands.Failed
}

func (p *Pool) cmdHelp(_ context.Context, m chat.Message) string {
	var b strings.Builder
	b.WriteString(p.texts.Help.Intro + "\n")
	for _, c := range slices.Concat(Commands(p.texts.Help), p.config.Commands) {
		fmt.Fprintf(&b, "\n/%s – %s", c.Name, c.Help)
	}
	if m.From.Role == chat.Owner {
		b.WriteString("\n" + p.texts.Help.Owners)
	}
	return b.String()
}

// A Status is how a Pool does.
type Status struct {
	Running int           // turns under way
	Waiting int           // messages not answered yet, those of the turns under way included
	Oldest  time.Duration // since the oldest of the messages was said whose turns are under way; 0 if none is
	Up      time.Duration
}

// Status says how p does.
func (p *Pool) Status(ctx context.Context) (Status, error) {
	waiting, err := p.inbox.Len(ctx)
	if err != nil {
		return Status{}, fmt.Errorf("count messages not answered: %w", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Status{Running: len(p.running), Waiting: waiting, Up: time.Since(p.began)}
	for _, r := range p.running {
		if !r.said.IsZero() {
			s.Oldest = max(s.Oldest, time.Since(r.said))
		}
	}
	return s, nil
}

// activity says what is done in the session id.
func (p *Pool) activity(id chat.SessionID) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.running[id]
	if r == nil {
		return p.texts.Commands.Idle
	}
	return p.texts.Commands.Since.With(r.doing, p.texts.Span.Of(time.Since(r.since)))
}

func (p *Pool) cmdStatus(ctx context.Context, m chat.Message) string {
	id := m.Session()
	s, err := p.Status(ctx)
	if err = cmp.Or(err, p.know(ctx)); err != nil {
		return p.sorry("count what waits", id, err)
	}
	say := p.texts.Commands
	lines := []string{say.Am.With(p.activity(id))}
	if n := len(p.kin.all(func(k *kid) bool { return knows(m, k) })); n > 0 {
		lines = append(lines, say.SubagentsWork.Of(n))
	}
	lines = append(lines,
		say.ModelIs.With(p.modelOf(ctx, id)),
		say.Up.With(p.texts.Span.Of(s.Up), s.Running, s.Waiting),
	)
	sources, err := p.sessions.UntrustedIn(ctx, m.Session(), m.From.Role == chat.Owner)
	if err != nil {
		p.sorry("look for untrusted content", id, err)
	}
	if len(sources) > 0 {
		lines = append(lines, say.Untrusted.With("`"+strings.ReplaceAll(conversation.Inline(strings.Join(sources, ", "), 800), "`", "'")+"`"))
	}
	if m.From.Role == chat.Owner {
		lines = append(lines, p.deadLetters(ctx)...)
		if p.config.Report != nil {
			lines = append(lines, p.config.Report(ctx)...)
		}
	}
	return strings.Join(lines, "\n")
}

// deadLetters tells which messages could not be answered (P8).
func (p *Pool) deadLetters(ctx context.Context) (lines []string) {
	const most = 5
	all, err := p.letters.List(ctx)
	if err != nil {
		p.sorry("list the dead letters", "", err)
		return []string{p.texts.Commands.NotListed}
	}
	for _, a := range all[:min(len(all), most)] {
		line := p.texts.Commands.PutAside
		if a.Retried {
			line = p.texts.Commands.PutAsideOnce
		}
		lines = append(lines, line.With(a.Key))
	}
	if n := len(all) - most; n > 0 {
		lines = append(lines, p.texts.Commands.AndMore.With(n))
	}
	return lines
}

// modelOf returns the name of the model that answers in the session id.
func (p *Pool) modelOf(ctx context.Context, id chat.SessionID) string {
	s := p.settings.Load()
	st, _, err := p.sessions.Lookup(ctx, id)
	if err == nil && s.Models[st.Model].Model != nil {
		return st.Model
	}
	return s.Model
}

func (p *Pool) cmdModel(ctx context.Context, m chat.Message) string {
	s, id := p.settings.Load(), m.Session()
	names := slices.Sorted(maps.Keys(s.Models))
	_, want := chat.Word(m.Text)
	switch {
	case want == "":
		return p.texts.Commands.ModelHere.With(p.modelOf(ctx, id), strings.Join(names, ", "))
	case s.Models[want].Model == nil:
		return p.texts.Commands.ModelUnknown.With(strings.Join(names, ", "))
	}
	if err := p.sessions.Update(ctx, id, func(s *conversation.State) { s.Model = want }); err != nil {
		return p.sorry("note that", id, err)
	}
	return p.texts.Commands.ModelChosen.With(want)
}

func (p *Pool) cmdUsage(ctx context.Context, m chat.Message) string {
	say := p.texts.Commands
	who := p.spender(m)
	used := p.budget.Conversation(ctx, who.Session)
	text := say.Usage
	for _, name := range slices.Sorted(maps.Keys(used)) {
		u := used[name].Usage
		text += "\n" + say.UsageOf.With(name, amount(u.In), amount(u.Cached), amount(u.Out))
		if used[name].Priced() {
			text += say.UsageCost.With(used[name].Cost)
		}
	}
	if len(used) == 0 {
		text += " " + say.UsageNone
	}
	return conversation.Join(text, p.budget.Standings(ctx, who, m.From.Role == chat.Owner))
}

func amount(tokens int) string { return budget.Number(float64(tokens)) }
