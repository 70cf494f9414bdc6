package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
)

// Who says something.
const (
	you    = "you"    // the person
	parley = "parley" // the agent
	note   = "note"   // the page itself
)

// A said is a record in the log of a conversation.
type said struct {
	ID      string         `json:"id"` // as the browser or the house named it
	Who     string         `json:"who"`
	Text    string         `json:"text,omitempty"` // Markdown, unless it is the person's
	Time    time.Time      `json:"time"`
	Files   []stored       `json:"files,omitempty"`
	Ask     *chat.Question `json:"ask,omitempty"`
	Edits   uint64         `json:"edits,omitempty"`   // number of the record whose place it takes
	Replies string         `json:"replies,omitempty"` // ID of what it answers
	Also    []string       `json:"also,omitempty"`    // IDs of what it answers besides
}

// A room is a conversation in memory. What it knows of the log it reads when it
// is first needed.
type room struct {
	c     *Channel
	at    chat.Address
	log   store.Log
	users int // guarded by Channel.mu, as is
	idle  int // how often it is in Channel.idle

	posting sync.Mutex // held until the house has what is in the log: both have the same order

	writing  sync.Mutex // guards the end of the log, and what follows
	loaded   bool
	last     uint64            // number of the last record
	known    map[string]uint64 // who and ID -> number, of the latest records
	answered map[string]bool   // IDs of what was answered by the latest records
	asked    map[string]asked  // by question

	mu      sync.Mutex // guards what follows; taken after Channel.mu and writing
	readers map[*reader]struct{}
	making  making
}

// An asked is a question that was put.
type asked struct {
	seq     uint64
	choices int
}

func newRoom(c *Channel, at chat.Address) *room {
	return &room{c: c, at: at, log: c.cfg.Store.Log(c.cfg.Name + "/" + at.Chat + "/" + at.Thread), readers: map[*reader]struct{}{}}
}

const memory = 500 // records, of which a room knows when it is loaded

// load reads the end of the log. The caller holds writing.
func (rm *room) load(ctx context.Context) error {
	if rm.loaded {
		return nil
	}
	h, _, err := rm.c.held(ctx, rm.at)
	if err != nil {
		return err
	}
	rm.last, rm.known, rm.answered, rm.asked = 0, map[string]uint64{}, map[string]bool{}, map[string]asked{}
	for rec, err := range rm.log.Since(ctx, h.Seq-min(h.Seq, memory)) {
		s, err := read(rec, err)
		if err != nil {
			return err
		}
		rm.know(rec.Seq, s)
	}
	rm.loaded = true
	return nil
}

// read returns what rec says. A damaged record says that it is.
func read(rec store.Record, err error) (s said, _ error) {
	if err == nil && json.Unmarshal(rec.Body, &s) != nil {
		err = store.ErrDamaged
	}
	if errors.Is(err, store.ErrDamaged) {
		return said{ID: fmt.Sprint("damaged-", rec.Seq), Who: note, Text: "What was said here is damaged on disk."}, nil
	}
	return s, err
}

// know notes that record seq says s.
func (rm *room) know(seq uint64, s said) {
	rm.last = seq
	if s.Edits > 0 {
		return
	}
	rm.known[s.Who+" "+s.ID] = seq
	for _, id := range append(s.Also, s.Replies) {
		rm.answered[id] = true
	}
	if s.Ask != nil {
		rm.asked[s.Ask.ID] = asked{seq, len(s.Ask.Choices)}
	}
}

// append appends s and shows it, unless it is there already: then again is true.
func (rm *room) append(ctx context.Context, s said) (seq uint64, again bool, err error) {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	if err := rm.load(ctx); err != nil {
		return 0, false, err
	}
	if seq, ok := rm.known[s.Who+" "+s.ID]; ok {
		return seq, true, nil
	}
	if err := rm.c.touch(ctx, rm, s); err != nil {
		return 0, false, err
	}
	seq, err = rm.write(ctx, s)
	return seq, false, err
}

// write appends s to the log. The caller holds writing.
func (rm *room) write(ctx context.Context, s said) (uint64, error) {
	body, err := json.Marshal(s)
	if err != nil {
		return 0, err
	}
	seq, err := rm.log.Append(ctx, body)
	if err != nil {
		rm.loaded = false // it may be there, or not
		return 0, err
	}
	rm.know(seq, s)
	rm.show(seq, s)
	return seq, nil
}

// edit makes what record seq said say r, unless it does.
func (rm *room) edit(ctx context.Context, seq uint64, r chat.Reply) error {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	if err := rm.load(ctx); err != nil {
		return err
	}
	var now said
	for rec, err := range rm.log.Since(ctx, seq-1) {
		s, err := read(rec, err)
		if err != nil {
			return err
		}
		if rec.Seq == seq && s.Who == parley || s.Edits == seq {
			now = s
		}
	}
	if now.ID == "" {
		return errGone
	}
	if now.Text == r.Text && (now.Ask == nil) == (r.Ask == nil) {
		return nil
	}
	now.Edits, now.Text, now.Ask = seq, r.Text, r.Ask
	_, err := rm.write(ctx, now)
	return err
}

// wasAnswered says whether there is an answer to what the person said as id.
func (rm *room) wasAnswered(id string) bool {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	return rm.answered[id]
}

// question returns where a question was put.
func (rm *room) question(ctx context.Context, id string) (asked, error) {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	if err := rm.load(ctx); err != nil {
		return asked{}, err
	}
	q, ok := rm.asked[id]
	if !ok {
		return asked{}, errGone
	}
	return q, nil
}

// end returns the number of the last record.
func (rm *room) end(ctx context.Context) (uint64, error) {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	err := rm.load(ctx)
	return rm.last, err
}

const (
	pageful = 100 // records
	behind  = 200 // records among which changes of those before are looked for
)

// before returns a pageful of what was said before record seq, as it says now.
func (rm *room) before(ctx context.Context, seq uint64) (es []entry, more bool, err error) {
	from := seq - min(seq, pageful+1)
	place := map[uint64]int{}
	for rec, err := range rm.log.Since(ctx, from) {
		s, err := read(rec, err)
		if err != nil {
			return nil, false, err
		}
		if rec.Seq >= seq+behind {
			break
		}
		e := rm.c.entry(rec.Seq, s)
		if i, ok := place[s.Edits]; ok {
			e.Seq, e.Edits = s.Edits, 0
			es[i] = e
		}
		if s.Edits == 0 && rec.Seq < seq {
			place[rec.Seq] = len(es)
			es = append(es, e)
		}
	}
	return es, from > 0 && len(es) > 0, nil
}

// clear forgets everything that was said, and the conversation.
func (rm *room) clear(ctx context.Context) error {
	rm.posting.Lock()
	defer rm.posting.Unlock()
	if rm.c.cfg.Forget != nil {
		if err := rm.c.cfg.Forget(ctx, rm.at.Session()); err != nil {
			return err
		}
	}
	rm.writing.Lock()
	defer rm.writing.Unlock()
	rm.loaded = false
	for rec, err := range rm.log.Since(ctx, 0) {
		s, err := read(rec, err)
		if err != nil {
			return err
		}
		for _, f := range s.Files {
			if err := rm.c.files.Delete(ctx, key(rm.at.Chat, f.ID)); err != nil {
				return err
			}
		}
	}
	if err := rm.log.Trim(ctx, ^uint64(0)); err != nil {
		return err
	}
	if err := rm.c.talks.Delete(ctx, key(rm.at.Chat, rm.at.Thread)); err != nil {
		return err
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	for rd := range rm.readers {
		rd.lose()
	}
	return nil
}
