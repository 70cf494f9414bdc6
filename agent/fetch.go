package agent

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"parley/agent/conversation"
	"parley/chat"
)

// listen hears jobs, with their files in the workspace. At the end of the house
// it hears nothing: their files are fetched after the next start.
func (t *turn) listen(ctx context.Context, jobs []job) error {
	todo := t.afar(jobs)
	if len(todo) == 0 {
		t.hear(jobs)
		return nil
	}
	t.doing(t.pool.texts.Doing.Fetching)
	if o := t.openTurn(); o != nil {
		t.show(ctx, o.First())
	} else if todo[0] == &jobs[0].Message { // it is what the reply will answer
		t.show(ctx, *todo[0])
	}
	t.fetch(ctx, todo)
	if err := t.worker.hard.Err(); err != nil {
		return err
	}
	t.hear(jobs)
	if err := t.flush(t.worker.hard); err != nil { // not to be fetched again
		return err
	}
	return ctx.Err()
}

// show opens the live view of the reply to m, unless it is open.
func (t *turn) show(ctx context.Context, m chat.Message) {
	open := t.pool.config.Live
	if open != nil && !t.live.IsOpen() && m.In == "" && !conversation.IsQuiet(m) {
		t.live.Open(open(ctx, m.Reply()), t.session.State.Quiet)
	}
}

// afar returns those of jobs that have files at the network.
func (t *turn) afar(jobs []job) (ms []*chat.Message) {
	for i := range jobs {
		m := &jobs[i].Message
		if t.pool.config.Fetch != nil && !t.session.History.Knows(*m) && slices.ContainsFunc(m.Files, away) {
			ms = append(ms, m)
		}
	}
	return ms
}

// away says whether f is still at the network, or was not listened to.
func away(f chat.File) bool { return f.Path == "" && f.Ref != "" || f.Voice }

// fetch brings the files of ms into the workspace, side by side. When ctx ends,
// and after a panic, they stay where they are.
func (t *turn) fetch(ctx context.Context, ms []*chat.Message) {
	var g errgroup.Group
	g.SetLimit(4)
	for _, m := range ms {
		g.Go(func() error {
			t.pool.guarded("fetch files", func() { *m = t.pool.config.Fetch(ctx, *m) })
			return nil
		})
	}
	_ = g.Wait() // none of them returns one
}
