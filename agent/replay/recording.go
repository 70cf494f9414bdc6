// Package replay writes recordings of sessions, reads them, and is the model, the
// tools and the memory of a turn that is run again.
//
// All that a recording needs is in the session's log: what was heard, how each
// request was fitted, what the model answered and what each call gave.
package replay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"parley/agent/conversation"
	"parley/branches"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A Recording is all that is needed to print the turns of a session and to run
// them again.
type Recording struct {
	session       chat.SessionID
	zone          *time.Location
	prompts       map[string]string               // by their digests
	conversations [][]conversation.NumberedRecord // the records of each
	toolSets      map[string]toolSet              // by the digests of their texts
	removed       time.Time                       // what was said before is not in the recording; zero: all is
}

// Session names the session that was recorded.
func (r *Recording) Session() chat.SessionID { return r.session }

// Zone returns the time zone in which the model was told the time.
func (r *Recording) Zone() *time.Location { return r.zone }

// A Turn is what was recorded from the first message heard to the end.
type Turn struct {
	N      int // from 1
	Talk   int // which conversation of the session it is part of, from 1
	Events []Event

	// Back is set if the person went back before: the number of the record that the turn goes on from.
	Back *uint64

	// Removed is set in the first turn if what was said before that time was removed.
	Removed time.Time

	before  []conversation.NumberedRecord // the records of the conversation before the turn
	records []conversation.NumberedRecord // those of the turn
}

// An Event is a record of a turn.
type Event struct {
	conversation.Record
	Request *llm.Request // of Asked: as it was made, without pictures; nil if that is not known
}

// A line of a recording is its head, a prompt that a later line names, or a record.
type line struct {
	Session chat.SessionID `json:"session,omitempty"` // of the head
	Zone    string         `json:"zone,omitempty"`
	Removed time.Time      `json:"removed,omitzero"` // what was said before was removed because it was old
	Digest  string         `json:"digest,omitempty"` // of a prompt
	Text    string         `json:"text,omitempty"`
	Epoch   int64          `json:"epoch,omitempty"`
	Seq     uint64         `json:"seq,omitempty"` // of a record
	conversation.Record
}

// Write yields the lines of a recording of the session id, JSON each. Damaged
// records are left out. If there is no such session the error is
// store.ErrNotFound, and there are no lines.
func Write(
	ctx context.Context, sessions *conversation.Sessions, prompts *conversation.Prompts, zone *time.Location,
	id chat.SessionID,
) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		w := writer{ctx: ctx, prompts: prompts, yield: yield, written: map[string]bool{"": true}}
		begun := false
		for r, err := range sessions.Journal(ctx, id) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !begun && !w.writeHead(sessions, id, zone) {
				return
			}
			begun = true
			if !w.writePrompts(r.Asked) || !w.write(line{Epoch: r.Epoch, Seq: r.Seq, Record: r.Record}) {
				return
			}
		}
		if !begun { // all that was said has been removed
			w.writeHead(sessions, id, zone)
		}
	}
}

// A writer yields lines.
type writer struct {
	ctx     context.Context //nolint:containedctx // of one call of Write
	prompts *conversation.Prompts
	yield   func([]byte, error) bool
	written map[string]bool // digests of the prompts that were yielded
}

// writeHead yields the head of the recording of the session id.
func (w *writer) writeHead(sessions *conversation.Sessions, id chat.SessionID, zone *time.Location) bool {
	st, _, err := sessions.Lookup(w.ctx, id)
	if err != nil {
		w.yield(nil, err)
		return false
	}
	return w.write(line{Session: id, Zone: zone.String(), Removed: st.Removed.Before})
}

// write yields l and reports whether more is wanted.
func (w *writer) write(l line) bool {
	b, err := json.Marshal(l)
	return w.yield(append(b, '\n'), err)
}

// writePrompts yields the prompts that a request names, unless they were. What is
// not there is left out.
func (w *writer) writePrompts(how *conversation.Request) bool {
	if how == nil {
		return true
	}
	for _, digest := range []string{how.System, how.Tools} {
		if w.written[digest] {
			continue
		}
		w.written[digest] = true
		text, err := w.prompts.Text(w.ctx, digest)
		if err == nil && !w.write(line{Digest: digest, Text: text}) {
			return false
		}
	}
	return true
}

// Read reads what Write yields.
func Read(r io.Reader) (*Recording, error) {
	rec := &Recording{prompts: map[string]string{}, toolSets: map[string]toolSet{}}
	epoch := int64(-1)
	for d := json.NewDecoder(r); ; {
		var l line
		err := d.Decode(&l)
		switch {
		case errors.Is(err, io.EOF) && rec.zone != nil:
			return rec, nil
		case err == nil && rec.zone == nil && l.Session == "":
			err = errors.New("it does not begin with the name of a session")
		}
		if err != nil {
			return nil, fmt.Errorf("read recording: %w", err)
		}
		switch {
		case l.Session != "":
			rec.session = l.Session
			rec.removed = l.Removed
			if rec.zone, err = time.LoadLocation(l.Zone); err != nil {
				rec.zone = time.UTC
			}
		case l.Digest != "":
			rec.prompts[l.Digest] = l.Text
		default:
			if l.Epoch != epoch {
				epoch = l.Epoch
				rec.conversations = append(rec.conversations, nil)
			}
			last := &rec.conversations[len(rec.conversations)-1]
			if n := len(*last); l.Seq == 0 || n > 0 && l.Seq <= (*last)[n-1].Seq {
				return nil, errors.New("read recording: its records are not in order")
			}
			*last = append(*last, conversation.NumberedRecord{Seq: l.Seq, Record: l.Record})
		}
	}
}

// Turns yields the turns, oldest first. The last one may not have ended.
func (r *Recording) Turns() iter.Seq[Turn] {
	return func(yield func(Turn) bool) {
		n := 0
		for talk, records := range r.conversations {
			h := r.history(nil, 0)
			first := 0
			var events []Event
			var back *uint64
			for i, next := range records {
				var req *llm.Request
				h, req = r.apply(h, records[:i], next)
				if next.Branched != nil {
					back = &next.Branched.From
					first = i + 1
					continue
				}
				events = append(events, Event{next.Record, req})
				paused := next.Suspended != nil && h.OpenTurn() == nil
				if next.Ended == nil && !paused && i < len(records)-1 {
					continue
				}
				n++
				t := Turn{N: n, Talk: talk + 1, Events: events, before: records[:first], records: records[first : i+1]}
				t.Back, back = back, nil
				if n == 1 {
					t.Removed = r.removed
				}
				if !yield(t) {
					return
				}
				first = i + 1
				events = nil
			}
		}
	}
}

// Select yields the turn of that number only: 1 is the first, -1 the last, 0 stands for
// all turns. The error says that there is no such turn.
func (r *Recording) Select(number int) (iter.Seq[Turn], error) {
	if number == 0 {
		return r.Turns(), nil
	}
	count := 0
	for range r.Turns() {
		count++
	}
	wanted := number
	if wanted < 0 {
		wanted += count + 1
	}
	if wanted < 1 || wanted > count {
		return nil, fmt.Errorf("there is no turn %d; there are %d", number, count)
	}
	return func(yield func(Turn) bool) {
		for t := range r.Turns() {
			if t.N == wanted {
				yield(t)
				return
			}
		}
	}, nil
}

// history returns what records tell in the branch under way after them, those up to since
// left out.
func (r *Recording) history(records []conversation.NumberedRecord, since uint64) *conversation.History {
	h := conversation.NewHistory(r.zone)
	var tree branches.Tree
	last := uint64(0)
	for _, n := range records {
		last = n.Seq
		if n.Branched != nil {
			tree.GoOn(n.Seq, n.Branched.From)
		}
	}
	path := tree.Path(last)
	for _, n := range records {
		if n.Seq > since && path.Has(n.Seq) {
			h.Apply(n.Seq, n.Record)
		}
	}
	return h
}

// apply adds next to the history h, which before tells of, and returns the
// history with it and the request that next describes, if it is one.
func (r *Recording) apply(
	h *conversation.History, before []conversation.NumberedRecord, next conversation.NumberedRecord,
) (*conversation.History, *llm.Request) {
	if next.Branched != nil {
		return r.history(append(before[:len(before):len(before)], next), 0), nil
	}
	if next.Asked != nil && next.Asked.Since != nil {
		h = r.history(before, *next.Asked.Since)
	}
	var req *llm.Request
	if next.Asked != nil && !r.lacks(before, next) {
		req = r.request(h, *next.Asked)
	}
	h.Apply(next.Seq, next.Record)
	return h, req
}

// lacks reports whether the request next, which before comes before, was made of
// records that were removed because they were old. Those that were summed up, or were
// not read again, are not missed.
func (r *Recording) lacks(before []conversation.NumberedRecord, next conversation.NumberedRecord) bool {
	if r.removed.IsZero() || len(before) == 0 || before[0].Seq == 1 {
		return false
	}
	missing := before[0].Seq - 1 // the last record that was removed
	for _, n := range append(before[:len(before):len(before)], next) {
		summed := n.Summed != nil && n.Summed.Upto >= missing
		reread := n.Asked != nil && n.Asked.Since != nil && *n.Asked.Since >= missing
		if summed || reread {
			return false
		}
	}
	return true
}

// request returns the request that how describes, nil if what it was made of was
// not kept. It fits h as the request did.
func (r *Recording) request(h *conversation.History, how conversation.Request) *llm.Request {
	set := r.toolSet(how.Tools)
	system, known := r.prompts[how.System]
	messages := h.Messages(how, conversation.ShortenedFirst(set.kit), nil)
	if !known || !set.known {
		return nil
	}
	req := &llm.Request{System: system, Messages: messages}
	if !how.Last {
		req.Tools = set.text.Specs
	}
	return req
}

// A toolSet holds what was kept of tools.
type toolSet struct {
	text  conversation.ToolSet
	known bool // the text was kept
	kit   *tools.Kit
}

// toolSet returns the one whose text has that digest.
func (r *Recording) toolSet(digest string) toolSet {
	set, there := r.toolSets[digest]
	if there {
		return set
	}
	set = parseToolSet(r.prompts[digest])
	r.toolSets[digest] = set
	return set
}

// parseToolSet parses the text of a toolSet. One that cannot be read has no tools.
func parseToolSet(text string) toolSet {
	set := toolSet{kit: &tools.Kit{}}
	if err := json.Unmarshal([]byte(text), &set.text); err != nil {
		return set
	}
	idle := func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }
	kit, err := kitOf(context.Background(), set.text, tools.Scope{}, idle)
	if err != nil {
		return set
	}
	set.kit = kit
	set.known = true
	return set
}
