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
	"strconv"
	"time"

	"parley/chat"
	"parley/store"
	"parley/texts"
)

// Sessions are the conversations in a store: for each a state and a log.
type Sessions struct {
	store  store.Store
	states store.Table[State]
	log    *slog.Logger
	zone   *time.Location // in which the model is told the time
	idle   cache

	speakers texts.Speakers // how transcripts name who is no person
}

// NewSessions returns the sessions kept in s.
func NewSessions(s store.Store, log *slog.Logger, zone *time.Location, speakers texts.Speakers) *Sessions {
	states := store.NewTable(s.Bucket(store.BucketSessions), replaceState(log))
	return &Sessions{store: s, states: states, log: log, zone: zone, speakers: speakers}
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

const (
	stateInterval = 10 * time.Minute // how often NoteTurn notes the time of the last turn
	stateRecords  = 256              // how many records may be skipped before NoteTurn notes that they may
)

// NoteTurn notes that a turn ended in s, which began at began if it was the first.
// It saves, now and then, what is to be known of the session without reading its
// log, and from where the log is worth reading.
func (ss *Sessions) NoteTurn(ctx context.Context, s *Session, began time.Time) error {
	known := s.State
	now := time.Now()
	title := cmp.Or(known.Title, s.History.Title())
	from := known.From
	if first := s.History.FirstNeeded(); first >= from+stateRecords {
		from = first
	}
	isRecent := !known.Began.IsZero() && now.Sub(known.Last).Abs() < stateInterval
	if from == known.From && title == known.Title && isRecent {
		return nil
	}
	return ss.Update(ctx, s.ID, func(st *State) {
		st.From = from
		if st.Title == known.Title { // otherwise it was trimmed meanwhile
			st.Title = title
		}
		st.Last = now
		if st.Began.IsZero() {
			st.Began = began
		}
	})
}

// maxRuns is how many conversations are kept of a session whose tasks each begin one.
const maxRuns = 20

// BeginRun begins a new conversation in s for a task, and forgets the oldest one of
// too many.
func (ss *Sessions) BeginRun(ctx context.Context, s *Session) error {
	last := s.State.Epoch - maxRuns + 1
	if last >= 0 {
		if err := ss.removeLog(ctx, s.ID, last); err != nil {
			return err
		}
	}
	return ss.Update(ctx, s.ID, func(st *State) {
		st.BeginConversation()
		st.First = max(last+1, st.First)
	})
}

// Forget removes the session id, with all its conversations. Nobody may be at work
// in it.
func (ss *Sessions) Forget(ctx context.Context, id chat.SessionID) error {
	st, _, err := ss.Lookup(ctx, id)
	if err != nil {
		return err
	}
	ss.idle.take(id)
	for _, epoch := range st.Epochs() {
		if err := ss.removeLog(ctx, id, epoch); err != nil {
			return err
		}
	}
	return ss.states.Delete(ctx, string(id)) // the last: it tells which logs there are
}

// logOf returns the log of a conversation of the session id.
func (ss *Sessions) logOf(id chat.SessionID, epoch int64) store.Log {
	suffix := ""
	if epoch > 0 {
		suffix = "#" + strconv.FormatInt(epoch, 10)
	}
	return ss.store.Log(store.LogSession(string(id), suffix))
}

// removeLog forgets what was said in a conversation of the session id.
func (ss *Sessions) removeLog(ctx context.Context, id chat.SessionID, epoch int64) error {
	return ss.TrimRecords(ctx, id, epoch, math.MaxUint64)
}

// TrimRecords removes the records up to number upto of a conversation. What is
// damaged cannot be removed, and stops nothing (P21).
func (ss *Sessions) TrimRecords(ctx context.Context, id chat.SessionID, epoch int64, upto uint64) error {
	err := ss.logOf(id, epoch).Trim(ctx, upto)
	if errors.Is(err, store.ErrDamaged) {
		ss.log.Error("a damaged part of a session cannot be removed", "session", id, "err", err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("trim session %s: %w", id, err)
	}
	return nil
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
	_, err := ss.logOf(id, 0).Append(ctx, store.Any, bodies...)
	return err
}

// Records yields the records of a conversation of the session id after since. A
// damaged one has a Damaged error and is no error of the iteration.
func (ss *Sessions) Records(
	ctx context.Context, id chat.SessionID, epoch int64, since uint64,
) iter.Seq2[NumberedRecord, error] {
	return func(yield func(NumberedRecord, error) bool) {
		for rec, err := range ss.logOf(id, epoch).Since(ctx, since) {
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				yield(NumberedRecord{Seq: rec.Seq}, fmt.Errorf("read session %s: %w", id, err))
				return
			}
			if !yield(decodeRecord(rec, err), nil) {
				return
			}
		}
	}
}

// decodeRecord decodes a record of a log. damage is why the store says that it is
// damaged, nil if it is not.
func decodeRecord(rec store.Record, damage error) NumberedRecord {
	n := NumberedRecord{Seq: rec.Seq}
	if err := cmp.Or(damage, json.Unmarshal(rec.Body, &n.Record)); err != nil {
		return NumberedRecord{Seq: rec.Seq, Record: Record{Unreadable: true}, Damaged: err}
	}
	return n
}

// Journal yields all records of all conversations of the session id, oldest
// first. If there is no such session the error is store.ErrNotFound.
func (ss *Sessions) Journal(ctx context.Context, id chat.SessionID) iter.Seq2[JournalRecord, error] {
	return func(yield func(JournalRecord, error) bool) {
		st, rev, err := ss.Lookup(ctx, id)
		if err != nil {
			yield(JournalRecord{}, err)
			return
		}
		there := rev > 0
		for _, epoch := range st.Epochs() {
			for r, err := range ss.Records(ctx, id, epoch, 0) {
				if err != nil {
					yield(JournalRecord{}, err)
					return
				}
				there = true
				if !yield(JournalRecord{r, epoch}, nil) {
					return
				}
			}
		}
		if !there {
			yield(JournalRecord{}, store.ErrNotFound)
		}
	}
}

// read reads the session id, which is in the state st.
func (ss *Sessions) read(ctx context.Context, id chat.SessionID, st State) (*Session, error) {
	since := max(st.From, 1) - 1
	s, err := ss.unread(ctx, id, st)
	if err != nil {
		return nil, err
	}
	s.ReadSince = &since
	lost, damaged := 0, error(nil) // the last cause of several
	for r, err := range ss.branchRecords(ctx, s) {
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

// unread returns the session id as if nothing had been said in it. Its next record follows
// the last one that there is.
func (ss *Sessions) unread(ctx context.Context, id chat.SessionID, st State) (*Session, error) {
	last, err := store.LastNumber(ctx, ss.logOf(id, st.Epoch))
	if err != nil {
		return nil, fmt.Errorf("read session %s: %w", id, err)
	}
	return ss.Restore(id, st, NewHistory(ss.zone), last), nil
}

// Blank returns the session id as if nothing had been said in it, without reading what was. Its
// next record follows that which the next one of s would have followed. If s is nil, because the
// session could not be opened, it is the last one that there is.
func (ss *Sessions) Blank(ctx context.Context, id chat.SessionID, s *Session) (*Session, error) {
	if s != nil {
		return ss.Restore(id, s.State, NewHistory(ss.zone), s.Seq), nil
	}
	st, _, err := ss.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return ss.unread(ctx, id, st)
}

// Restore returns the session id with a history that was read up to the record
// numbered seq.
func (ss *Sessions) Restore(id chat.SessionID, st State, h *History, seq uint64) *Session {
	return &Session{State: st, ID: id, log: ss.logOf(id, st.Epoch), History: h, Seq: seq}
}

// NumberedRecord is a record as it stands in its log.
type NumberedRecord struct {
	Record
	Seq     uint64
	Damaged error // why record is unreadable (P21)
}

// JournalRecord is a record and the conversation that it is part of.
type JournalRecord struct {
	NumberedRecord
	Epoch int64
}
