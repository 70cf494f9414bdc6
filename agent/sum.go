package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/memory"
)

// An Archive keeps what was said when it leaves the conversation: the middle
// memory, between what is being said and what is known for good.
type Archive interface {
	// Summarise tells what of said is worth keeping besides earlier, "" if nothing is.
	Summarise(ctx context.Context, model llm.Model, earlier, said string) (string, llm.Usage, error)
	// Append adds e to what is kept of who, unless an entry with its Key was ever added.
	Append(ctx context.Context, who chat.Person, e memory.Entry) (memory.Entry, error)
}

// summed replaces the oldest turns of a conversation by fewer words. The log is
// told first and the Archive after it: what a crash keeps from the Archive is
// still there for Digest, and its Key makes it one entry.
type summed struct {
	From    uint64        `json:"from"`          // the first record of the turns …
	Upto    uint64        `json:"upto"`          // … and the last
	Text    string        `json:"text"`          // of them, and of what was summed up before
	Who     chat.Person   `json:"who,omitempty"` // whose words Text tells of, "" for several's
	Tainted bool          `json:"tainted,omitempty"`
	Part    *memory.Entry `json:"part,omitempty"` // for the Archive; nil if it has it, or it is nobody's, or nothing worth keeping
	Model   string        `json:"model,omitempty"`
	Usage   llm.Usage     `json:"usage,omitzero"`

	seq uint64 // of its record
}

// message is s as the model is shown it. Strangers may have had a word in it:
// it is a part of the conversation like any, and no instruction. By itself it
// taints no turn, as the turns that it tells of tainted no later one (R-S12).
func (s summed) message() llm.Message {
	return llm.Message{Role: llm.User, Text: wordsSummed + s.Text}
}

func (s summed) size() int {
	if s.Text == "" {
		return 0
	}
	return estimate(s.message())
}

// replace takes in s, the record numbered seq.
func (h *history) replace(seq uint64, s summed) {
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return e.seq <= s.Upto })
	s.seq = seq
	if h.summed = s; h.open != nil {
		h.open.took(s.Model, s.Usage)
	}
}

// sumUp has the model tell the oldest turns in fewer words when the history
// does not fit into limit estimated tokens.
func (t *turn) sumUp(ctx context.Context, limit int) error {
	for t.Archive != nil {
		t.history.eyes = t.model.Vision
		es := t.history.oldest(limit, light(t.kit))
		if len(es) == 0 {
			return nil
		}
		done := uint64(0)
		if t.Digested.Epoch == t.Epoch {
			done = t.Digested.Seq
		}
		s, err := t.sum(ctx, firstPart(es, done, 2*limit), done, limit)
		if err != nil {
			return err
		}
		t.keep(record{Summed: &s})
		if err := t.flush(t.hard); err != nil {
			return err
		}
		if s.Part != nil {
			if _, err := t.Archive.Append(t.hard, s.Part.Who, *s.Part); err != nil {
				t.Log.Error("what was summed up is not archived yet", "session", t.session.id, "err", err)
			}
		}
	}
	return nil
}

// oldest returns the turns that must go for the rest to fill no more than half
// of limit, none if all fits once old results are shortened. The turn under way
// is not among them.
func (h history) oldest(limit int, light func(tool string) bool) []entry {
	all := h.entries
	if h.size() <= limit {
		return nil
	}
	h.entries = slices.Clone(all)
	h.shorten(limit*7/10, keepResults, light)
	h.dim(1)
	if h.size() > limit {
		h.forget(limit / 2)
	}
	return all[:len(all)-len(h.entries)]
}

// firstPart returns the first turns of es, as many as can be told as one: they
// are of one person (R-S14), all archived already or none, as the records up to
// done are, and, unless it is one turn, no more than most bytes.
func firstPart(es []entry, done uint64, most int) []entry {
	size := 0
	for n := 0; n < len(es); {
		next := n + 1
		for next < len(es) && !es[next].first {
			next++
		}
		size += len(transcript(es[n:next]))
		_, one := personOf(es[:next])
		if n > 0 && (size > most || !one || es[n-1].seq <= done && es[n].seq > done) {
			return es[:n]
		}
		n = next
	}
	return es
}

// personOf returns whose words es hold, and whether they are one person's. Words
// of several are nobody's.
func personOf(es []entry) (who chat.Person, one bool) {
	for _, e := range es {
		if e.who != "" && who != "" && e.who != who {
			return "", false
		}
		who = cmp.Or(who, e.who)
	}
	return who, true
}

// partOf returns es as an entry of the Archive, without its text.
func (p *Pool) partOf(id chat.SessionID, epoch int64, es []entry) memory.Entry {
	e := memory.Entry{Session: id, Key: fmt.Sprintf("%s#%d@%d", id, epoch, es[len(es)-1].seq), Tainted: slices.ContainsFunc(es, func(e entry) bool { return e.tainted })}
	e.Who, _ = personOf(es)
	for _, x := range es {
		if x.at.After(e.Time) {
			e.Time = x.at.In(p.Zone)
		}
	}
	return e
}

// sum tells es in few words. If the model cannot, the Archive gets all that was
// said. An error is the end of ctx.
func (t *turn) sum(ctx context.Context, es []entry, done uint64, limit int) (s summed, err error) {
	before, told, part := t.history.summed, transcript(es), t.partOf(t.session.id, t.Epoch, es)
	s = summed{From: es[0].seq, Upto: es[len(es)-1].seq, Tainted: before.Tainted || part.Tainted, Model: t.name}
	_, one := personOf(es)
	if s.Who = cmp.Or(part.Who, before.Who); !one || before.Text != "" && s.Who != before.Who {
		s.Who = ""
	}
	said, earlier, kept := told, "", before.Text
	if s.Who != "" && (!before.Tainted || part.Tainted) { // nothing comes into part that is not part's
		earlier = before.Text
	}
	if len(earlier) > limit/2 {
		said, earlier, kept = wordsSummed+earlier+"\n\n"+told, "", ""
	}
	if part.Text, err = t.summarise(ctx, &s, earlier, abridged(said, 2*limit)); ctx.Err() != nil {
		return s, ctx.Err()
	}
	switch s.Text = joined(kept, part.Text); {
	case err != nil:
		part.Raw, part.Text = true, abridged(told, mostRaw)
		s.Text = joined(strings.TrimSuffix(before.Text, wordsOlder), wordsOlder)
	case part.Text == "":
		s.Text = before.Text
	}
	if s.Text = clip(s.Text, limit); part.Who != "" && part.Text != "" && s.Upto > done {
		s.Part = &part
	}
	return s, nil
}

// mostRaw is how many bytes of a transcript are archived.
const mostRaw = 64_000

var errDumb = errors.New("the model could not sum up before")

// summarise has the model sum up, once more only if it could before, and shows
// the person that it takes its time. What it takes is counted, and noted in s.
func (t *turn) summarise(ctx context.Context, s *summed, earlier, said string) (text string, err error) {
	if t.dumb {
		return "", errDumb
	}
	t.doing("summing up")
	step := chat.Step{Call: fmt.Sprint("sum@", s.Upto), Tool: "memory", Name: "Summing up", State: chat.Running, Began: time.Now()}
	t.live.Step(step)
	text, s.Usage, err = t.Archive.Summarise(ctx, t.model.Model, earlier, said)
	m := t.history.open.first
	t.Charge(ctx, t.scope.Whose(), m.Session(), cmp.Or(m.Errand, &chat.Errand{}).Job, t.name, s.Usage)
	if step.State, step.Ended = chat.Done, time.Now(); err != nil {
		t.dumb, step.State, step.Error = true, chat.Failed, "it goes on without"
		t.Log.Warn("what was said cannot be summed up and is archived as it is", "session", t.session.id, "model", t.name, "err", err)
	}
	t.live.Step(step)
	t.doing("thinking")
	return text, err
}

// transcript tells es as text in which the gateway alone begins lines (R-S11).
func transcript(es []entry) string {
	var b strings.Builder
	line := func(text string) { b.WriteString(strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n") }
	for _, e := range es {
		switch {
		case e.Role == llm.ToolRole:
			line("[" + name(e.Name) + " gave]\n" + clip(e.Text, 500))
		case e.Role == llm.Assistant:
			if e.Text != "" {
				line("[you]\n" + e.Text)
			}
			for _, c := range e.Calls {
				line("[you call " + name(c.Name) + "]\n" + clip(c.Args, 200))
			}
		case e.heard != "":
			line(e.Text)
		}
	}
	return b.String()
}

// abridged returns s with at most about most bytes. A note stands for its middle.
func abridged(s string, most int) string {
	if len(s) <= most {
		return s
	}
	const note = "\n[The middle of it is left out here.]\n"
	half := max(most-len(note), 0) / 2
	return strings.ToValidUTF8(s[:half], "") + note + strings.ToValidUTF8(s[len(s)-half:], "")
}
