package subagents

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
)

// A BackgroundTask is a command that a tool runs in the background.
type BackgroundTask struct {
	ID      string
	What    string // the command
	Session chat.SessionID
	At      chat.Address // where it was asked for
	From    chat.Sender  // who asked for it
	Began   time.Time
}

// Background lists and stops them. The zero value has none.
type Background struct {
	// List returns those of a session, or all for "".
	List func(ctx context.Context, session chat.SessionID) ([]BackgroundTask, error)
	// Stop ends the tasks of a session whose IDs begin with prefix, and returns how many.
	Stop func(session chat.SessionID, prefix string) int
}

// StopMatching ends the tasks of a session that a person means by which: the beginning of an ID, or
// "all". It returns how many.
func (b Background) StopMatching(session chat.SessionID, which string) int {
	if b.Stop == nil {
		return 0
	}
	if which == "all" {
		which = ""
	}
	return b.Stop(session, strings.ToLower(which))
}

// Describe lists the tasks of a session, a line each.
func (b Background) Describe(ctx context.Context, session chat.SessionID, say *texts.Agent) (string, error) {
	if b.List == nil {
		return "", nil
	}
	all, err := b.List(ctx, session)
	if err != nil {
		return "", fmt.Errorf("list the commands in the background: %w", err)
	}
	var list strings.Builder
	for _, task := range all {
		what := strings.ReplaceAll(chat.Shorten(chat.OneLine(task.What), 80), "`", "'")
		began := say.Subagents.Began.With(say.Doing.Using.With("exec"), say.Span.Of(time.Since(task.Began)))
		fmt.Fprintf(&list, "\n- `%s` %s – %s", task.ID, what, began)
	}
	return list.String(), nil
}

// StoppedWith returns the end of an answer that was stopped together with n subagents.
func StoppedWith(say *texts.Agent, n int) string {
	if n == 0 {
		return say.Turn.Stopped
	}
	return say.Turn.StoppedWith.With(say.Subagents.Some.Of(n))
}
