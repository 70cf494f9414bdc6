package conversation

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"time"

	"parley/chat"
	"parley/store"
)

// A state is what is kept of a session beside its log.
type State struct {
	Epoch  int64  `json:"epoch,omitempty"`  // number of the conversation: /new begins the next
	Model  string `json:"model,omitempty"`  // chosen with /model
	Quiet  bool   `json:"quiet,omitempty"`  // chosen with /verbose off
	Undone string `json:"undone,omitempty"` // key of the last /undo
	From   uint64 `json:"from,omitempty"`   // first record that is read: what is older never fits the model
	Base   int64  `json:"base,omitempty"`   // first Epoch since this record was damaged
	First  int64  `json:"first,omitempty"`  // earlier conversations are forgotten

	Digested ArchiveProgress `json:"digested,omitzero"`
	Grants   []Grant         `json:"grants,omitempty"` // what owners approved for a while

	Began time.Time `json:"began,omitzero"`
	Last  time.Time `json:"last,omitzero"` // when somebody spoke, to within lastEvery
	Title string    `json:"title,omitempty"`
}

// digested is how far the conversation is archived. A part is settled before it
// is archived, so that it is the same part after a crash.
type ArchiveProgress struct {
	Epoch int64  `json:"epoch,omitempty"`
	Done  uint64 `json:"done,omitempty"`  // last record of what is archived
	Seq   uint64 `json:"seq,omitempty"`   // last record of the part that comes next, or Done: no turn archives it
	Tries int    `json:"tries,omitempty"` // of the model to sum it up
}

// A grant is an owner's yes to all calls with the same effect in one session,
// although untrusted content is there (R-S12). It is kept in the state of the
// session of the chat in which it was given, and shown there.
type Grant struct {
	Session chat.SessionID `json:"session"`
	Effect  string         `json:"effect"`
	By      string         `json:"by"`             // ID of who gave it
	Until   time.Time      `json:"until,omitzero"` // zero: until the conversation ends
}

// Over reports whether g has ended.
func (g Grant) Over() bool { return !g.Until.IsZero() && !time.Now().Before(g.Until) }

// Covers reports whether g allows calls with that effect in the session id.
func (g Grant) Covers(id chat.SessionID, effect string) bool {
	return !g.Over() && g.Session == id && g.Effect == effect
}

// BeginConversation makes s the state of a new conversation: what was approved
// for the old one counts no more.
func (s *State) BeginConversation() {
	s.Epoch++
	s.From = 0
	s.Grants = slices.DeleteFunc(s.Grants, func(g Grant) bool { return g.Until.IsZero() || g.Over() })
}

// Epochs returns the numbers of all conversations of the session. How many there
// were before a record was damaged is not known: many numbers are worth a look.
func (s State) Epochs() (all []int64) {
	first := s.Base
	if first == 0 && s.Epoch > 1e9 { // damaged before Base was noted
		first = s.Epoch
	}
	if first > 0 {
		for e := range int64(1000) {
			all = append(all, e)
		}
	}
	for e := max(first, s.First); e <= s.Epoch; e++ {
		all = append(all, e)
	}
	return all
}

// Sessions are the conversations in a store: for each a state and a log.
type Sessions struct {
	store  store.Store
	states store.Table[State]
	log    *slog.Logger
	zone   *time.Location // in which the model is told the time
}

// newSessions returns the sessions kept in s.
func NewSessions(s store.Store, log *slog.Logger, zone *time.Location) *Sessions {
	return &Sessions{store: s, states: store.NewTable(s.Bucket("sessions"), replaceState(log)), log: log, zone: zone}
}

// IDs yields the sessions that have a state and whose names begin with prefix.
func (ss *Sessions) IDs(ctx context.Context, prefix string) iter.Seq2[chat.SessionID, error] {
	return func(yield func(chat.SessionID, error) bool) {
		for id, err := range ss.states.Keys(ctx, prefix) {
			if !yield(chat.SessionID(id), err) {
				return
			}
		}
	}
}

// Lookup returns the state of the session id and its revision, 0 if there is none.
func (ss *Sessions) Lookup(ctx context.Context, id chat.SessionID) (State, uint64, error) {
	s, rev, err := ss.states.Get(ctx, string(id))
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return State{}, 0, fmt.Errorf("look up session %s: %w", id, err)
	}
	return s, rev, nil
}

// replaceState replaces the damaged state of a session by that of a new
// conversation (P21).
func replaceState(log *slog.Logger) store.OnDamage[State] {
	return func(id string, err error) (State, error) {
		log.Error("damaged state of a session replaced: its conversation begins anew", "session", id, "err", err)
		now := time.Now().Unix()
		return State{Epoch: now, Base: now}, nil
	}
}

// Update changes the state of the session id.
func (ss *Sessions) Update(ctx context.Context, id chat.SessionID, change func(*State)) error {
	_, _, err := ss.states.Upsert(ctx, string(id), func(s *State) error { change(s); return nil })
	if err != nil {
		return fmt.Errorf("change session %s: %w", id, err)
	}
	return nil
}

// DeleteState forgets the state of the session id. It comes after RemoveLog of
// all its conversations, because it tells which there are.
func (ss *Sessions) DeleteState(ctx context.Context, id chat.SessionID) error {
	return ss.states.Delete(ctx, string(id))
}

// logOf returns the log of a conversation of the session id.
func (ss *Sessions) logOf(id chat.SessionID, epoch int64) store.Log {
	name := "session/" + string(id)
	if epoch > 0 {
		name += "#" + strconv.FormatInt(epoch, 10)
	}
	return ss.store.Log(name)
}

// RemoveLog forgets what was said in a conversation of the session id. What is
// damaged cannot be removed, and stops nothing (P21).
func (ss *Sessions) RemoveLog(ctx context.Context, id chat.SessionID, epoch int64) error {
	err := ss.logOf(id, epoch).Trim(ctx, math.MaxUint64)
	if errors.Is(err, store.ErrDamaged) {
		ss.log.Error("a damaged part of a session cannot be removed", "session", id, "err", err)
		return nil
	}
	return err
}

// Append appends records to the log of the first conversation of the session id.
func (ss *Sessions) Append(ctx context.Context, id chat.SessionID, records ...Record) error {
	if len(records) == 0 {
		return nil
	}
	bodies := make([][]byte, len(records))
	for i, r := range records {
		bodies[i] = r.Encode()
	}
	_, err := ss.logOf(id, 0).Append(ctx, bodies...)
	return err
}

// Records yields the records of a conversation of the session id after since. A
// damaged one has a Damaged error and is no error of the iteration.
func (ss *Sessions) Records(
	ctx context.Context, id chat.SessionID, epoch int64, since uint64,
) iter.Seq2[NumberedRecord, error] {
	return func(yield func(NumberedRecord, error) bool) {
		for rec, err := range ss.logOf(id, epoch).Since(ctx, since) {
			n := NumberedRecord{Seq: rec.Seq}
			if err == nil {
				err = json.Unmarshal(rec.Body, &n.Record)
			} else if !errors.Is(err, store.ErrDamaged) {
				yield(n, fmt.Errorf("read session %s: %w", id, err))
				return
			}
			if err != nil {
				n.Record, n.Damaged = Record{Unreadable: true}, err
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// Journal yields all records of all conversations of the session id, oldest
// first. If there is no such session the error is store.ErrNotFound.
func (ss *Sessions) Journal(ctx context.Context, id chat.SessionID) iter.Seq2[JournalRecord, error] {
	return func(yield func(JournalRecord, error) bool) {
		st, rev, err := ss.Lookup(ctx, id)
		there := rev > 0
		for _, epoch := range st.Epochs() {
			for r, bad := range ss.Records(ctx, id, epoch, 0) {
				there = true
				err = cmp.Or(err, bad)
				if err == nil && !yield(JournalRecord{r, epoch}, nil) {
					return
				}
			}
		}
		if err == nil && !there {
			err = store.ErrNotFound
		}
		if err != nil {
			yield(JournalRecord{}, err)
		}
	}
}

// Open reads the session id, which is in the state st.
func (ss *Sessions) Open(ctx context.Context, id chat.SessionID, st State) (*Session, error) {
	since := max(st.From, 1) - 1
	s := ss.Restore(id, st, NewHistory(ss.zone), 0)
	s.ReadSince = &since
	lost, damaged := 0, error(nil) // the last cause of several
	for r, err := range ss.Records(ctx, id, st.Epoch, since) {
		if err != nil {
			return nil, err
		}
		if r.Damaged != nil {
			lost++
			damaged = r.Damaged
		}
		s.Seq = max(s.Seq, r.Seq)
		s.History.Apply(r.Seq, r.Record)
	}
	if damaged != nil {
		ss.log.Error("a part of a session is damaged and left out", "session", id, "records", lost, "err", damaged)
	}
	return s, nil
}

// Restore returns the session id with a history that was read up to the record
// numbered seq.
func (ss *Sessions) Restore(id chat.SessionID, st State, h *History, seq uint64) *Session {
	return &Session{State: st, ID: id, log: ss.logOf(id, st.Epoch), History: h, Seq: seq}
}

// numbered is a record as it stands in its log.
type NumberedRecord struct {
	Record
	Seq     uint64
	Damaged error // why record is unreadable (P21)
}

// epochal is a record and the conversation that it is part of.
type JournalRecord struct {
	NumberedRecord
	Epoch int64
}

// A session is one conversation under way. The goroutine that opened it is its
// only owner.
type Session struct {
	State     State
	ID        chat.SessionID
	log       store.Log
	History   *History
	Seq       uint64   // of the last record of the log
	unsaved   [][]byte // records to append
	ReadSince *uint64  // until a request was made: the history was read from the log, from the record after this one on
}

// Keep applies r to the history. It is on disk after the next Save.
func (s *Session) Keep(r Record) {
	s.unsaved = append(s.unsaved, r.Encode())
	s.History.Apply(s.Seq+uint64(len(s.unsaved)), r)
}

// Save appends what was kept to the log, all or nothing.
func (s *Session) Save(ctx context.Context) error {
	if len(s.unsaved) == 0 {
		return nil
	}
	seq, err := s.log.Append(ctx, s.unsaved...)
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.ID, err)
	}
	s.Seq, s.unsaved = seq, nil
	return nil
}

// DigestedUpTo returns the last record of the conversation that Digest archives:
// no turn does.
func (s *Session) DigestedUpTo() uint64 {
	if s.State.Digested.Epoch != s.State.Epoch {
		return 0
	}
	return s.State.Digested.Seq
}

// What sessions take besides their texts, as it was measured, in estimated tokens.
const sessionSize, entrySize = 512, 128

// MemorySize returns how much memory s takes, in estimated tokens of four bytes each.
func (s *Session) MemorySize() int {
	return s.History.Size() + sessionSize + s.History.view.EntryCount()*entrySize
}
