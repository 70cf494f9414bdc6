package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"parley/chat"
	"parley/store"
)

// A state is what is kept of a session beside its log.
type state struct {
	Epoch int64  `json:"epoch,omitempty"` // counts /new
	Model string `json:"model,omitempty"` // chosen with /model
	From  uint64 `json:"from,omitempty"`  // the log is read from here on: what is older never fits
}

// lookup returns the state of the session id and its revision. A damaged one
// is replaced by that of a new conversation (P21).
func (p *Pool) lookup(ctx context.Context, id chat.SessionID) (state, uint64, error) {
	var s state
	b, rev, err := p.states.Get(ctx, string(id))
	if err == nil && json.Unmarshal(b, &s) != nil {
		err = store.ErrDamaged
	}
	switch {
	case err == nil:
		return s, rev, nil
	case errors.Is(err, store.ErrNotFound):
		return state{}, 0, nil
	case !errors.Is(err, store.ErrDamaged):
		return state{}, 0, fmt.Errorf("look up session %s: %w", id, err)
	}
	p.Log.Error("the record of a session is damaged; it begins anew", "session", id, "err", err)
	s = state{Epoch: time.Now().Unix()}
	b, _ = json.Marshal(s)
	rev, err = p.states.Put(ctx, string(id), b, store.Any)
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
		b, _ := json.Marshal(s)
		if _, err = p.states.Put(ctx, string(id), b, rev); !errors.Is(err, store.ErrConflict) {
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

// A session is one conversation. The goroutine that took it is its only owner.
type session struct {
	state
	id      chat.SessionID
	log     store.Log
	history history
	seq     uint64   // of the last record of the log
	unsaved [][]byte // records to append
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
	s := &session{state: st, id: id, log: p.logOf(id, st.Epoch), history: history{zone: p.Zone}}
	for rec, err := range s.log.Since(ctx, max(st.From, 1)-1) {
		var r record
		if err == nil {
			err = json.Unmarshal(rec.Body, &r)
		} else if !errors.Is(err, store.ErrDamaged) {
			return nil, fmt.Errorf("read session %s: %w", id, err)
		}
		if s.seq = max(s.seq, rec.Seq); err != nil {
			p.Log.Error("a record of a session is damaged and left out", "session", id, "record", rec.Seq, "err", err)
			continue
		}
		s.history.apply(rec.Seq, r)
	}
	return s, nil
}

// keep takes in r. It is on disk after the next save.
func (s *session) keep(r record) {
	s.unsaved = append(s.unsaved, r.encode())
	s.history.apply(s.seq+uint64(len(s.unsaved)), r)
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
