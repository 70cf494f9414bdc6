package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/memory"
)

// A Summary tells the oldest turns of a conversation in fewer words. It is in the
// log before it is archived, so that what a crash kept from the archive is found.
type Summary struct {
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

// message returns s as the model is shown it: as something said, which is no
// instruction. A turn that is shown a summary of untrusted content is untrusted
// itself (R-S12).
func (s Summary) message() llm.Message {
	return llm.Message{Role: llm.User, Text: msgSummary + s.Text}
}

// Parts returns what is archived of s.
func (s Summary) Parts() (all []memory.Entry) {
	for _, e := range []*memory.Entry{s.Part, s.Own} {
		if e != nil {
			all = append(all, *e)
		}
	}
	return all
}

// summarise applies s, the record numbered seq.
func (h *History) summarise(seq uint64, s Summary) {
	h.Drop(0, s.Upto)
	h.view.summary, h.view.summary.seq = s, seq
}

// Drop drops the entries of the records from … upto.
func (h *History) Drop(from, upto uint64) {
	h.view.entries = slices.DeleteFunc(h.view.entries, func(e Entry) bool { return from <= e.seq && e.seq <= upto })
}

// Oldest returns the turns without which the rest fills no more than half of
// limit; none if all fits once old results are shortened, and never the last.
func (h *History) Oldest(limit int, light func(tool string) bool) Entries {
	if h.Size() <= limit {
		return nil
	}
	rest := h.View()
	rest.cutResults(limit)
	rest.shorten(limit*7/10, keepResults, light)
	rest.dim(1)
	if rest.Size() > limit {
		rest.forget(limit / 2)
	}
	return h.view.entries[:len(h.view.entries)-len(rest.entries)]
}

// Entries are messages of the conversation that follow each other.
type Entries []Entry

// First returns the number of the first record that es are made of.
func (es Entries) First() uint64 { return es[0].seq }

// Last returns the number of the last record that es are made of.
func (es Entries) Last() uint64 { return es[len(es)-1].seq }

// Untrusted reports whether untrusted content is in es, or was shown when they
// were said (R-S12).
func (es Entries) Untrusted() bool { return slices.ContainsFunc(es, Entry.untrusted) }

// FirstPart returns the first turns of es, as many as can be told as one: they
// are one person's (R-S14), on one side of the record border, all trusted or all
// not (R-S12), and, unless it is one turn, no more than most bytes.
func (es Entries) FirstPart(border uint64, most int) Entries {
	size := 0
	for n := 0; n < len(es); {
		next := n + 1
		for next < len(es) && !es[next].first {
			next++
		}
		size += len(es[n:next].Transcript())
		mixed := es[:n].Untrusted() != es[n:next].Untrusted()
		crosses := n > 0 && es[n-1].seq <= border && es[next-1].seq > border
		if n > 0 && (size > most || mixed || crosses || es[:next].Person() == personMany) {
			return es[:n]
		}
		n = next
	}
	return es
}

// personMany marks turns with several speakers. Their text is archived for nobody,
// so that one person's words never enter another's memory (R-S14).
const personMany chat.Person = "several"

// IsOnePerson reports whether who is one person, for whom can be archived.
func IsOnePerson(who chat.Person) bool { return who != "" && who != personMany }

// Person returns whose words es hold, "" if nobody's.
func (es Entries) Person() (who chat.Person) {
	for _, e := range es {
		if e.who != "" && who != "" && e.who != who {
			return personMany
		}
		who = cmp.Or(who, e.who)
	}
	return who
}

// ForArchive returns what is archived of es, without its text: they are part of
// the conversation epoch of the session id, and times are told in zone.
func (es Entries) ForArchive(id chat.SessionID, epoch int64, zone *time.Location) memory.Entry {
	e := memory.Entry{Session: id, Who: es.Person(), Key: fmt.Sprintf("%s#%d@%d", id, epoch, es.Last())}
	for _, x := range es {
		if x.untrusted() {
			e.Tainted, e.Sources = true, chat.JoinSources(e.Sources, x.sources...)
		}
		if x.at.After(e.Time) {
			e.Time = x.at.In(zone)
		}
	}
	return e
}

// OwnPart returns an entry beside part, without its text, for what the person said
// themselves. That stays trusted whatever was shown.
func OwnPart(part memory.Entry) memory.Entry {
	part.Key += " own"
	part.Text = ""
	part.Tainted = false
	part.Sources = nil
	return part
}

// Transcript tells es as text.
func (es Entries) Transcript() string {
	var b strings.Builder
	for _, e := range es {
		text := e.Text
		switch {
		case e.Role == llm.ToolRole:
			text = "[" + name(e.Name) + " gave]\n" + chat.ClipMiddle(text, 500)
		case e.Role == llm.Assistant:
			text = "[you]\n" + text
			for _, c := range e.Calls {
				text += "\n" + c.Name + " " + chat.ClipMiddle(c.Args, 200)
			}
		case e.heard == "":
			continue
		}
		b.WriteString(breaks.Replace(strings.TrimSpace(text)) + "\n")
	}
	return b.String()
}

// OwnWords returns what people typed themselves in es, message by message: no
// untrusted content is in it, also where some was shown.
func (es Entries) OwnWords() string {
	var b strings.Builder
	for _, e := range es {
		if text := strings.TrimSpace(e.said); e.own && text != "" {
			who := cmp.Or(chat.Inline(e.from.Name, 64), "the person")
			head := "[" + e.at.Format("Mon 2006-01-02 15:04") + ", from " + who + "]\n"
			b.WriteString(breaks.Replace(head+text) + "\n")
		}
	}
	return b.String()
}
