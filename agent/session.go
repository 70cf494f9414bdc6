package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"strconv"
	"time"

	"parley/chat"
	"parley/store"
)

// A state is what is kept of a session beside its log.
type state struct {
	Epoch  int64  `json:"epoch,omitempty"`  // counts /new
	Model  string `json:"model,omitempty"`  // chosen with /model
	Quiet  bool   `json:"quiet,omitempty"`  // chosen with /verbose off
	Undone string `json:"undone,omitempty"` // the key of the last /undo
	From   uint64 `json:"from,omitempty"`   // the log is read from here on: what is older never fits
	Base   int64  `json:"base,omitempty"`   // the first Epoch since this record was damaged
	First  int64  `json:"first,omitempty"`  // earlier ones are forgotten

	Digested digested `json:"digested,omitzero"`
	Grants   []grant  `json:"grants,omitempty"` // what owners approved for a while

	Began time.Time `json:"began,omitzero"`
	Last  time.Time `json:"last,omitzero"` // somebody spoke, to within lastEvery
	Title string    `json:"title,omitempty"`
}

// epochs returns all there were. How many there were before a record was
// damaged is not known: many numbers are worth a look.
func (s state) epochs() (all []int64) {
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

// lookup returns the state of the session id and its revision. A damaged one
// is replaced by that of a new conversation (P21).
func (p *Pool) lookup(ctx context.Context, id chat.SessionID) (state, uint64, error) {
	s, rev, err := store.Load[state](ctx, p.states, string(id))
	switch {
	case err == nil:
		return s, rev, nil
	case errors.Is(err, store.ErrNotFound):
		return state{}, 0, nil
	case !errors.Is(err, store.ErrDamaged):
		return state{}, 0, fmt.Errorf("look up session %s: %w", id, err)
	}
	p.Log.Error("the record of a session is damaged; it begins anew", "session", id, "err", err)
	now := time.Now().Unix()
	s = state{Epoch: now, Base: now}
	rev, err = store.Save(ctx, p.states, string(id), s, store.Any)
	return s, rev, err
}

// update changes the state of the session id.
func (p *Pool) update(ctx context.Context, id chat.SessionID, change func(*state)) error {
	for {
		s, rev, err := p.lookup(ctx, id)
		if err != nil {
			return err
		}
		change(&s)
		if _, err = store.Save(ctx, p.states, string(id), s, rev); !errors.Is(err, store.ErrConflict) {
			return err
		}
	}
}

// logOf returns the log of the session id in the state s.
func (p *Pool) logOf(id chat.SessionID, epoch int64) store.Log {
	name := "session/" + string(id)
	if epoch > 0 {
		name += "#" + strconv.FormatInt(epoch, 10)
	}
	return p.Store.Log(name)
}

// removeLog forgets what was said in a conversation of the session id. What is
// damaged cannot be removed, and stops nothing (P21).
func (p *Pool) removeLog(ctx context.Context, id chat.SessionID, epoch int64) error {
	err := p.logOf(id, epoch).Trim(ctx, math.MaxUint64)
	if errors.Is(err, store.ErrDamaged) {
		p.Log.Error("a damaged part of a session cannot be removed", "session", id, "err", err)
		return nil
	}
	return err
}

// A session is one conversation. The goroutine that took it is its only owner.
type session struct {
	state
	id      chat.SessionID
	log     store.Log
	history history
	seq     uint64   // of the last record of the log
	unsaved [][]byte // records to append
	since   *uint64  // until a request was made: the history was read from the log, from the record after this one on
	weight  int      // in the cache
}

// open returns the session id, from memory if it was at work lately.
func (p *Pool) open(ctx context.Context, id chat.SessionID) (*session, error) {
	st, _, err := p.lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	if s := p.idle.take(id); s != nil && s.Epoch == st.Epoch {
		s.state = st
		return s, nil
	}
	since := max(st.From, 1) - 1
	s := &session{state: st, id: id, log: p.logOf(id, st.Epoch), history: history{zone: p.Zone}, since: &since}
	lost, damaged := 0, error(nil) // the last cause of several
	for r, err := range p.records(ctx, id, st.Epoch, since) {
		if err != nil {
			return nil, err
		}
		if r.damaged != nil {
			lost++
			damaged = r.damaged
		}
		s.seq = max(s.seq, r.seq)
		s.history.Apply(r.seq, r.record)
	}
	if damaged != nil {
		p.Log.Error("a part of a session is damaged and left out", "session", id, "records", lost, "err", damaged)
	}
	return s, nil
}

// numbered is a record as it stands in its log.
type numbered struct {
	seq uint64
	record
	damaged error // why record is unreadable (P21)
}

// records yields those of a session's log after since.
func (p *Pool) records(ctx context.Context, id chat.SessionID, epoch int64, since uint64) iter.Seq2[numbered, error] {
	return func(yield func(numbered, error) bool) {
		for rec, err := range p.logOf(id, epoch).Since(ctx, since) {
			n := numbered{seq: rec.Seq}
			if err == nil {
				err = json.Unmarshal(rec.Body, &n.record)
			} else if !errors.Is(err, store.ErrDamaged) {
				yield(n, fmt.Errorf("read session %s: %w", id, err))
				return
			}
			if err != nil {
				n.record, n.damaged = record{Unreadable: true}, err
			}
			if !yield(n, nil) {
				return
			}
		}
	}
}

// keep takes in r. It is on disk after the next save.
func (s *session) keep(r record) {
	s.unsaved = append(s.unsaved, r.encode())
	s.history.Apply(s.seq+uint64(len(s.unsaved)), r)
}

// save appends what was kept to the log, all or nothing.
func (s *session) save(ctx context.Context) error {
	if len(s.unsaved) == 0 {
		return nil
	}
	seq, err := s.log.Append(ctx, s.unsaved...)
	if err != nil {
		return fmt.Errorf("save session %s: %w", s.id, err)
	}
	s.seq, s.unsaved = seq, nil
	return nil
}
