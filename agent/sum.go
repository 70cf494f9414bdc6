package agent

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/memory"
)

// An Archive keeps what was said when it leaves the conversation.
type Archive interface {
	// Summarise tells what of said is worth keeping besides earlier, "" if nothing is.
	Summarise(ctx context.Context, model llm.Model, earlier, said string) (string, llm.Usage, error)
	// Append adds e to what is kept of who, unless there ever was an entry with its Key.
	Append(ctx context.Context, who chat.Person, e memory.Entry) (memory.Entry, error)
}

// leastRoom is how many tokens there must be for talk if it is to be summed up:
// where instructions and tools leave less, each turn would be summed up in vain.
const leastRoom = 500

// mostSums is how often a turn has a model sum up: what a job has told for weeks
// is not to cost more than that before a person is answered.
const mostSums = 8

// sumUp has the oldest turns summed up when all does not fit into limit tokens.
func (t *turn) sumUp(ctx context.Context, limit int) error {
	for n := 0; t.pool.config.Archive != nil && limit >= leastRoom; n++ {
		t.session.History.ShowPictures(t.model.Vision)
		es, s := t.session.History.Oldest(limit, conversation.ShortenedFirst(t.kit)), conversation.Summary{}
		if len(es) == 0 {
			return nil
		}
		if t.dumb = t.dumb || n >= mostSums; !t.dumb {
			s = t.sum(ctx, es.FirstPart(t.session.DigestedUpTo(), 3*limit), limit)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if used := s.Usage; t.dumb { // by now: of a part that can be archived as it is
			s = t.sum(ctx, es.FirstPart(t.session.DigestedUpTo(), min(3*limit, mostRaw)), limit)
			s.Usage = used
		}
		t.session.Keep(conversation.Record{Summed: &s})
		if err := t.flush(t.worker.hard); err != nil {
			return err
		}
		for _, part := range s.Parts() {
			if _, err := t.pool.config.Archive.Append(t.worker.hard, part.Who, part); err != nil {
				t.pool.log.Error("what was summed up is to be archived later", "session", t.session.ID, "err", err)
			}
		}
	}
	return nil
}

// mostRaw is how many bytes of what was said are archived as they are.
const mostRaw = 64_000

// sum tells es in fewer words. If the model cannot, all of it is archived.
func (t *turn) sum(ctx context.Context, es conversation.Entries, limit int) conversation.Summary {
	part := es.ForArchive(t.session.ID, t.session.State.Epoch, t.pool.config.Zone)
	before, said, earlier := t.session.History.Summary(), es.Transcript(), ""
	if part.Who != "" && before.Who != "" && part.Who != before.Who {
		before = conversation.Summary{} // R-S14
	}
	s := conversation.Summary{From: es.First(), Upto: es.Last(), Who: cmp.Or(part.Who, before.Who), Model: t.name}
	s.Tainted, s.Sources = before.Tainted || part.Tainted, chat.JoinSources(before.Sources, part.Sources...)
	s.Guests = chat.JoinSources(before.Guests, es.Guests()...)
	if !before.Tainted || part.Tainted { // nothing taints what is archived but itself
		earlier = before.Text
	}
	all, kept := said, before.Text
	if len(earlier) > limit/2 { // it is summed up once more, too
		all, kept, earlier = earlier+"\n\n"+said, "", ""
	}
	if !t.dumb {
		part.Text, s.Usage = t.summarise(ctx, earlier, conversation.ClipMiddle(all, 3*limit))
	}
	switch s.Text = conversation.Join(kept, part.Text); {
	case t.dumb:
		part.Raw, part.Text = true, conversation.ClipMiddle(said, mostRaw)
		s.Text = conversation.Join(strings.ReplaceAll(before.Text, conversation.MsgEarlierOmitted, ""), conversation.MsgEarlierOmitted)
	case part.Text == "":
		s.Text = before.Text
	}
	s.Text = conversation.ClipMiddle(s.Text, limit)
	if !conversation.IsOnePerson(part.Who) || s.Upto <= t.session.DigestedUpTo() {
		return s
	}
	if part.Text != "" {
		s.Part = &part
	}
	if own := es.OwnWords(); part.Tainted && own != "" {
		e := conversation.OwnPart(part)
		if e.Raw, e.Text = t.dumb, conversation.ClipMiddle(own, mostRaw); !t.dumb {
			var used llm.Usage
			e.Text, used = t.summarise(ctx, "", conversation.ClipMiddle(own, 3*limit))
			s.Usage = s.Usage.Add(used)
		}
		if e.Text != "" {
			s.Own = &e
		}
	}
	return s
}

// summarise has the model sum up, or notes that it cannot, and the person see
// that it takes its time.
func (t *turn) summarise(ctx context.Context, earlier, said string) (string, llm.Usage) {
	defer t.doing(t.pool.texts.Doing.Thinking)
	t.doing(t.pool.texts.Doing.Summing)
	step := chat.Step{Call: fmt.Sprint("sum ", t.session.Seq), Tool: "memory", Name: t.pool.texts.Doing.Summing, State: chat.Running, Began: time.Now()}
	t.live.Step(step)
	text, used, err := t.pool.config.Archive.Summarise(ctx, t.model.Model, earlier, said)
	t.charge(ctx, 1, t.name, used)
	step.State, step.Ended = chat.Done, time.Now()
	t.live.Step(step)
	if t.dumb = err != nil; t.dumb && ctx.Err() == nil {
		t.pool.log.Warn("what was said is archived as it is, because the model cannot sum it up", "session", t.session.ID, "model", t.name, "err", err)
	}
	return text, used
}
