package agent

import (
	"context"
	"fmt"
	"strings"
	"time"

	"parley/agent/activity"
	"parley/agent/subagents"
	"parley/agent/summary"
	"parley/chat"
	"parley/llm"
)

// newSummarizer returns what makes room in the session, for a turn that is prepared.
func (t *turn) newSummarizer() *summary.Summarizer {
	return &summary.Summarizer{
		Archive:   t.pool.config.Archive,
		Session:   t.session,
		Kit:       t.kit,
		Model:     t.model.Model,
		ModelName: t.name,
		Vision:    t.model.Vision,
		Zone:      t.pool.config.Zone,
		Log:       t.pool.log,
		Save:      t.flush,
		Charge:    func(ctx context.Context, used llm.Usage) { t.charge(ctx, 1, t.name, used) },
		Announce:  t.announceSummary,
	}
}

// announceSummary shows that a summary is being made, until done is called.
func (t *turn) announceSummary() (done func()) {
	doing := t.pool.texts.Doing
	t.doing(doing.Summing)
	step := chat.Step{
		Call:  fmt.Sprint("sum ", t.session.Seq),
		Tool:  "memory",
		Name:  doing.Summing,
		State: chat.Running,
		Began: time.Now(),
	}
	t.live.Step(step)
	return func() {
		step.State = chat.Done
		step.Ended = time.Now()
		t.live.Step(step)
		t.doing(doing.Thinking)
	}
}

// Digest archives what is new in sessions in which nobody has spoken for a
// while, at the expense of a run of a job, and returns how many parts it
// archived. Those of jobs and subagents are left out: what came of them was told
// in a chat.
func (p *Pool) Digest(ctx context.Context, job, run string, silence time.Duration) (parts int, err error) {
	if p.config.Archive == nil {
		return 0, nil
	}
	d := summary.Digest{
		Archive:  p.config.Archive,
		Sessions: p.sessions,
		Book:     p.budget,
		Zone:     p.config.Zone,
		Log:      p.log,
		Model:    p.summaryModel,
		Enter: func(ctx context.Context, id chat.SessionID, stop context.CancelCauseFunc) (leave func(), err error) {
			a := activity.New(p.texts.Doing.Archiving)
			a.Stop = stop
			if err := p.activities.Enter(ctx, id, a, nil); err != nil {
				return nil, err
			}
			return func() { p.activities.Leave(id) }, nil
		},
		Skip: func(id chat.SessionID) bool {
			return subagents.IDOf(id) != "" || strings.HasPrefix(string(id), runPrefix)
		},
		Job:     job,
		Run:     run,
		Silence: silence,
	}
	return d.ArchiveAll(ctx)
}

// summaryModel returns the model that sums up for Digest.
func (p *Pool) summaryModel() summary.Model {
	s := p.settings.Load()
	name, m := s.model(s.Sum)
	return summary.Model{Model: m.Model, Name: name, Window: m.Window - m.MaxTokens}
}
