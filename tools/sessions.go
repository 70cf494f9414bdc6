package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/chat"
)

const openIdle = time.Hour // how long tools that nobody uses are kept open

// Sessions is a Source of tools that hold something open for a session, such
// as a browser: they are made when a turn of it first needs them, and serve
// all its turns (C-018, C-028). They are closed at Close, and when a turn of
// another session comes while they are idle for an hour.
type Sessions struct {
	Log func(chat.SessionID, error) // hears why tools could not be opened or closed

	open func(context.Context, Scope) ([]Tool, func() error, error)
	mu   sync.Mutex
	all  map[chat.SessionID]*visit // nil after CloseAll
}

// A visit is the tools of one session.
type visit struct {
	tools []Tool
	close func() error
	gone  bool
	busy  int // calls at work
	used  time.Time
}

// PerSession returns a Source of the tools that open makes for a session. They
// are for all who speak in it: Call.From says who does. The function that open
// returns closes them. Neither may take long: other sessions wait. After an
// error the turn goes without the tools, and the next one tries again (C-020).
func PerSession(open func(context.Context, Scope) ([]Tool, func() error, error)) *Sessions {
	return &Sessions{Log: func(chat.SessionID, error) {}, open: open, all: map[chat.SessionID]*visit{}}
}

// Tools returns the tools of the session. It never fails.
func (s *Sessions) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id, v := range s.all {
		if id != scope.Session && v.busy == 0 && time.Since(v.used) >= openIdle {
			if err := s.shut(id); err != nil {
				s.Log(id, err)
			}
		}
	}
	v := s.all[scope.Session]
	if s.all != nil && v == nil {
		tools, end, err := s.open(ctx, scope)
		if err != nil {
			s.Log(scope.Session, fmt.Errorf("open tools: %w", err))
			return nil, nil
		}
		v = s.visit(tools, end)
		s.all[scope.Session] = v
	}
	if v == nil {
		return nil, nil
	}
	v.used = time.Now()
	return v.tools, nil
}

// visit returns tools that say so once they are closed.
func (s *Sessions) visit(tools []Tool, end func() error) *visit {
	v := &visit{close: end}
	for _, t := range tools {
		v.tools = append(v.tools, around(func(ctx context.Context, t Tool, c Call) (Result, error) {
			if !s.work(v, 1) {
				return Failf(CodeError, "%s was closed because it was not used for long. It is back in the next turn", t.Name), nil
			}
			defer s.work(v, -1)
			return t.Run(ctx, c)
		})(t))
	}
	return v
}

// work counts the calls of v at work, and says whether it is still open.
func (s *Sessions) work(v *visit, more int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	v.busy, v.used = v.busy+more, time.Now()
	return !v.gone
}

// shut closes the tools of a session, whatever is at work. s.mu is held.
func (s *Sessions) shut(session chat.SessionID) error {
	v := s.all[session]
	if v == nil {
		return nil
	}
	delete(s.all, session)
	v.gone = true
	if err := v.close(); err != nil {
		return fmt.Errorf("close tools of %s: %w", session, err)
	}
	return nil
}

// Close closes the tools of a session that is over (C-028).
func (s *Sessions) Close(session chat.SessionID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.shut(session)
}

// CloseAll closes all tools, and opens none from now on.
func (s *Sessions) CloseAll() (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for id := range s.all {
		err = errors.Join(err, s.shut(id))
	}
	s.all = nil
	return err
}
