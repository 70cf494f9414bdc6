package agent

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"parley/chat"
)

// listen hears jobs, with their files in the workspace. At the end of the house
// it hears nothing: their files are fetched after the next start.
func (t *turn) listen(ctx context.Context, jobs []job) error {
	fetched := t.fetch(ctx, jobs)
	if err := t.hard.Err(); fetched && err != nil {
		return err
	}
	t.hear(jobs)
	if !fetched {
		return nil
	}
	if err := t.flush(t.hard); err != nil { // not to be fetched again
		return err
	}
	return ctx.Err()
}

// fetch brings the files of jobs into the workspace, side by side, and says
// whether there were any. When ctx ends they stay where they are.
func (t *turn) fetch(ctx context.Context, jobs []job) bool {
	var g errgroup.Group
	g.SetLimit(4)
	n := 0
	for i := range jobs {
		m := &jobs[i].Message
		if t.Fetch == nil || t.history.knows(*m) || !slices.ContainsFunc(m.Files, away) {
			continue
		}
		if n++; n == 1 {
			t.doing("fetching files")
			if o := t.history.open; o != nil {
				t.show(ctx, o.first)
			} else if i == 0 { // it is what the reply will answer
				t.show(ctx, *m)
			}
		}
		g.Go(func() error {
			*m = t.Fetch(ctx, *m)
			return nil
		})
	}
	_ = g.Wait() // none of them returns one
	return n > 0
}

// away says whether f is still at the network, or was not listened to.
func away(f chat.File) bool { return f.Path == "" && f.Ref != "" || f.Voice }
