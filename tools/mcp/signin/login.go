package signin

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"parley/chat"
	"parley/tools"
	"parley/tools/mcp"
)

// A Login is a sign-in that was begun for somebody who is not asked in a chat.
type Login struct {
	ID     string `json:"id"`     // for Finish
	Link   string `json:"link"`   // to open
	Direct string `json:"direct"` // to open where browsers do not reach Parley
}

// Login begins to sign who in to a server. What the last page shows is then given to Finish.
func (s *SignIn) Login(ctx context.Context, service mcp.Service, who chat.Person) (Login, error) {
	f, err := s.beginUnasked(ctx, service, who)
	if err != nil {
		return Login{}, err
	}
	link, err := f.link(ctx)
	if err != nil {
		return Login{}, fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return Login{ID: f.id, Link: link, Direct: f.direct()}, nil
}

// LoginIn asks the person of scope to sign in to a server, in the chat of scope, and tells them there
// how it has ended.
func (s *SignIn) LoginIn(ctx context.Context, service mcp.Service, scope tools.Scope) error {
	f, err := s.beginUnasked(ctx, service, scope.Whose())
	if err != nil {
		return err
	}
	if _, err := f.link(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	f.askAt(scope)
	return nil
}

// ErrNoSignIn says that nobody signs in to a server.
var ErrNoSignIn = errors.New("only servers that are reached by streamable HTTP, have no Authorization header in the " +
	"config and ask for a sign-in need one")

// beginUnasked begins an attempt that no request of a server asks for.
func (s *SignIn) beginUnasked(ctx context.Context, service mcp.Service, who chat.Person) (*flow, error) {
	if !canSignIn(service.Entry) {
		return nil, ErrNoSignIn
	}
	t := newTarget(service)
	c, known := s.challengeOf(t.Name, t.Entry.URL)
	if !known {
		var err error
		if c, err = t.probe(ctx); err != nil {
			return nil, err
		}
		if err := s.require(ctx, t.Name, c); err != nil {
			return nil, err
		}
	}
	return s.begin(key{t.Name, who}, t, c)
}

// Why Finish does not end an attempt.
var (
	ErrWrongCode = errors.New("that is not the code that the last page shows")
	ErrFailed    = errors.New("the sign-in has failed")
)

// Finish ends an attempt with the code that the last page shows, or, where browsers do not reach
// Parley, with the address at which the browser ended.
func (s *SignIn) Finish(ctx context.Context, id, answer string) error {
	f := s.flowOf(id)
	if f == nil {
		return fmt.Errorf("%w: it has ended before", ErrFailed)
	}
	answer = strings.TrimSpace(answer)
	u, err := url.Parse(answer)
	if err != nil || u.Path != callbackPath {
		if !f.confirm(answer) && f.ctx.Err() == nil {
			return ErrWrongCode
		}
		return f.outcome(ctx)
	}
	if !f.receive(u.Query()) {
		return fmt.Errorf("%w: this address does not belong to the link, or was used before", ErrWrongCode)
	}
	select {
	case <-f.exchanged:
		f.confirm(f.confirmation)
	case <-f.done:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return f.outcome(ctx)
}

// outcome waits until the attempt has ended, and returns nil if the person has signed in.
func (f *flow) outcome(ctx context.Context) error {
	if err := f.wait(ctx); err != nil {
		return fmt.Errorf("%w: %w", ErrFailed, err)
	}
	return nil
}

// Logout signs who out of a server: the tokens are revoked, if the server can do that, and forgotten.
// It reports whether there were any. They are forgotten although err may say that they were not revoked.
func (s *SignIn) Logout(ctx context.Context, service mcp.Service, who chat.Person) (was bool, err error) {
	t := newTarget(service)
	c, _ := s.challengeOf(t.Name, t.Entry.URL)
	k := key{t.Name, who}
	was, err = s.account(k).signOut(ctx, t, c)
	if was {
		s.audit(k, "signed out of "+k.describe())
		s.watcher().SignedOut(k.server, who)
	}
	return was, err
}
