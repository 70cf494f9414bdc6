package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"parley/chat"
)

// How long and of how many sessions tools are kept open.
const (
	openIdle = time.Hour
	openMost = 256
)

// Sessions is a Source of tools that hold something open for a session, such
// as a browser: they are made when a turn of it first needs them, and serve
// all its turns (C-018, C-028). They are closed at Close, and when a turn
// comes while they are idle for an hour or those of more than 256 sessions are
// open.
type Sessions struct {
	Log func(chat.SessionID, error) // hears why tools could not be opened or closed; may be nil

	open func(context.Context, Scope) ([]Tool, func() error, error)
	mu   sync.Mutex
	all  map[chat.SessionID]*visit // nil after CloseAll
}

// A visit is the tools of one session.
type visit struct {
	session chat.SessionID
	busy    int       // calls and turns at work; guarded by Sessions.mu
	used    time.Time // when the last of them ended; the same

	work  chan struct{} // holds the one who opens or closes
	tools []Tool
	close func() error // nil while they are not open
	gone  bool
}

// PerSession returns a Source of the tools that open makes for a session. They
// are for all who speak in it: Call.From says who does. The function that open
// returns closes them; it may be nil. After an error the turn goes without them, and the next
// one tries again (C-020).
func PerSession(open func(context.Context, Scope) ([]Tool, func() error, error)) *Sessions {
	return &Sessions{open: open, all: map[chat.SessionID]*visit{}}
}

// Tools returns the tools of the session. It never fails.
func (s *Sessions) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	v, old := s.enter(scope.Session)
	for _, o := range old {
		s.note(o.session, o.shut())
	}
	if v == nil {
		return nil, nil
	}
	defer s.leave(v)
	select {
	case v.work <- struct{}{}:
		defer func() { <-v.work }()
	case <-ctx.Done():
		return nil, nil
	}
	if v.close != nil || v.gone {
		return v.tools, nil
	}
	tools, end, err := s.open(ctx, scope)
	if err != nil {
		s.note(v.session, fmt.Errorf("open tools: %w", err))
		return nil, nil
	}
	if v.close = end; end == nil {
		v.close = func() error { return nil }
	}
	for _, t := range tools {
		v.tools = append(v.tools, s.busy(v)(t))
	}
	return v.tools, nil
}

// enter returns the session's visit, which is busy until leave, and those that are to be closed.
func (s *Sessions) enter(session chat.SessionID) (v *visit, old []*visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		return nil, nil
	}
	if v = s.all[session]; v == nil {
		v = &visit{session: session, work: make(chan struct{}, 1)}
		s.all[session] = v
	}
	v.busy++
	for _, o := range slices.SortedFunc(maps.Values(s.all), func(a, b *visit) int { return a.used.Compare(b.used) }) {
		if o.busy == 0 && (len(s.all) > openMost || time.Since(o.used) >= openIdle) {
			delete(s.all, o.session)
			old = append(old, o)
		}
	}
	return v, old
}

func (s *Sessions) leave(v *visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.busy--
	v.used = time.Now()
}

// busy keeps v while a call of its tools is at work.
func (s *Sessions) busy(v *visit) Middleware {
	return around(func(ctx context.Context, t Tool, c Call) (Result, error) {
		s.mu.Lock()
		here := s.all[v.session] == v
		v.busy++
		s.mu.Unlock()
		defer s.leave(v)
		if !here {
			return Failf(CodeError, "%s was closed because it was not used for long. It is back in the next turn", t.Name), nil
		}
		return t.Run(ctx, c)
	})
}

// shut closes v, which is of no Sessions any more.
func (v *visit) shut() (err error) {
	v.work <- struct{}{}
	defer func() { <-v.work }()
	if v.close != nil && !v.gone {
		err = v.close()
	}
	v.gone, v.tools = true, nil
	if err != nil {
		return fmt.Errorf("close tools of %s: %w", v.session, err)
	}
	return nil
}

// Close closes the tools of a session that is over (C-028).
func (s *Sessions) Close(session chat.SessionID) error {
	s.mu.Lock()
	v := s.all[session]
	delete(s.all, session)
	s.mu.Unlock()
	if v == nil {
		return nil
	}
	return v.shut()
}

// CloseAll closes all tools, and opens none from now on.
func (s *Sessions) CloseAll() (err error) {
	s.mu.Lock()
	all := s.all
	s.all = nil
	s.mu.Unlock()
	for _, v := range all {
		err = errors.Join(err, v.shut())
	}
	return err
}

func (s *Sessions) note(session chat.SessionID, err error) {
	if err != nil && s.Log != nil {
		s.Log(session, err)
	}
}
