package agent

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
)

// A history is what a session remembers: the records of its log, applied in order.
type history struct {
	zone    *time.Location
	eyes    bool // the model is shown pictures
	entries []entry
	open    *open // the turn under way, nil between turns
	last    last
}

// An entry is a message of the conversation as the model is shown it.
type entry struct {
	llm.Message
	seq   uint64 // of its record
	first bool   // begins a turn
	heard string // of something heard: its ID in the chat, that of the original for a correction
	said  string // of something heard: the words alone
	from  chat.Sender

	pictures []string // paths of those that came along and are to be shown
	dimmed   int      // how many came along and are shown no more
}

// open is a turn that has not ended.
type open struct {
	first   chat.Message    // what the reply answers
	from    chat.Sender     // of those heard, the one who may do least: nobody acts with another's rights
	keys    map[string]bool // of the messages heard
	calls   []llm.ToolCall  // of the last answer
	started map[string]bool // IDs of calls
	done    map[string]bool // IDs of calls
	said    []llm.Message   // the model's answers
	told    []string        // what tools said to the person meanwhile
	notices []string        // what could not be taken in
	asks    bool            // something heard is to be answered
}

// last is the turn that ended last.
type last struct {
	keys  map[string]bool
	reply *chat.Reply
}

// apply takes in the record numbered seq.
func (h *history) apply(seq uint64, r record) {
	switch {
	case r.Heard != nil:
		h.hear(seq, *r.Heard)
	case r.Said != nil:
		h.say(seq, *r.Said)
	case r.Started != nil && h.open != nil:
		for _, id := range r.Started {
			h.open.started[id] = true
		}
	case r.Finished != nil:
		h.add(seq, entry{}, *r.Finished)
		if h.open != nil {
			h.open.done[r.Finished.Call] = true
			if r.Told != "" {
				h.open.told = append(h.open.told, r.Told)
			}
		}
	case r.Dimmed:
		h.dim(0)
	case r.Retried != nil:
		h.unsay()
		h.begin(*r.Retried)
		h.open.keys[r.Retried.Key()], h.open.asks = true, true
		for _, e := range h.entries[h.lastTurn():] {
			h.open.heed(e.from)
		}
	case r.Ended != nil:
		h.end(*r.Ended)
	}
}

// hear takes in something said.
func (h *history) hear(seq uint64, m chat.Message) {
	h.begin(m)
	o := h.open
	e := entry{heard: cmp.Or(m.Edits, m.ID), said: m.Text, from: m.From, first: len(o.keys) == 0}
	e.pictures, e.dimmed = pictures(m.Files)
	o.keys[m.Key()] = true
	o.heed(e.from)
	o.asks = o.asks || asks(m)
	if m.Notice != "" && !slices.Contains(o.notices, m.Notice) {
		o.notices = append(o.notices, m.Notice)
	}
	h.add(seq, e, llm.Message{Role: llm.User, Text: render(m, h.zone)})
	if h.showing() > maxPictures {
		h.dim(fewPictures)
	}
}

// asks says whether m holds anything to answer, besides what could not be taken in.
func asks(m chat.Message) bool {
	usable := func(f chat.File) bool { return f.Path != "" && !f.Voice }
	return m.Notice == "" || strings.TrimSpace(m.Text) != "" || m.Quote != nil && m.Quote.Forwarded && m.Quote.Text != "" ||
		slices.ContainsFunc(m.Files, usable)
}

// title returns the first words of the conversation.
func (h *history) title() string {
	for _, e := range h.entries {
		if title := []rune(oneLine(clip(e.said, 400))); len(title) > maxTitle {
			return strings.TrimSpace(string(title[:maxTitle-1])) + "…"
		} else if len(title) > 0 {
			return string(title)
		}
	}
	return ""
}

const maxTitle = 60 // characters

// begin opens a turn that answers m, unless one is open.
func (h *history) begin(m chat.Message) {
	if h.open == nil {
		h.open = &open{first: m, from: m.From, keys: map[string]bool{}}
		h.open.ask(nil)
	}
}

// heed notes that the turn does what from said.
func (o *open) heed(from chat.Sender) {
	if from.Role != chat.Owner {
		o.from = from
	}
}

// end closes the turn under way. Of one that was parked only that is known: the
// process may have crashed over anything heard in it, and what joined it is
// still to be answered (P8).
func (h *history) end(e ended) {
	h.last = last{reply: e.Reply}
	if o := h.open; o != nil && e.Outcome == parked {
		h.last.keys = map[string]bool{o.first.Key(): true}
		if len(o.keys) > 0 {
			h.entries = h.entries[:h.lastTurn()]
		}
	} else if o != nil {
		h.last.keys = o.keys
	}
	h.open = nil
}

func (h *history) say(seq uint64, m llm.Message) {
	h.add(seq, entry{}, m)
	if h.open == nil || m.Role != llm.Assistant {
		return
	}
	h.open.said = append(h.open.said, m)
	h.open.ask(m.Calls)
}

// ask notes the calls of an answer, of which none was started.
func (o *open) ask(calls []llm.ToolCall) {
	o.calls, o.started, o.done = calls, map[string]bool{}, map[string]bool{}
}

func (h *history) add(seq uint64, e entry, m llm.Message) {
	e.Message, e.seq = m, seq
	h.entries = append(h.entries, e)
}

// unsay forgets what was answered in the last turn, and keeps what was heard.
func (h *history) unsay() {
	kept := h.entries[:h.lastTurn()]
	for _, e := range h.entries[len(kept):] {
		if e.heard != "" {
			kept = append(kept, e)
		}
	}
	h.entries = kept
}

// lastTurn returns the index of the entry that began the turn under way, or the last one.
func (h *history) lastTurn() int {
	for i := len(h.entries) - 1; i >= 0; i-- {
		if h.entries[i].first {
			return i
		}
	}
	return 0
}

// unanswered returns the calls of the last answer that have no result yet.
func (o *open) unanswered() (calls []llm.ToolCall) {
	for _, c := range o.calls {
		if !o.done[c.ID] {
			calls = append(calls, c)
		}
	}
	return calls
}

// notice tells the person what could not be taken in.
func (o *open) notice() string { return strings.Join(o.notices, "\n\n") }

// text returns what the model said in this turn: all of it, as a person read it while it came.
func (o *open) text() string { return flow(o.said) }

// flow returns the texts of answers that followed each other.
func flow(said []llm.Message) string {
	var b strings.Builder
	for i, m := range said {
		if i > 0 && said[i-1].Finish != llm.Length && b.Len() > 0 && m.Text != "" {
			b.WriteString("\n\n")
		}
		b.WriteString(m.Text)
	}
	return strings.TrimSpace(b.String())
}

// knows says whether m was heard before, or is an edit that changed nothing.
func (h *history) knows(m chat.Message) bool {
	return h.open != nil && h.open.keys[m.Key()] || h.last.keys[m.Key()] || h.unchanged(m)
}

// unchanged says whether m is an edit that changed no word, such as when a
// network adds the preview of a link.
func (h *history) unchanged(m chat.Message) bool {
	for i := len(h.entries) - 1; i >= 0 && m.Edits != ""; i-- {
		if e := h.entries[i]; e.heard == m.Edits {
			return e.said == m.Text
		}
	}
	return false
}
