package agent

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/agent/activity"
	"parley/agent/sessioncommands"
	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/tools"
)

// A Command is something that people ask for with a slash, and that is done
// without a model.
type Command struct {
	Name, Help string // Help is "" if the command is not listed
	When       Moment

	// Do answers the command. After a crash it may be called again for the same
	// message, whose Key tells. The error is for the log: the person reads that it
	// could not be done. It must return when its context ends. nil: the turn of the
	// message knows what to do.
	Do func(context.Context, chat.Message) (string, error)
}

// A Moment is when a command is answered.
type Moment int

const (
	// BesideTurns is beside a turn under way in the session, which may be waiting for a
	// person: after the commands that were given before, and before what is said later,
	// if that takes no longer than commandLead.
	BesideTurns Moment = iota

	// InOrder is when it is its turn among what is said in the session: the command is
	// about what was said or done before it.
	InOrder

	// AtOnce is before Deliver returns: it takes no time, and to do it twice does no harm.
	AtOnce
)

const (
	commandLead    = 5 * time.Second // for so long a turn waits for commands that were given before it
	commandTimeout = time.Minute     // of a command that is answered beside turns
	maxCommands    = 64              // that are answered beside turns, of all sessions
)

// ofPool answers a command that every Pool has.
type ofPool func(context.Context, *Pool, chat.Message) (string, error)

// ownCommands returns the commands that every Pool has, in the order people are shown
// them, with help from say. p may be nil if nobody gives them.
func ownCommands(p *Pool, say texts.Help) []Command {
	by := func(do ofPool) func(context.Context, chat.Message) (string, error) {
		return func(ctx context.Context, m chat.Message) (string, error) { return do(ctx, p, m) }
	}
	return []Command{
		{Name: "new", Help: say.New, When: InOrder},
		{Name: "stop", Help: say.Stop, When: AtOnce, Do: by(stopTurns)},
		{Name: "retry", Help: say.Retry, When: InOrder},
		{Name: "regenerate", When: InOrder}, // another name of it
		{Name: "undo", Help: say.Undo, When: InOrder, Do: by(undoTurn)},
		{Name: "search", Help: say.Search, When: BesideTurns, Do: by(ofSession(sessioncommands.Commands.Search))},
		{Name: "why", Help: say.Why, When: BesideTurns, Do: by(ofSession(sessioncommands.Commands.Why))},
		{Name: "status", Help: say.Status, When: AtOnce, Do: by(showStatus)},
		{Name: "approvals", Help: say.Approvals, Do: by(ofSession(sessioncommands.Commands.Approvals))},
		{Name: "agents", Help: say.Agents, When: AtOnce, Do: by(manageSubagents)},
		{Name: "verbose", Help: say.Verbose, When: AtOnce, Do: by(ofSession(sessioncommands.Commands.Verbose))},
		{Name: "model", Help: say.Model, When: AtOnce, Do: by(chooseModel)},
		{Name: "tools", Help: say.Tools, When: InOrder, Do: by(listTools)},
		{Name: "tool", Help: say.Tool, When: AtOnce, Do: by(explainTool)},
		{Name: "context", Help: say.Context, When: InOrder, Do: by(showContext)},
		{Name: "usage", Help: say.Usage, When: AtOnce, Do: by(showUsage)},
		{Name: "raise", Help: say.Raise, When: AtOnce, Do: by(raiseLimit)},
		{Name: "toolstats", Help: say.ToolStats, When: AtOnce, Do: by(showToolStats)},
		{Name: "help", Help: say.Help, When: AtOnce, Do: by(showHelp)},
		{Name: "start", When: AtOnce, Do: by(showHelp)},
		{Name: unknownCommand, When: AtOnce, Do: by(answerUnknown)},
	}
}

// Commands returns the listed commands that every Pool has, in the order people
// are shown them, with help from say. They cannot be carried out without a Pool.
func Commands(say texts.Help) []Command {
	return slices.DeleteFunc(ownCommands(nil, say), func(c Command) bool { return c.Help == "" })
}

// findCommand returns the command called name, nil if there is none.
func (p *Pool) findCommand(name string) *Command {
	if i := slices.IndexFunc(p.commands, func(c Command) bool { return c.Name == name }); i >= 0 {
		return &p.commands[i]
	}
	return nil
}

// unknownCommand stands for a command that does not exist. No model is asked about
// it: whoever mistypes /stop does not want a model's answer.
const unknownCommand = "?"

// command returns the command that a person gives by m, such as "new" for "/new",
// and "" if m is no command.
func (p *Pool) command(m chat.Message) string {
	word, _ := chat.Word(m.Text)
	name, slash := strings.CutPrefix(strings.ToLower(word), "/")
	if !slash || m.Origin != chat.FromPerson || m.In != "" || m.Options != nil {
		return ""
	}
	if p.findCommand(name) != nil {
		return name
	}
	if chat.IsCommand(word) && len(m.Files) == 0 && !tools.IsCommand(name) {
		return unknownCommand
	}
	return ""
}

// carryOut does what m, which gives the command c, asks for, and returns what the
// person is told, and whether it was done.
func (p *Pool) carryOut(ctx context.Context, c *Command, m chat.Message) (text string, done bool) {
	text = p.texts.Turn.Panic
	p.guarded("/"+c.Name, func() {
		answer, err := c.Do(ctx, m)
		if errors.Is(context.Cause(ctx), tools.ErrClosing) && err != nil {
			return // it is begun again by the next process
		}
		if err != nil {
			p.log.Error("command failed", "command", c.Name, "session", m.Session(), "err", err)
			text = p.texts.Commands.Failed
			return
		}
		text = answer
		done = true
	})
	return text, done
}

// commandsKey ends the key of the work that the commands of a session are, beside
// its turns.
const commandsKey = "\x00commands"

// receive takes note of an item that the inbox brings, and returns the key of the work
// that it is: the session that it belongs to, with commandsKey if it is answered beside
// the turns of the session. A message that leaves the conversation or the branch under way
// ends the turn there. One that was delivered twice is brought once, and ends it once.
func (p *Pool) receive(item store.Item) (key string) {
	var m chat.Message
	if json.Unmarshal(item.Body, &m) != nil {
		return ""
	}
	name := p.command(m)
	c := p.findCommand(name)
	if c != nil && c.When == BesideTurns {
		return string(m.Session()) + commandsKey
	}
	leaves := name == "new" || m.Branch != nil && (c == nil || c.Do == nil)
	if leaves && !item.Again { // of what an earlier process left, all that was said is answered
		if m.Branch != nil { // what would be said in the branch that is left is of no use, and no answer to m
			m.ID = ""
		}
		p.activities.Interrupt(m, 0, func(id chat.SessionID, _ *activity.Activity) bool { return id == m.Session() })
	}
	return string(m.Session())
}

// ofSession returns what answers a command by do.
func ofSession(do func(sessioncommands.Commands, context.Context, chat.Message) (string, error)) ofPool {
	return func(ctx context.Context, p *Pool, m chat.Message) (string, error) {
		c := sessioncommands.Commands{
			Sessions: p.sessions, Texts: p.texts, Zone: p.config.Zone, Explain: p.config.Explain,
		}
		return do(c, ctx, m)
	}
}

func answerUnknown(_ context.Context, p *Pool, m chat.Message) (string, error) {
	return sessioncommands.Unknown(p.texts.Commands, p.listed(), m), nil
}

func showHelp(_ context.Context, p *Pool, m chat.Message) (string, error) {
	return sessioncommands.Help(p.texts.Help, p.listed(), m), nil
}

// listed returns the commands that people are shown.
func (p *Pool) listed() (all []sessioncommands.Listed) {
	for _, c := range p.commands {
		if c.Help != "" {
			all = append(all, sessioncommands.Listed{Name: c.Name, Help: c.Help})
		}
	}
	return all
}
