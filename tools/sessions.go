package tools

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
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
// comes while they are idle for an hour or more than 256 sessions have theirs.
type Sessions struct {
	Log func(chat.SessionID, error) // hears why tools could not be opened or closed; may be nil

	open func(context.Context, Scope) ([]Tool, func() error, error)
	mu   sync.Mutex
	all  map[chat.SessionID]*visit // nil after CloseAll
}

// A visit is the tools of one session.
type visit struct {
	session chat.SessionID
	used    atomic.Int64 // when they last were, in Unix seconds
	busy    atomic.Int64 // calls at work

	mu    sync.Mutex // held while they are opened or closed
	tools []Tool
	close func() error // nil while they are not open
	gone  bool
}

// PerSession returns a Source of the tools that open makes for a session. They
// are for all who speak in it: Call.From says who does. The function that open
// returns closes them; it may be nil. After an error the turn goes without
// them, and the next one tries again (C-020).
func PerSession(open func(context.Context, Scope) ([]Tool, func() error, error)) *Sessions {
	return &Sessions{open: open, all: map[chat.SessionID]*visit{}}
}

// Tools returns the tools of the session. It never fails.
func (s *Sessions) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	v, old := s.enter(scope.Session)
	for _, o := range old {
		s.note(o.session, o.shut())
	}
	v.mu.Lock()
	defer v.mu.Unlock()
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
		v.tools = append(v.tools, Chain(t, around(v.run)))
	}
	return v.tools, nil
}

// enter returns the session's visit, and those that it is time to close.
func (s *Sessions) enter(session chat.SessionID) (v *visit, old []*visit) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		return &visit{gone: true}, nil
	}
	if v = s.all[session]; v == nil {
		v = &visit{session: session}
		s.all[session] = v
	}
	now := time.Now()
	v.used.Store(now.Unix())
	for _, o := range slices.SortedFunc(maps.Values(s.all), func(a, b *visit) int { return int(a.used.Load() - b.used.Load()) }) {
		over := len(s.all) > openMost || now.Add(-openIdle).Unix() >= o.used.Load()
		if over && o != v && o.busy.Load() == 0 {
			delete(s.all, o.session)
			old = append(old, o)
		}
	}
	return v, old
}

// run runs a call of v's tools.
func (v *visit) run(ctx context.Context, t Tool, c Call) (Result, error) {
	v.busy.Add(1)
	defer func() {
		v.used.Store(time.Now().Unix())
		v.busy.Add(-1)
	}()
	v.mu.Lock()
	gone := v.gone
	v.mu.Unlock()
	if gone {
		return Failf(CodeError, "%s was closed because it was not used for long. It is back in the next turn", t.Name), nil
	}
	return t.Run(ctx, c)
}

// shut closes v, which is of no Sessions any more, whatever is at work.
func (v *visit) shut() error {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.gone, v.tools = true, nil
	if v.close == nil {
		return nil
	}
	if err := v.close(); err != nil {
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
