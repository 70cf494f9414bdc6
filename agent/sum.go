package agent

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

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

// summed tells the oldest turns of a conversation in fewer words. It is in the
// log before it is in the Archive: what a crash keeps from there Digest finds.
type summed struct {
	From    uint64        `json:"from"` // the first record of the turns …
	Upto    uint64        `json:"upto"` // … and the last
	Text    string        `json:"text"` // instead of them and of the summed before
	Who     chat.Person   `json:"who,omitempty"`
	Tainted bool          `json:"tainted,omitempty"` // Text was made of untrusted content …
	Sources []string      `json:"sources,omitempty"` // … from there
	Guests  []string      `json:"guests,omitempty"`  // what of it people said who are no owners
	Part    *memory.Entry `json:"part,omitempty"`    // for the Archive; nil if nothing of it is, or Digest sees to it
	Own     *memory.Entry `json:"own,omitempty"`     // beside an untrusted Part: what the person said in it themselves
	Model   string        `json:"model"`
	Usage   llm.Usage     `json:"usage,omitzero"`

	seq uint64 // of its record
}

// message is s as the model is shown it: as something said, which is no
// instruction. A turn that is shown what was made of untrusted content is
// untrusted (R-S12).
func (s summed) message() llm.Message {
	return llm.Message{Role: llm.User, Text: wordsSummed + s.Text}
}

// parts returns what of s is for the Archive.
func (s summed) parts() (all []memory.Entry) {
	for _, e := range []*memory.Entry{s.Part, s.Own} {
		if e != nil {
			all = append(all, *e)
		}
	}
	return all
}

// replace takes in s, the record numbered seq.
func (h *history) replace(seq uint64, s summed) {
	h.Drop(0, s.Upto)
	h.summed, h.summed.seq = s, seq
}

// Drop forgets the entries of the records from … upto.
func (h *history) Drop(from, upto uint64) {
	h.entries = slices.DeleteFunc(h.entries, func(e entry) bool { return from <= e.seq && e.seq <= upto })
}

// leastRoom is how many tokens there must be for talk if it is to be summed up:
// where instructions and tools leave less, each turn would be summed up in vain.
const leastRoom = 500

// mostSums is how often a turn has a model sum up: what a job has told for weeks
// is not to cost more than that before a person is answered.
const mostSums = 8

// sumUp has the oldest turns summed up when all does not fit into limit tokens.
func (t *turn) sumUp(ctx context.Context, limit int) error {
	for n := 0; t.Archive != nil && limit >= leastRoom; n++ {
		t.session.history.ShowPictures(t.model.Vision)
		es, s := t.session.history.Oldest(limit, light(t.kit)), summed{}
		if len(es) == 0 {
			return nil
		}
		if t.dumb = t.dumb || n >= mostSums; !t.dumb {
			s = t.sum(ctx, firstPart(es, t.session.DigestedUpTo(), 3*limit), limit)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if used := s.Usage; t.dumb { // by now: of a part that can be archived as it is
			s = t.sum(ctx, firstPart(es, t.session.DigestedUpTo(), min(3*limit, mostRaw)), limit)
			s.Usage = used
		}
		t.session.Keep(record{Summed: &s})
		if err := t.flush(t.hard); err != nil {
			return err
		}
		for _, part := range s.parts() {
			if _, err := t.Archive.Append(t.hard, part.Who, part); err != nil {
				t.Log.Error("what was summed up is to be archived later", "session", t.session.id, "err", err)
			}
		}
	}
	return nil
}

// Oldest returns the turns without which the rest fills no more than half of
// limit; none if all fits once old results are shortened, and never the last.
func (h *history) Oldest(limit int, light func(tool string) bool) []entry {
	if h.Size() <= limit {
		return nil
	}
	rest := h.Clone()
	rest.cutResults(limit)
	rest.shorten(limit*7/10, keepResults, light)
	rest.dim(1)
	if rest.Size() > limit {
		rest.forget(limit / 2)
	}
	return h.entries[:len(h.entries)-len(rest.entries)]
}

// firstPart returns the first turns of es, as many as can be told as one: they
// are one person's (R-S14), on one side of the record border, all trusted or all
// not (R-S12), and, unless it is one turn, no more than most bytes.
func firstPart(es []entry, border uint64, most int) []entry {
	size := 0
	for n := 0; n < len(es); {
		next := n + 1
		for next < len(es) && !es[next].first {
			next++
		}
		size += len(transcript(es[n:next]))
		mixed := slices.ContainsFunc(es[:n], entry.untrusted) != slices.ContainsFunc(es[n:next], entry.untrusted)
		if n > 0 && (size > most || mixed || personOf(es[:next]) == several || es[n-1].seq <= border && es[next-1].seq > border) {
			return es[:n]
		}
		n = next
	}
	return es
}

// several is whose the words of more than one person are. They are archived for
// none of them (R-S14), as words that nobody said.
const several chat.Person = "several"

func ofOne(who chat.Person) bool { return who != "" && who != several }

// personOf returns whose words es hold, "" for none's.
func personOf(es []entry) (who chat.Person) {
	for _, e := range es {
		if e.who != "" && who != "" && e.who != who {
			return several
		}
		who = cmp.Or(who, e.who)
	}
	return who
}

// mostRaw is how many bytes of what was said are archived as they are.
const mostRaw = 64_000

// partOf returns es as an entry of the Archive, without its text.
func (p *Pool) partOf(id chat.SessionID, epoch int64, es []entry) memory.Entry {
	e := memory.Entry{Session: id, Who: personOf(es), Key: fmt.Sprintf("%s#%d@%d", id, epoch, es[len(es)-1].seq)}
	for _, x := range es {
		if x.untrusted() {
			e.Tainted, e.Sources = true, chat.JoinSources(e.Sources, x.sources...)
		}
		if x.at.After(e.Time) {
			e.Time = x.at.In(p.Zone)
		}
	}
	return e
}

// ownPart returns an entry beside part for what the person said themselves: that
// stays trusted whatever was shown, so that their memory does not become hearsay.
func ownPart(part memory.Entry) memory.Entry {
	part.Key += " own"
	part.Text, part.Tainted, part.Sources = "", false, nil
	return part
}

// sum tells es in fewer words. If the model cannot, all of it is archived.
func (t *turn) sum(ctx context.Context, es []entry, limit int) summed {
	part, before, said, earlier := t.partOf(t.session.id, t.session.state.Epoch, es), t.session.history.Summary(), transcript(es), ""
	if part.Who != "" && before.Who != "" && part.Who != before.Who {
		before = summed{} // R-S14
	}
	s := summed{From: es[0].seq, Upto: es[len(es)-1].seq, Who: cmp.Or(part.Who, before.Who), Model: t.name}
	s.Tainted, s.Sources = before.Tainted || part.Tainted, chat.JoinSources(before.Sources, part.Sources...)
	s.Guests = chat.JoinSources(before.Guests, guestsIn(es)...)
	if !before.Tainted || part.Tainted { // nothing taints what is archived but itself
		earlier = before.Text
	}
	all, kept := said, before.Text
	if len(earlier) > limit/2 { // it is summed up once more, too
		all, kept, earlier = earlier+"\n\n"+said, "", ""
	}
	if !t.dumb {
		part.Text, s.Usage = t.summarise(ctx, earlier, clip(all, 3*limit))
	}
	switch s.Text = joined(kept, part.Text); {
	case t.dumb:
		part.Raw, part.Text = true, clip(said, mostRaw)
		s.Text = joined(strings.ReplaceAll(before.Text, wordsOlder, ""), wordsOlder)
	case part.Text == "":
		s.Text = before.Text
	}
	s.Text = clip(s.Text, limit)
	if !ofOne(part.Who) || s.Upto <= t.session.DigestedUpTo() {
		return s
	}
	if part.Text != "" {
		s.Part = &part
	}
	if own := ownWords(es); part.Tainted && own != "" {
		e := ownPart(part)
		if e.Raw, e.Text = t.dumb, clip(own, mostRaw); !t.dumb {
			var used llm.Usage
			e.Text, used = t.summarise(ctx, "", clip(own, 3*limit))
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
	defer t.doing(t.Texts.Doing.Thinking)
	t.doing(t.Texts.Doing.Summing)
	step := chat.Step{Call: fmt.Sprint("sum ", t.session.seq), Tool: "memory", Name: t.Texts.Doing.Summing, State: chat.Running, Began: time.Now()}
	t.live.Step(step)
	text, used, err := t.Archive.Summarise(ctx, t.model.Model, earlier, said)
	t.pay(ctx, 1, t.name, used)
	step.State, step.Ended = chat.Done, time.Now()
	t.live.Step(step)
	if t.dumb = err != nil; t.dumb && ctx.Err() == nil {
		t.Log.Warn("what was said is archived as it is, because the model cannot sum it up", "session", t.session.id, "model", t.name, "err", err)
	}
	return text, used
}

// breaks has the gateway alone begin lines, whatever ends one (R-S11).
var breaks = strings.NewReplacer("\n", "\n  ", "\r", "\n  ", "\v", "\n  ", "\f", "\n  ", "\u0085", "\n  ", "\u2028", "\n  ", "\u2029", "\n  ")

// transcript tells es as text.
func transcript(es []entry) string {
	var b strings.Builder
	for _, e := range es {
		text := e.Text
		switch {
		case e.Role == llm.ToolRole:
			text = "[" + name(e.Name) + " gave]\n" + clip(text, 500)
		case e.Role == llm.Assistant:
			text = "[you]\n" + text
			for _, c := range e.Calls {
				text += "\n" + c.Name + " " + clip(c.Args, 200)
			}
		case e.heard == "":
			continue
		}
		b.WriteString(breaks.Replace(strings.TrimSpace(text)) + "\n")
	}
	return b.String()
}
