package agent

import (
	"context"
	"fmt"

	"parley/agent/conversation"
	"parley/agent/rewind"
)

// isRetry reports whether d asks for another answer to what was said before.
func (d delivery) isRetry() bool { return d.command == "retry" || d.command == "regenerate" }

// goBack has the conversation go on where the first delivery says, with the tools that
// the person may use. It reports whether there is nothing left to answer. Doing it again
// after a crash finds the conversation at that place, and changes nothing.
func (in intake) goBack(ctx context.Context) (over bool, err error) {
	t := in.turn
	d := t.deliveries[0]
	if d.Branch == nil && !d.isRetry() || t.session.History.Knows(d.Message) {
		return false, nil
	}
	if err := t.prepare(ctx, d.Message); err != nil {
		return false, err
	}
	if d.Branch == nil {
		return false, nil
	}
	place, err := rewind.Find(ctx, t.pool.sessions, t.session.ID, t.session.State.Epoch, *d.Branch)
	if err != nil {
		return false, fmt.Errorf("go back in session %s: %w", t.session.ID, err)
	}
	if !place.Known || t.session.History.HasSuspended() {
		return true, t.worker.reply(d, t.pool.texts.Commands.CannotGoBack)
	}
	if !place.Away {
		return false, nil
	}
	t.session.Keep(conversation.Record{Branched: &conversation.Branch{From: place.From}, Left: place.Left(t.kit)})
	return false, t.pool.insist(t.worker.hard, "go back", func(ctx context.Context) error {
		return t.pool.sessions.GoBack(ctx, t.session)
	})
}
