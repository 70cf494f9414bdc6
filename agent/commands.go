package agent

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"parley/chat"
	"parley/texts"
)

// A Command is something that people ask for with a slash, and that is done
// without a model.
type Command struct {
	Name, Help string

	// Do answers it, in the order it was given among what is said in the session.
	// After a crash it may be done again for the same message, whose Key tells.
	// The error is for the log: the person reads that it could not be done. It is
	// nil for the commands that the Pool does itself.
	Do func(context.Context, chat.Message) (string, error)
}

// A builtin is a command that every Pool has. With neither now nor later it
// changes the conversation, and the worker of the session does it.
type builtin struct {
	name string
	help string // "": the command is not listed

	// now answers the command as it comes in, also beside a turn under way. To do
	// it twice does no harm.
	now func(context.Context, *Pool, chat.Message) string

	// later answers the command when it is its turn among what is said in the
	// session. It changes no history.
	later func(context.Context, *worker, chat.Message) string
}

// builtins returns the commands that every Pool has, in the order people are shown
// them, with help from say.
func builtins(say texts.Help) []builtin {
	return []builtin{
		{name: "new", help: say.New},
		{name: "stop", help: say.Stop, now: stopTurns},
		{name: "retry", help: say.Retry},
		{name: "undo", help: say.Undo, later: undoTurn},
		{name: "search", help: say.Search, later: searchChat},
		{name: "status", help: say.Status, now: showStatus},
		{name: "approvals", help: say.Approvals, now: manageApprovals},
		{name: "agents", help: say.Agents, now: manageSubagents},
		{name: "verbose", help: say.Verbose, now: setVerbose},
		{name: "model", help: say.Model, now: chooseModel},
		{name: "tools", help: say.Tools, later: listTools},
		{name: "tool", help: say.Tool, now: explainTool},
		{name: "context", help: say.Context, later: showContext},
		{name: "usage", help: say.Usage, now: showUsage},
		{name: "raise", help: say.Raise, now: raiseLimit},
		{name: "toolstats", help: say.ToolStats, now: showToolStats},
		{name: "help", help: say.Help, now: showHelp},
		{name: "start", now: showHelp},
		{name: unknownCommand, now: answerUnknown},
	}
}

// Commands returns the listed commands that every Pool has, in the order people
// are shown them, with help from say.
func Commands(say texts.Help) (all []Command) {
	for _, b := range builtins(say) {
		if b.help != "" {
			all = append(all, Command{Name: b.name, Help: b.help})
		}
	}
	return all
}

// builtin returns the command called name that every Pool has, nil if there is none.
func (p *Pool) builtin(name string) *builtin {
	all := builtins(p.texts.Help)
	if i := slices.IndexFunc(all, func(b builtin) bool { return b.name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// configured returns the command called name that is not the Pool's own, nil if
// there is none.
func (p *Pool) configured(name string) *Command {
	all := p.config.Commands
	if i := slices.IndexFunc(all, func(c Command) bool { return c.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// unknownCommand stands for a command that does not exist. No model is asked about
// it: whoever mistypes /stop does not want a model's answer.
const unknownCommand = "?"

// commandShape is what a command looks like, unlike a path such as /etc/hosts.
var commandShape = regexp.MustCompile(`^/[A-Za-z][A-Za-z0-9_-]{0,31}(@[A-Za-z0-9_]+)?$`)

// command returns the command that a person gives by m, such as "new" for "/new",
// and "" if m is no command.
func (p *Pool) command(m chat.Message) string {
	word, _ := chat.Word(m.Text)
	name, slash := strings.CutPrefix(strings.ToLower(word), "/")
	if !slash || m.Origin != chat.FromPerson || m.In != "" || m.Options != nil {
		return ""
	}
	if p.builtin(name) != nil || p.configured(name) != nil {
		return name
	}
	if commandShape.MatchString(word) && len(m.Files) == 0 {
		return unknownCommand
	}
	return ""
}

// runNow answers m, which gives the command called name, if that is one to be
// answered as it comes in.
func (p *Pool) runNow(ctx context.Context, name string, m chat.Message) (text string, done bool) {
	b := p.builtin(name)
	if b == nil || b.now == nil {
		return "", false
	}
	text = p.texts.Turn.Panic
	p.guarded("/"+name, func() { text = b.now(ctx, p, m) })
	return text, true
}

// later returns what answers the command called name when it is its turn, nil if
// it is not such a command.
func (p *Pool) later(name string) func(context.Context, *worker, chat.Message) string {
	c := p.configured(name)
	if c == nil {
		if b := p.builtin(name); b != nil {
			return b.later
		}
		return nil
	}
	return func(ctx context.Context, w *worker, m chat.Message) string {
		text, err := c.Do(ctx, m)
		if err != nil {
			return p.commandFailed("do that", w.id, err)
		}
		return text
	}
}

// commandFailed logs why a command could not do what, and returns what the person
// is told.
func (p *Pool) commandFailed(what string, id chat.SessionID, err error) string {
	p.log.Error("command failed", "doing", what, "session", id, "err", err)
	return p.texts.Commands.Failed
}

func answerUnknown(_ context.Context, p *Pool, m chat.Message) string {
	word, _ := chat.Word(m.Text)
	return p.texts.Commands.Unknown.With(word)
}

func showHelp(_ context.Context, p *Pool, m chat.Message) string {
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
