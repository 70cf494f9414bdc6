package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"

	"parley/agent/conversation"
	"parley/chat"
	"parley/llm"
	"parley/tools"
)

// A Recording is all that is needed to print the turns of a session and to run
// them again.
type Recording struct {
	session chat.SessionID
	zone    *time.Location
	prompts map[string]string               // by their digests
	talks   [][]conversation.NumberedRecord // the records of each conversation
	boxes   map[string]box                  // by the digests of their texts
}

// A Turn is what was written down from the first message heard to the end.
type Turn struct {
	N      int // from 1
	Talk   int // which conversation of the session it is part of, from 1
	Events []Event

	done []conversation.NumberedRecord // the records of the conversation before it
	last []conversation.NumberedRecord // its own
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
	Digest  string         `json:"digest,omitempty"` // of a prompt
	Text    string         `json:"text,omitempty"`
	Epoch   int64          `json:"epoch,omitempty"`
	Seq     uint64         `json:"seq,omitempty"` // of a record
	conversation.Record
}

// Recording yields the lines of a recording of the session id, JSON each. What
// is damaged is left out. If there is no such session the error is
// store.ErrNotFound, and there are no lines.
func (p *Pool) Recording(ctx context.Context, id chat.SessionID) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		written, begun := map[string]bool{"": true}, false
		write := func(l line) bool {
			b, err := json.Marshal(l)
			return yield(append(b, '\n'), err)
		}
		for r, err := range p.sessions.Journal(ctx, id) {
			if err != nil {
				yield(nil, err)
				return
			}
			if !begun && !write(line{Session: id, Zone: p.Zone.String()}) {
				return
			}
			begun = true
			how := cmp.Or(r.Asked, &conversation.Request{})
			for _, digest := range []string{how.System, how.Tools} {
				if written[digest] {
					continue
				}
				written[digest] = true
				text, err := p.prompts.Text(ctx, digest)
				if err != nil { // what is not there cannot be told
					continue
				}
				if !write(line{Digest: digest, Text: text}) {
					return
				}
			}
			if !write(line{Epoch: r.Epoch, Seq: r.Seq, Record: r.Record}) {
				return
			}
		}
	}
}

// ReadRecording reads what Recording yields.
func ReadRecording(r io.Reader) (*Recording, error) {
	rec, epoch := &Recording{prompts: map[string]string{}, boxes: map[string]box{}}, int64(-1)
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
			if rec.zone, err = time.LoadLocation(l.Zone); err != nil {
				rec.zone = time.UTC
			}
		case l.Digest != "":
			rec.prompts[l.Digest] = l.Text
		default:
			if l.Epoch != epoch {
				epoch, rec.talks = l.Epoch, append(rec.talks, nil)
			}
			last := &rec.talks[len(rec.talks)-1]
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
		for talk, records := range r.talks {
			h, first, events := r.history(nil, 0), 0, []Event(nil)
			for i, next := range records {
				var req *llm.Request
				h, req = r.step(h, records[:i], next)
				events = append(events, Event{next.Record, req})
				paused := next.Suspended != nil && h.OpenTurn() == nil
				if next.Ended == nil && !paused && i < len(records)-1 {
					continue
				}
				if n++; !yield(Turn{N: n, Talk: talk + 1, Events: events, done: records[:first], last: records[first : i+1]}) {
					return
				}
				first, events = i+1, nil
			}
		}
	}
}

// history returns what records tell, those up to since left out.
func (r *Recording) history(records []conversation.NumberedRecord, since uint64) *conversation.History {
	h := conversation.NewHistory(r.zone)
	for _, n := range records {
		if n.Seq > since {
			h.Apply(n.Seq, n.Record)
		}
	}
	return h
}

// step takes next in after done, which h tells of, and returns the history with
// it, and the request that next is, if it is one.
func (r *Recording) step(h *conversation.History, done []conversation.NumberedRecord, next conversation.NumberedRecord) (*conversation.History, *llm.Request) {
	var req *llm.Request
	if how := next.Asked; how != nil {
		if how.Since != nil {
			h = r.history(done, *how.Since)
		}
		b := r.box(how.Tools)
		system, there := r.prompts[how.System]
		if ms := h.Messages(*how, conversation.ShortenedFirst(b.kit), nil); there && b.known {
			if req = (&llm.Request{System: system, Messages: ms}); !how.Last {
				req.Tools = b.text.Specs
			}
		}
	}
	h.Apply(next.Seq, next.Record)
	return h, req
}

// A box holds what was kept of tools.
type box struct {
	text  conversation.ToolSet
	known bool // the text was there
	kit   *tools.Kit
}

// box returns the one whose text has that digest.
func (r *Recording) box(digest string) box {
	b, there := r.boxes[digest]
	if !there {
		err := json.Unmarshal([]byte(r.prompts[digest]), &b.text)
		if err == nil {
			idle := func(context.Context, tools.Call) (tools.Result, error) { return tools.Result{}, nil }
			b.kit, err = kitOf(context.Background(), b.text, tools.Scope{}, idle)
		}
		if b.known = err == nil; !b.known {
			b.kit = &tools.Kit{}
		}
		r.boxes[digest] = b
	}
	return b
}
