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

	"parley/branches"
	"parley/chat"
	"parley/store"
)

// Authors of entries.
const (
	whoPerson = "you"    // the person
	whoAgent  = "parley" // the agent
	whoPage   = "note"   // the page, in place of a damaged entry
	whoSwitch = "switch" // the page: an entry that is not shown and goes on from the end of another branch
)

// A logEntry is an entry in the log of a conversation.
type logEntry struct {
	Seq     uint64           `json:"seq,omitempty"` // its number in the log; not stored in the entry
	ID      string           `json:"id"`            // chosen by the browser or the gateway
	Who     string           `json:"who"`
	Text    string           `json:"text"`              // Markdown if the agent's, else plain text
	Steps   string           `json:"steps,omitempty"`   // one line about the tool calls made for it
	Taken   *chat.StepCounts `json:"taken,omitempty"`   // counts those calls
	StepsOf string           `json:"stepsOf,omitempty"` // ID of the reply that ended the turn of a tool's answer
	Time    time.Time        `json:"time"`
	Files   []fileLink       `json:"files,omitempty"`
	Ask     *chat.Question   `json:"ask,omitempty"`     // a question
	Outcome *chat.Outcome    `json:"outcome,omitempty"` // how it ended; nil: it is open
	Edits   uint64           `json:"edits,omitempty"`   // number of the entry that it replaces
	Replies string           `json:"replies,omitempty"` // ID of the message that it answers
	Also    []string         `json:"also,omitempty"`    // IDs of other messages that it answers

	// Branches of the conversation (see branches.go):
	Branch  *chat.Branch `json:"branch,omitempty"`  // what the agent is told of that
	From    *uint64      `json:"from,omitempty"`    // number of the entry that it goes on from; nil: the one before
	Instead uint64       `json:"instead,omitempty"` // number of the entry of which it is another version
	Again   bool         `json:"again,omitempty"`   // it asks for another answer, and is not shown
}

// An entryKey identifies an entry in its conversation.
type entryKey struct{ who, id string }

// A room is an open conversation: its log, and what its readers are sent.
type room struct {
	c       *Channel
	address chat.Address
	log     store.Log
	users   int // guarded by Channel.mu

	// writeMu is held while an entry is written to the log and delivered, so that both
	// happen in the same order. It guards what follows.
	writeMu sync.Mutex
	seqs    map[entryKey]uint64 // numbers of all entries; nil: not loaded
	tree    branches.Tree       // of the entries, once seqs are loaded
	last    uint64              // number of the last entry, which the next one follows, once seqs are loaded

	mu         sync.Mutex    // guards the fields below; locked after writeMu and Channel.mu
	events     []sseEvent    // the latest ones
	eventBytes int           // size of events
	eventCount uint64        // number of events so far
	changed    chan struct{} // closed and replaced when readers have something to read
	draftCount uint64        // number of drafts so far
	pending    pendingReply
}

func newRoom(c *Channel, at chat.Address) *room {
	return &room{
		c:       c,
		address: at,
		log:     c.cfg.Store.Log(store.LogChat(c.cfg.Name, at.Chat, at.Thread)),
		changed: make(chan struct{}),
	}
}

// entriesAfter yields the entries after number seq, until an error. It replaces a
// damaged entry with a note that it is damaged (P21).
func (rm *room) entriesAfter(ctx context.Context, seq uint64) iter.Seq2[logEntry, error] {
	return func(yield func(logEntry, error) bool) {
		for rec, err := range rm.log.Since(ctx, seq) {
			var e logEntry
			if err == nil && json.Unmarshal(rec.Body, &e) != nil {
				err = store.ErrDamaged
			}
			if errors.Is(err, store.ErrDamaged) {
				e, err = logEntry{
					ID:   fmt.Sprint("damaged-", rec.Seq),
					Who:  whoPage,
					Text: "This message is damaged on disk.",
				}, nil
			}
			e.Seq = rec.Seq
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

// appendEntry appends e to the log and shows it, unless the log has it already: then
// again is true. The caller holds writeMu.
func (rm *room) appendEntry(ctx context.Context, e logEntry) (seq uint64, again bool, err error) {
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if err != nil {
		return 0, false, err
	}
	if err := rm.load(ctx); err != nil {
		return 0, false, err
	}
	if seq, again = rm.seqs[entryKey{e.Who, e.ID}]; again {
		return seq, true, nil
	}
	if err := rm.c.conversations.noteActivity(store.Deferred(ctx), rm.address, conv, e); err != nil {
		return 0, false, err
	}
	seq, err = rm.writeEntry(ctx, e)
	if err != nil || e.Ask == nil {
		return seq, false, err
	}
	return seq, false, rm.updateAskCount(ctx, 0)
}

// load reads which entries there are. The caller holds writeMu.
func (rm *room) load(ctx context.Context) error {
	if rm.seqs != nil {
		return nil
	}
	last, err := store.LastNumber(ctx, rm.log)
	if err != nil {
		return err
	}
	seqs := map[entryKey]uint64{}
	rm.tree, rm.last = branches.Tree{}, last
	for old, err := range rm.entriesAfter(ctx, 0) {
		if err != nil {
			return err
		}
		if old.Edits == 0 {
			seqs[entryKey{old.Who, old.ID}] = old.Seq
		}
		rm.note(old)
	}
	rm.seqs = seqs
	return nil
}

// writeEntry writes e to the log and shows it. If it is an answer in a branch that was
// left, that stays left. The caller holds writeMu and has loaded the entries. The error is
// store.ErrConflict if somebody else has written to the log since: the next try loads them anew.
func (rm *room) writeEntry(ctx context.Context, e logEntry) (seq uint64, err error) {
	all := rm.inItsBranch(e)
	bodies := make([][]byte, len(all))
	for i, e := range all {
		if bodies[i], err = json.Marshal(e); err != nil {
			return 0, err
		}
	}
	seq, err = rm.log.Append(ctx, rm.last, bodies...)
	if err != nil {
		rm.seqs = nil // the log may have it or not
		return 0, err
	}
	seq -= uint64(len(all) - 1) // of e
	for i, e := range all {
		e.Seq = seq + uint64(i)
		if e.Edits == 0 {
			rm.seqs[entryKey{e.Who, e.ID}] = e.Seq
		}
		rm.note(e)
		rm.showEntry(e)
	}
	return seq, nil
}

// entryNow returns the agent's entry seq with later edits applied, without its number, or errGone.
func (rm *room) entryNow(ctx context.Context, seq uint64) (now logEntry, err error) {
	for e, err := range rm.entriesAfter(ctx, seq-1) {
		if err != nil {
			return now, err
		}
		if e.Seq == seq && e.Who == whoAgent || e.Edits == seq {
			now = e
		}
	}
	if now.ID == "" {
		return now, errGone
	}
	now.Seq = 0
	return now, nil
}

// editEntry gives the entry seq the text and question of r.
func (rm *room) editEntry(ctx context.Context, seq uint64, r chat.Reply) error {
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	if err := rm.load(ctx); err != nil {
		return err
	}
	now, err := rm.entryNow(ctx, seq)
	if err != nil {
		return err
	}
	switch {
	case r.Outcome != nil && now.Outcome != nil, now.Text == r.Text && (now.Ask == nil) == (r.Ask == nil):
		return nil
	case r.Outcome != nil && now.Ask != nil: // its card says how the question ended
		now.Outcome = r.Outcome
	default:
		now.Text = r.Text
		now.Ask = r.Ask
	}
	now.Edits = seq
	if _, err := rm.writeEntry(ctx, now); err != nil {
		return err
	}
	return rm.updateAskCount(ctx, 0)
}

// updateAskCount updates the number of open questions in the list, of the entries after
// number seq. The caller holds writeMu.
func (rm *room) updateAskCount(ctx context.Context, seq uint64) error {
	open := map[uint64]bool{} // by number of the entry
	for e, err := range rm.entriesAfter(ctx, seq) {
		if err != nil {
			return err
		}
		delete(open, e.Edits)
		if e.card().Waits() {
			open[cmp.Or(e.Edits, e.Seq)] = true
		}
	}
	conv, err := rm.c.conversations.get(ctx, rm.address)
	if err != nil || conv.Asks == len(open) {
		return err
	}
	conv.Asks = len(open)
	return rm.c.conversations.set(ctx, rm.address, conv)
}

// lookUp returns when the person's message id, which is entry seq, was sent first, and
// whether it has an answer.
func (rm *room) lookUp(ctx context.Context, id string, seq uint64) (sent time.Time, answered bool, err error) {
	for e, err := range rm.entriesAfter(ctx, seq-1) {
		switch {
		case err != nil || e.Replies == id || slices.Contains(e.Also, id):
			return sent, err == nil, err
		case e.Seq == seq:
			sent = e.Time
		}
	}
	return sent, false, nil
}

// findQuestion returns the entry with a question, or errGone.
func (rm *room) findQuestion(ctx context.Context, id string) (logEntry, error) {
	for e, err := range rm.entriesAfter(ctx, 0) {
		if err != nil || e.Ask != nil && e.Ask.ID == id {
			return e, err
		}
	}
	return logEntry{}, errGone
}

const pageSize = 100 // entries

// pageBefore returns a page of the entries before number seq, with later edits
// applied, and the number of the last entry of the log.
func (rm *room) pageBefore(ctx context.Context, seq uint64) (es []renderedEntry, more bool, last uint64, err error) {
	var branch branchReader
	for e, err := range rm.entriesAfter(ctx, 0) {
		if err != nil {
			return nil, false, 0, err
		}
		branch.add(e)
	}
	all := slices.DeleteFunc(branch.shown(), func(e logEntry) bool { return e.Seq >= seq })
	if more = len(all) > pageSize; more {
		all = all[len(all)-pageSize:]
	}
	answered := orderEntries(all)
	for _, e := range all {
		shown := e.render()
		shown.Versions, shown.Version = branch.versionsOf(e)
		shown.Answered = e.Who == whoPerson && answered[e.ID]
		es = append(es, shown)
	}
	return es, more, branch.last, nil
}

// orderEntries moves answers above messages that the person sent while they were being written, unless
// these have an answer then: that one, or one that came meanwhile, as those of commands do. All else stays
// where it was said. It returns the IDs of the messages that have an answer.
func orderEntries(all []logEntry) (answered map[string]bool) {
	answered = map[string]bool{}
	for i, a := range all {
		if a.Who != whoAgent || a.Replies == "" {
			continue
		}
		answered[a.Replies] = true
		for _, id := range a.Also {
			answered[id] = true
		}
		last := i
		for j, e := range all[:i] {
			if e.Who == whoPerson && a.answers(e.ID) {
				last = j
			}
		}
		isLater := func(e logEntry) bool { return e.Who == whoPerson && !answered[e.ID] }
		if place := slices.IndexFunc(all[min(last+1, i):i], isLater); place >= 0 {
			place += last + 1
			copy(all[place+1:i+1], all[place:i])
			all[place] = a
		}
	}
	return answered
}

// delete deletes the conversation with its log, files and session.
func (rm *room) delete(ctx context.Context) error {
	rm.writeMu.Lock()
	defer rm.writeMu.Unlock()
	if rm.c.cfg.Forget != nil {
		if err := rm.c.cfg.Forget(ctx, rm.address.Session()); err != nil {
			return err
		}
	}
	rm.seqs = nil
	for e, err := range rm.entriesAfter(ctx, 0) {
		for _, f := range e.Files {
			err = errors.Join(err, rm.c.files.Delete(ctx, storeKey(rm.address.Chat, f.ID)))
		}
		if err != nil {
			return err
		}
	}
	if err := rm.log.Trim(ctx, ^uint64(0)); err != nil {
		return err
	}
	if err := rm.c.conversations.table.Delete(ctx, storeKey(rm.address.Chat, rm.address.Thread)); err != nil {
		return err
	}
	rm.reset()
	return nil
}
