package agent

import (
	"cmp"
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"parley/agent/conversation"
	"parley/agent/rewind"
	"parley/chat"
	"parley/llm"
)

// An intake records what the messages of a turn say, with their files.
type intake struct{ turn *turn }

// take records what was said in deliveries, with the files in the workspace. While
// shutting down it records nothing: the files are fetched after the next start.
func (in intake) take(ctx context.Context, deliveries []delivery) error {
	t := in.turn
	remote := in.withRemoteFiles(deliveries)
	if len(remote) == 0 {
		in.hear(deliveries)
		return nil
	}
	t.doing(t.pool.texts.Doing.Fetching)
	if o := t.openTurn(); o != nil {
		in.openView(ctx, o.First())
	} else if remote[0] == &deliveries[0].Message { // it is what the reply will answer
		in.openView(ctx, *remote[0])
	}
	in.fetch(ctx, remote)
	if err := t.worker.hard.Err(); err != nil {
		return err
	}
	in.hear(deliveries)
	if err := t.flush(t.worker.hard); err != nil { // the files are not to be fetched again
		return err
	}
	return ctx.Err()
}

// openView opens the live view of the reply to m, unless it is open.
func (in intake) openView(ctx context.Context, m chat.Message) {
	t := in.turn
	open := t.pool.config.Live
	if open != nil && !t.live.IsOpen() && m.In == "" && !conversation.IsQuiet(m) {
		t.live.Open(open(ctx, m.Reply()), t.session.State.Quiet)
	}
}

// withRemoteFiles returns the messages of deliveries that have files at the network.
func (in intake) withRemoteFiles(deliveries []delivery) (ms []*chat.Message) {
	if in.turn.pool.config.Fetch == nil {
		return nil
	}
	for i := range deliveries {
		m := &deliveries[i].Message
		if !in.turn.session.History.Knows(*m) && slices.ContainsFunc(m.Files, isRemote) {
			ms = append(ms, m)
		}
	}
	return ms
}

// isRemote reports whether f is still at the network, or is a voice message that
// was not transcribed.
func isRemote(f chat.File) bool { return f.Path == "" && f.Ref != "" || f.Voice }

// fetch brings the files of ms into the workspace, side by side. When ctx ends,
// and after a panic, they stay where they are.
func (in intake) fetch(ctx context.Context, ms []*chat.Message) {
	pool := in.turn.pool
	var g errgroup.Group
	g.SetLimit(4)
	for _, m := range ms {
		g.Go(func() error {
			pool.guarded("fetch files", func() { *m = pool.config.Fetch(ctx, *m) })
			return nil
		})
	}
	_ = g.Wait() // none of them returns an error
}

// hear records what was said in deliveries, unless it is recorded already. It leaves no
// turn open if nothing is to be answered.
func (in intake) hear(deliveries []delivery) {
	session := in.turn.session
	for _, d := range deliveries {
		m := d.Message
		switch {
		case session.History.Knows(m):
		case !d.isRetry():
			session.Keep(conversation.Record{Heard: &m})
		case !session.History.IsEmpty() && !in.isOfRemovedJob():
			if o := session.History.LastTurn().First.Options; o != nil { // it is done again as it was done before
				m.Options = &chat.RunOptions{
					Model: o.Model, Tool: o.Tool, Args: o.Args, RetriedJob: cmp.Or(o.Job, o.RetriedJob),
				}
			}
			left := rewind.ChangingSteps(session.History.LastTurn().Steps, in.turn.kit)
			session.Keep(conversation.Record{Retried: &m, Left: left})
		}
	}
}

// beginByCommand has the turn begin with the call that its message stands for, if it is a command of a tool.
// It reports whether the turn is over, because there is no such call.
func (in intake) beginByCommand(ctx context.Context) (over bool, err error) {
	t := in.turn
	m := t.openTurn().First()
	if t.kit.Command == nil || m.Origin != chat.FromPerson || m.In != "" || len(t.openTurn().AllAnswers()) > 0 {
		return false, nil
	}
	calls, problem := t.kit.Command(m.Text)
	if problem != "" {
		return true, t.end(t.worker.hard, conversation.Answered, problem)
	}
	if len(calls) == 0 {
		return false, nil
	}
	if err := t.spend(ctx); err != nil {
		return true, t.limited(err)
	}
	t.session.Keep(conversation.Record{Said: &llm.Message{Role: llm.Assistant, Calls: calls}})
	return false, nil
}

// isOfRemovedJob reports whether the last turn was the run of a scheduled job that
// has been removed since, or answered such a run anew: nobody wants that again.
func (in intake) isOfRemovedJob() bool {
	o := in.turn.session.History.LastTurn().First.Options
	hasJob := in.turn.pool.config.HasJob
	if o == nil || hasJob == nil {
		return false
	}
	id := cmp.Or(o.Job, o.RetriedJob)
	return id != "" && !hasJob(in.turn.worker.hard, id)
}

// endUnanswered ends the deliveries of the turn, which ask for no answer.
func (in intake) endUnanswered(ctx context.Context) error {
	t := in.turn
	d := t.deliveries[0]
	if !d.isRetry() {
		return t.completion(t.deliveries).removeDeliveries(ctx)
	}
	if in.isOfRemovedJob() {
		return t.worker.reply(d, t.pool.texts.Commands.JobGone)
	}
	return t.worker.reply(d, t.pool.texts.Commands.NothingHere) // a command is the only delivery of its turn
}
