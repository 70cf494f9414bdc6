package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
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
	Seq     uint64         `json:"seq,omitempty"` // its number; the log itself has it elsewhere
	ID      string         `json:"id"`            // as the browser or the house named it
	Who     string         `json:"who"`
	Text    string         `json:"text"`            // Markdown, unless it is the person's
	Steps   string         `json:"steps,omitempty"` // one line on what was done for it
	Time    time.Time      `json:"time"`
	Files   []file         `json:"files,omitempty"`
	Ask     *chat.Question `json:"ask,omitempty"`     // what is to be chosen, and was not yet
	Edits   uint64         `json:"edits,omitempty"`   // number of the record whose place it takes
	Replies string         `json:"replies,omitempty"` // ID of what it answers
	Also    []string       `json:"also,omitempty"`    // IDs of what it answers besides
}

// A name tells what was said from what else was said in its conversation.
type name struct{ who, id string }

// A room is a conversation in which somebody is.
type room struct {
	c     *Channel
	at    chat.Address
	log   store.Log
	users int // guarded by Channel.mu

	// writing is held to write to the log, and until the house has what is in
	// it: both have the same order. It guards known.
	writing sync.Mutex
	known   map[name]uint64 // the numbers of all that was said; nil until it is needed

	mu     sync.Mutex    // guards what follows; taken after the others
	frames []frame       // the latest news for those who read along
	size   int           // bytes of frames
	end    uint64        // how many frames there have ever been
	news   chan struct{} // closed when there is something to take
	drafts uint64        // how many drafts there have ever been
	making making
}

func newRoom(c *Channel, at chat.Address) *room {
	return &room{
		c:    c,
		at:   at,
		log:  c.cfg.Store.Log(store.LogChat(c.cfg.Name, at.Chat, at.Thread)),
		news: make(chan struct{}),
	}
}

// since yields what was said after record seq, until an error. A damaged record
// says that it is (P21).
func (rm *room) since(ctx context.Context, seq uint64) iter.Seq2[said, error] {
	return func(yield func(said, error) bool) {
		for rec, err := range rm.log.Since(ctx, seq) {
			var s said
			if err == nil && json.Unmarshal(rec.Body, &s) != nil {
				err = store.ErrDamaged
			}
			if errors.Is(err, store.ErrDamaged) {
				s, err = said{
					ID:   fmt.Sprint("damaged-", rec.Seq),
					Who:  note,
					Text: "What was said here is damaged on disk.",
				}, nil
			}
			s.Seq = rec.Seq
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// append appends s and shows it, unless it is there already: then again is
// true. The caller holds writing.
func (rm *room) append(ctx context.Context, s said) (seq uint64, again bool, err error) {
	h, err := rm.c.held(ctx, rm.at)
	if err != nil {
		return 0, false, err
	}
	if rm.known == nil {
		known := map[name]uint64{}
		for s, err := range rm.since(ctx, 0) {
			if err != nil {
				return 0, false, err
			}
			if s.Edits == 0 {
				known[name{s.Who, s.ID}] = s.Seq
			}
		}
		rm.known = known
	}
	if seq, again = rm.known[name{s.Who, s.ID}]; again {
		return seq, true, nil
	}
	if err := rm.c.touch(ctx, rm.at, h, s); err != nil {
		return 0, false, err
	}
	if seq, err = rm.write(ctx, s); err == nil && s.Ask != nil {
		err = rm.countAsks(ctx)
	}
	return seq, false, err
}

// write appends s to the log and shows it. The caller holds writing.
func (rm *room) write(ctx context.Context, s said) (seq uint64, err error) {
	body, err := json.Marshal(s)
	if err == nil {
		seq, err = rm.log.Append(ctx, body)
	}
	if err != nil {
		rm.known = nil // it may be there, or not
		return 0, err
	}
	if s.Edits == 0 && rm.known != nil {
		rm.known[name{s.Who, s.ID}] = seq
	}
	s.Seq = seq
	rm.show(s)
	return seq, nil
}

// edit makes what record seq said say r, unless it does.
func (rm *room) edit(ctx context.Context, seq uint64, r chat.Reply) error {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	var now said
	for s, err := range rm.since(ctx, seq-1) {
		if err != nil {
			return err
		}
		if s.Seq == seq && s.Who == parley || s.Edits == seq {
			now = s
		}
	}
	if now.ID == "" {
		return errGone
	}
	if now.Text == r.Text && (now.Ask == nil) == (r.Ask == nil) {
		return nil
	}
	now.Seq = 0
	now.Edits = seq
	now.Text = r.Text
	now.Ask = r.Ask
	if _, err := rm.write(ctx, now); err != nil {
		return err
	}
	return rm.countAsks(ctx)
}

// countAsks notes for the list how many questions wait for an answer. The caller
// holds writing.
func (rm *room) countAsks(ctx context.Context) error {
	waiting := map[uint64]bool{} // by number of the record
	for s, err := range rm.since(ctx, 0) {
		if err != nil {
			return err
		}
		delete(waiting, s.Edits)
		if s.Ask != nil {
			waiting[cmp.Or(s.Edits, s.Seq)] = true
		}
	}
	h, err := rm.c.held(ctx, rm.at)
	if err != nil || h.Asks == len(waiting) {
		return err
	}
	h.Asks = len(waiting)
	return rm.c.hold(ctx, rm.at, h)
}

// wasAnswered says whether what the person said as id, in record seq, has an answer.
func (rm *room) wasAnswered(ctx context.Context, id string, seq uint64) (bool, error) {
	for s, err := range rm.since(ctx, seq) {
		if err != nil || s.Replies == id || slices.Contains(s.Also, id) {
			return err == nil, err
		}
	}
	return false, nil
}

// question returns the record where a question was put, or errGone.
func (rm *room) question(ctx context.Context, id string) (said, error) {
	for s, err := range rm.since(ctx, 0) {
		if err != nil || s.Ask != nil && s.Ask.ID == id {
			return s, err
		}
	}
	return said{}, errGone
}

const pageful = 100 // records

// before returns a pageful of what was said before record seq, as it says now,
// and the number of the last record of all.
func (rm *room) before(ctx context.Context, seq uint64) (es []entry, more bool, last uint64, err error) {
	var all []said
	place := map[uint64]int{}
	for s, err := range rm.since(ctx, 0) {
		if err != nil {
			return nil, false, 0, err
		}
		last = s.Seq
		if i, ok := place[s.Edits]; ok {
			s.Seq, s.Edits = s.Edits, 0
			all[i] = s
		} else if s.Edits == 0 && s.Seq < seq {
			place[s.Seq] = len(all)
			all = append(all, s)
		}
	}
	if more = len(all) > pageful; more {
		all = all[len(all)-pageful:]
	}
	for _, s := range inOrder(all) {
		es = append(es, s.entry())
	}
	return es, more, last, nil
}

// inOrder puts what the person said while an answer was being made behind that
// answer, unless it answers that, too.
func inOrder(all []said) []said {
	for i, a := range all {
		if a.Who != parley || a.Replies == "" {
			continue
		}
		last := i
		for j, s := range all[:i] {
			if s.Who == you && (s.ID == a.Replies || slices.Contains(a.Also, s.ID)) {
				last = j
			}
		}
		if last == i { // what it answers is further up
			continue
		}
		var before, after []said
		for _, s := range all[last+1 : i] {
			if s.Who == you {
				after = append(after, s)
			} else {
				before = append(before, s)
			}
		}
		copy(all[last+1:], slices.Concat(before, []said{a}, after))
	}
	return all
}

// clear forgets everything that was said, and the conversation.
func (rm *room) clear(ctx context.Context) error {
	rm.writing.Lock()
	defer rm.writing.Unlock()
	if rm.c.cfg.Forget != nil {
		if err := rm.c.cfg.Forget(ctx, rm.at.Session()); err != nil {
			return err
		}
	}
	rm.known = nil
	for s, err := range rm.since(ctx, 0) {
		for _, f := range s.Files {
			err = errors.Join(err, rm.c.files.Delete(ctx, key(rm.at.Chat, f.ID)))
		}
		if err != nil {
			return err
		}
	}
	if err := rm.log.Trim(ctx, ^uint64(0)); err != nil {
		return err
	}
	if err := rm.c.talks.Delete(ctx, key(rm.at.Chat, rm.at.Thread)); err != nil {
		return err
	}
	rm.empty()
	return nil
}
