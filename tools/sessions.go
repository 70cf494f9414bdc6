package tools

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"parley/chat"
)

// Sessions is a Source of tools that hold something open for a session, such
// as a browser: they are made when a turn of it first needs them, and serve
// all its turns until they are closed (C-018, C-028).
type Sessions struct {
	Log func(chat.SessionID, error) // hears why tools could not be opened

	open func(context.Context, Scope) ([]Tool, func() error, error)
	mu   sync.Mutex
	all  map[chat.SessionID]visit // nil after CloseAll
}

// A visit is the tools of one session.
type visit struct {
	tools []Tool
	close func() error
}

// PerSession returns a Source of the tools that open makes for a session. They
// are for all who speak in it: Call.From says who does. The function that open
// returns closes them, while calls are at work maybe. Neither may take long:
// other sessions wait. After an error the turn goes without the tools, and the
// next one tries again (C-020).
func PerSession(open func(context.Context, Scope) ([]Tool, func() error, error)) *Sessions {
	return &Sessions{Log: func(chat.SessionID, error) {}, open: open, all: map[chat.SessionID]visit{}}
}

// Tools returns the tools of the session. It never fails.
func (s *Sessions) Tools(ctx context.Context, scope Scope) ([]Tool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, known := s.all[scope.Session]
	if s.all == nil || known {
		return v.tools, nil
	}
	tools, end, err := s.open(ctx, scope)
	if err != nil {
		s.Log(scope.Session, fmt.Errorf("open tools: %w", err))
		return nil, nil
	}
	s.all[scope.Session] = visit{tools, end}
	return tools, nil
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
	for session := range s.all {
		err = errors.Join(err, s.shut(session))
	}
	s.all = nil
	return err
}

// shut closes the tools of a session, if there are any. s.mu is held.
func (s *Sessions) shut(session chat.SessionID) error {
	v, known := s.all[session]
	if !known {
		return nil
	}
	delete(s.all, session)
	if err := v.close(); err != nil {
		return fmt.Errorf("close tools of %s: %w", session, err)
	}
	return nil
}
