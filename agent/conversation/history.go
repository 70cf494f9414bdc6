package conversation

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A History is what a session remembers: the records of its log, applied in order.
// It is not safe for concurrent use: the goroutine that opened the session owns it.
type History struct {
	zone      *time.Location
	view      View
	open      *OpenTurn // nil between turns
	suspended []suspended
	last      LastTurn
	doubtful  bool // see IsDoubtful
}

// An Entry is a message of the conversation as the model is shown it, with what
// the gateway knows of it.
type Entry struct {
	llm.Message
	seq     uint64   // number of its record
	first   bool     // it begins a turn
	sources []string // origins of its untrusted content, or of what was shown when it was said (R-S12)
	gap     bool     // it stands for records that cannot be read

	// Of a message that was heard:
	of     string      // its key
	heard  string      // its ID in the chat; of a correction, that of the original
	said   string      // its text, without the line that the gateway writes
	from   chat.Sender // who sent it
	who    chat.Person // the person whose words it holds, "" for nobody
	at     time.Time   // when it was sent
	job    bool        // it is the task of a scheduled job
	quoted string      // what it quotes of somebody who is known not to be the agent
	result bool        // quoted is what tools of a program returned
	own    bool        // said is what the person said themselves
	typed  bool        // said is what the person typed themselves

	// Of the result of a call:
	key    string // of the call, while the result is whole
	public bool   // it was published, such as a page (see tools.Result)
	read   bool   // it holds nothing but pictures that a tool read

	pictures []string // paths of its pictures that the model is to be shown
	dimmed   int      // number of its pictures that are not shown any more
}

// Seq returns the number of the record that e is made of.
func (e Entry) Seq() uint64 { return e.seq }

// NewHistory returns an empty history. The model is told the time in zone.
func NewHistory(zone *time.Location) *History { return &History{zone: zone} }

// OpenTurn returns the turn under way, nil between turns.
func (h *History) OpenTurn() *OpenTurn { return h.open }

// LastTurn returns the turn that ended last.
func (h *History) LastTurn() *LastTurn { return &h.last }

// IsEmpty reports whether the model is shown nothing of the conversation but its summary.
func (h *History) IsEmpty() bool { return len(h.view.entries) == 0 }

// IsDoubtful reports whether something cannot be read, and no turn since is
// recorded whole: a message that waits for an answer may have been begun, or
// answered, in that.
func (h *History) IsDoubtful() bool { return h.doubtful }

// View returns a copy of what the model is shown, which can be fitted without
// effect on h.
func (h *History) View() *View {
	v := h.view
	v.entries = slices.Clone(v.entries)
	return &v
}

// Pictures returns the paths of the pictures that the model is to be shown.
func (h *History) Pictures() []string { return h.view.Pictures() }

// ShowPictures says whether the model is shown pictures.
func (h *History) ShowPictures(can bool) { h.view.ShowPictures(can) }

// LatestResult returns the text of the latest result of a tool, "" if there is none.
func (h *History) LatestResult() string {
	for _, e := range slices.Backward(h.view.entries) {
		if e.Role == llm.ToolRole {
			return e.Text
		}
	}
	return ""
}

// EndedEntries returns the messages of the turns that have ended.
func (h *History) EndedEntries() Entries {
	if h.open != nil {
		return h.view.entries[:h.view.turnStart()]
	}
	return h.view.entries
}

// FirstNeeded returns the number of the first record that the history is made
// of, 0 if it is not known: a suspended turn needs its records again.
func (h *History) FirstNeeded() uint64 {
	if len(h.suspended) > 0 {
		return 0
	}
	first := h.view.summary.seq
	if len(h.view.entries) > 0 {
		first = min(h.view.entries[0].seq, cmp.Or(first, h.view.entries[0].seq))
	}
	return first
}

// Summary returns the summary of what was said before the messages.
func (h *History) Summary() Summary { return h.view.summary }

// Apply applies the record numbered seq. Those of other branches are not to be applied:
// see Sessions.Branch.
func (h *History) Apply(seq uint64, r Record) {
	if r.Asked != nil && h.open != nil {
		h.open.distrust(r.Asked.Untrusted)
	}
	switch {
	case r.Heard != nil:
		h.hear(seq, *r.Heard)
	case r.Said != nil:
		if r.Asked != nil && r.Asked.Refused {
			h.view.dim(0)
		}
		h.say(seq, *r.Said)
	case r.Started != nil && h.open != nil:
		for _, id := range r.Started {
			h.open.started[id] = true
		}
	case r.Finished != nil:
		h.finish(seq, r)
	case r.RolledBack != "" && h.open != nil:
		h.rollBack(r.RolledBack)
	case r.Branched != nil:
		noteLeft(h, seq, r.Left)
	case r.Retried != nil:
		h.dropAnswers()
		noteLeft(h, seq, r.Left)
		h.Begin(*r.Retried)
		h.open.keys[r.Retried.Key()] = true
		h.open.asks = true
		h.open.heard = append(h.open.heard, *r.Retried)
		for _, e := range h.view.entries[h.view.turnStart():] {
			h.open.acceptRights(e)
		}
	case r.Summed != nil:
		h.summarise(seq, *r.Summed)
	case r.Suspended != nil:
		h.suspend(*r.Suspended)
	case r.Resumed != "":
		h.resume(seq, r.Resumed)
	case r.Ended != nil:
		h.End(*r.Ended)
	case r.Unreadable:
		h.skip(seq)
	}
}

// gapSource is the origin of what cannot be read. It counts as untrusted content,
// because what was said next may repeat a page that was shown there.
const gapSource = "a damaged part of the conversation"

// skip notes that the record numbered seq cannot be read, and tells the model.
func (h *History) skip(seq uint64) {
	h.doubtful = true
	if h.open != nil {
		h.open.torn = true
	}
	if n := len(h.view.entries); n == 0 || !h.view.entries[n-1].gap {
		h.add(seq, Entry{gap: true, sources: []string{gapSource}}, llm.Message{Role: llm.User, Text: msgGap})
	}
}

// hear applies a message that was heard.
func (h *History) hear(seq uint64, m chat.Message) {
	h.Begin(m)
	o := h.open
	if o.keys[m.Key()] { // appended once more after a panic
		return
	}
	e := h.entryOf(m)
	e.first = len(o.keys) == 0
	o.keys[m.Key()] = true
	o.heard = append(o.heard, m)
	o.acceptRights(e)
	if needsAnswer(m) {
		o.asks = true
		o.ending = false
	}
	if m.Notice != "" && !slices.Contains(o.notices, m.Notice) {
		o.notices = append(o.notices, m.Notice)
	}
	h.add(seq, e, llm.Message{Role: llm.User, Text: render(m, h.zone)})
}

// entryOf returns what is known of m besides the text that the model is shown.
func (h *History) entryOf(m chat.Message) Entry {
	e := Entry{
		heard: cmp.Or(m.Edits, m.ID), of: m.Key(), said: m.Text, from: m.From,
		sources: m.UntrustedSources(), job: m.Origin == chat.FromSchedule,
	}
	e.pictures, e.dimmed = pictures(m.Files)
	q := m.Quote
	if q != nil && q.ID != "" && q.From == "you" && !q.Forwarded && !h.view.vouches(q.Text) {
		e.sources = chat.JoinSources(e.sources, "an earlier answer that was quoted")
	}
	if m.Origin != chat.FromPerson {
		return e
	}
	if q != nil && !slices.Contains([]string{"you", "", "someone"}, q.From) {
		e.quoted = q.Text
		e.result = m.Tainted
	}
	e.who = chat.Whose(m.At, m.From, m.Group)
	e.at = m.Time
	e.own = !m.Chosen
	e.typed = e.own && !m.Spoken
	return e
}

// needsAnswer reports whether m holds anything to answer, besides what could not
// be taken in.
func needsAnswer(m chat.Message) bool {
	if m.Notice == "" || strings.TrimSpace(m.Text) != "" {
		return true
	}
	if m.Quote != nil && m.Quote.Forwarded && m.Quote.Text != "" {
		return true
	}
	return slices.ContainsFunc(m.Files, func(f chat.File) bool { return f.Path != "" && !f.Voice })
}

// Title returns the first words of the conversation.
func (h *History) Title() string {
	for _, e := range h.view.entries {
		if title := TitleOf(e.said); title != "" {
			return title
		}
	}
	return ""
}

// TitleOf returns the title of a conversation that begins with text: at most 60 characters, "" if it makes none.
func TitleOf(text string) string {
	return chat.Shorten(chat.OneLine(chat.ClipMiddle(text, 400)), 60)
}

// Begin opens a turn that answers m, unless one is open.
func (h *History) Begin(m chat.Message) {
	if h.open == nil {
		h.open = &OpenTurn{first: m, from: m.From, keys: map[string]bool{}}
		h.open.expectCalls(nil)
	}
}

// End closes the open turn. Of one that was given up, nothing but its first message counts
// as answered: the process may have crashed over anything heard in it, and what
// joined it is still to be answered (P8).
func (h *History) End(e End) {
	o := h.open
	h.open = nil
	h.doubtful = h.doubtful && (o == nil || o.torn)
	h.last = LastTurn{Reply: e.Reply, Outcome: e.Outcome}
	if o != nil {
		h.last.First = o.first
		h.last.Usage = o.usage
		h.last.Steps = o.steps
		h.last.Text = o.Text()
		h.last.Sources = o.sources
		h.last.keys = o.keys
	}
	if e.Reply != nil {
		h.last.Text = e.Reply.Text
	}
	if o == nil || e.Outcome != GivenUp {
		return
	}
	h.last.keys = map[string]bool{o.first.Key(): true}
	if len(o.keys) > 0 {
		h.view.entries = h.view.entries[:h.view.turnStart()]
	}
}

// say applies an answer of the model.
func (h *History) say(seq uint64, m llm.Message) {
	e := Entry{}
	if h.open != nil {
		e.sources = h.open.sources
	}
	h.add(seq, e, m)
	if h.open != nil && m.Role == llm.Assistant {
		h.open.say(m)
	}
}

// finish applies the result of a call.
func (h *History) finish(seq uint64, r Record) {
	m, o := *r.Finished, h.open
	result := cmp.Or(r.Result, &tools.Result{})
	untrusted := untrustedSources(*result)
	if o == nil {
		h.add(seq, Entry{sources: untrusted}, m)
		return
	}
	call := tools.Call{ToolCall: llm.ToolCall{ID: m.Call}, Scope: tools.Scope{Turn: o.first.Key()}}
	h.add(seq, Entry{sources: untrusted, public: result.Public, key: call.Key()}, m)
	shown := result.Pictures[:min(len(result.Pictures), maxPictures)]
	if len(shown) > 0 { // models are shown them as a person's (D-052)
		text := fmt.Sprintf("[picture read by %s: %s]", m.Name, strings.Join(shown, ", "))
		h.add(seq, Entry{read: true, pictures: shown, sources: untrusted}, llm.Message{Role: llm.User, Text: text})
	}
	done := *result
	done.Told = r.Told
	o.finish(m, done)
	o.attach(result.Attached)
	o.distrust(untrusted)
	if r.Told != "" {
		o.told = append(o.told, r.Told)
	}
}

// rollBack drops the last answer and its results (E-041).
func (h *History) rollBack(note string) {
	o := h.open
	o.expectCalls(nil)
	o.note = note
	o.row++
	if n := len(o.said) - 1; n >= 0 {
		o.revoked = append(o.revoked, o.said[n])
		o.said = o.said[:n:n]
	}
	for i := len(h.view.entries) - 1; i >= 0; i-- {
		e := h.view.entries[i]
		if e.heard == "" {
			h.view.entries = slices.Delete(h.view.entries, i, i+1)
		}
		if e.Role == llm.Assistant {
			return
		}
	}
}

// ShownCalls returns a function that reports whether the model is shown the whole
// result of the call with that key. It may be called later, from any goroutine.
func (h *History) ShownCalls() func(key string) bool {
	keys := map[string]bool{}
	for i := range h.view.entries {
		keys[h.view.entries[i].key] = true // "", too, which names no call
	}
	return func(key string) bool { return keys[key] }
}

// add appends m to what the model is shown.
func (h *History) add(seq uint64, e Entry, m llm.Message) {
	e.Message, e.seq = m, seq
	h.view.entries = append(h.view.entries, e)
	if len(e.pictures) > 0 && h.view.showing() > maxPictures {
		h.view.dim(fewPictures)
	}
}

// dropAnswers drops what was answered in the last turn, and keeps what was heard.
func (h *History) dropAnswers() {
	kept := h.view.entries[:h.view.turnStart()]
	for _, e := range h.view.entries[len(kept):] {
		if e.heard != "" {
			kept = append(kept, e)
		}
	}
	h.view.entries = kept
}

// Knows reports whether m was heard before, or is an edit that changed nothing.
func (h *History) Knows(m chat.Message) bool {
	return h.open != nil && h.open.keys[m.Key()] || h.last.keys[m.Key()] || h.unchanged(m)
}

// unchanged reports whether m is an edit that changed no word, such as when a
// network adds the preview of a link.
func (h *History) unchanged(m chat.Message) bool {
	for i := len(h.view.entries) - 1; i >= 0 && m.Edits != ""; i-- {
		if e := h.view.entries[i]; e.heard == m.Edits {
			return e.said == m.Text
		}
	}
	return false
}
