// Package timeline tells people which steps led to a reply, also long after: it reads them from
// the log of the session, the one place that has them.
package timeline

import (
	"context"
	"errors"
	"slices"

	"parley/agent/conversation"
	"parley/agent/live"
	"parley/chat"
	"parley/store"
	"parley/texts"
	"parley/tools"
)

const maxResult = 8000 // characters of a result

// A Pool has the logs of sessions, and the tools that there are now.
type Pool interface {
	Sessions() *conversation.Sessions
	Tools(ctx context.Context, id chat.SessionID) *tools.Kit
}

// Of returns a function that returns the steps to a reply of a session of p.
func Of(p Pool, say texts.Steps) func(ctx context.Context, id chat.SessionID, reply string) ([]chat.Step, error) {
	return func(ctx context.Context, id chat.SessionID, reply string) ([]chat.Step, error) {
		return Steps(ctx, p.Sessions(), p.Tools(ctx, id), say, id, reply)
	}
}

// Steps returns the steps of the turn of the session id that the reply with that ID ended, in the order
// in which the model asked for them, as they were shown meanwhile. kit has the tools that there
// are now. Without that turn, which may have been removed since, there are none.
func Steps(
	ctx context.Context, sessions *conversation.Sessions, kit *tools.Kit, say texts.Steps,
	id chat.SessionID, reply string,
) ([]chat.Step, error) {
	var t turn
	for r, err := range sessions.Journal(ctx, id) {
		switch {
		case errors.Is(err, store.ErrNotFound):
			return nil, nil
		case err != nil:
			return nil, err
		case r.Damaged != nil:
		case r.Ended != nil && r.Ended.Reply != nil && r.Ended.Reply.ID == reply:
			return t.ended(), nil
		case r.Ended != nil:
			t = turn{}
		case r.IsAnswer():
			for _, c := range r.Said.Calls {
				t.steps = append(t.steps, live.Describe(say, kit, c))
			}
		case r.Finished != nil:
			t.finish(r.Record)
		}
	}
	return nil, nil
}

// A turn is what was read of a turn so far: the calls that it asked for, some of which may have no end.
type turn struct{ steps []chat.Step }

// finish adds what came of a call.
func (t *turn) finish(r conversation.Record) {
	for i, s := range slices.Backward(t.steps) {
		if s.Call != r.Finished.Call || s.State.Over() {
			continue
		}
		var result tools.Result
		if r.Result != nil {
			result = *r.Result
		}
		news := live.Outcome(*r.Finished, result, maxResult)
		news.Tool = s.Tool
		if !result.Time.IsZero() {
			news.Began = result.Time
			news.Ended = result.Time.Add(result.Took)
		}
		pictures := news.Pictures
		t.steps[i] = s.Merge(news)
		t.steps[i].Pictures = pictures
		return
	}
}

// ended returns the steps that have ended.
func (t *turn) ended() []chat.Step {
	return slices.DeleteFunc(t.steps, func(s chat.Step) bool { return !s.State.Over() })
}
