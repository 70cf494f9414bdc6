package main

import (
	"context"
	"errors"
	"io/fs"

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/jobs"
)

const (
	heartbeatID   = "heartbeat"
	heartbeatFile = "HEARTBEAT.md"
)

// heartbeat has the agent look after what HEARTBEAT.md lists. Without an open
// item in it no model is asked.
func (j jobHost) heartbeat(ctx context.Context, job scheduler.Job, r scheduler.Run) (scheduler.Ended, error) {
	j.app.knowledge.sweep(ctx)
	text, err := j.app.files.Names().ReadFile(heartbeatFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return scheduler.Ended{}, err
	}
	if !jobs.HasOpenItem(string(text)) {
		return scheduler.Ended{Outcome: scheduler.Silent, Note: j.app.texts.Gateway.Heartbeat.NothingToDo.With(heartbeatFile)}, nil
	}
	s, err := j.ownerAt("")
	if err != nil {
		return scheduler.Ended{Outcome: scheduler.Silent, Note: j.app.texts.Gateway.Heartbeat.NoOwner}, nil
	}
	m := j.app.scheduler.Message(job, r)
	m.At = s.At
	m.From = s.From
	m.In = scheduler.Sessions + heartbeatID
	m.Text = jobs.HeartbeatText(heartbeatFile, string(text))
	m.Options = &chat.RunOptions{Job: heartbeatID, Model: j.app.now.Load().Heartbeat.Model, Quiet: true, Fresh: true}
	return scheduler.Ended{Outcome: scheduler.Running}, j.app.pool.Deliver(ctx, m)
}
