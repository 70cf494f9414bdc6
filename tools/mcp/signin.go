package mcp

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"

	"parley/chat"
	"parley/tools"
)

// A Service is a server that is reached by HTTP.
type Service struct {
	Name  string
	Entry Server // of the config

	// Client reaches the server as its connections do. It is guarded against being sent to private
	// networks, and must be used for all that the server tells one to fetch.
	Client *http.Client
}

// SignIn authorizes requests to servers that are reached by HTTP.
type SignIn interface {
	// Personal reports whether each person uses the server with a sign-in of their own. Such a
	// server has a connection for each of them, and is never used in a group.
	Personal(s Service) bool

	// Handler returns what authorizes requests that are made for who, which is "" unless the server
	// is personal. nil sends them as they are. A context that the handler is called with during a
	// call of a tool has the call: see CallOf; its time limit waits meanwhile. A connection that fails
	// with ErrSignInNeeded is not tried again before Servers.SignedIn.
	Handler(s Service, who chat.Person) auth.OAuthHandler

	// Tool returns what asks the person of scope to sign in; ok is false if nothing is to be offered.
	// It is called for each server that scope may use.
	Tool(ctx context.Context, s Service, scope tools.Scope) (t tools.Tool, ok bool)
}

// ErrSignInNeeded is why a connection cannot be made before its person has signed in.
var ErrSignInNeeded = errors.New("the person has to sign in first")

// SignInTool is what the tool is called that asks a person to sign in: see WrapName.
const SignInTool = "sign_in"

// signInTools returns the tools that ask the person of scope to sign in to servers.
func (s *Servers) signInTools(ctx context.Context, scope tools.Scope) (list []tools.Tool) {
	if s.config.SignIn == nil {
		return nil
	}
	s.mu.Lock()
	remote := s.remote
	s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(remote)) {
		server := remote[name].Entry
		if !server.Enabled || !server.isFor(scope, scope.From) {
			continue
		}
		if t, ok := s.config.SignIn.Tool(ctx, remote[name], scope); ok {
			t.Who = server.rule()
			list = append(list, t)
		}
	}
	return list
}

// Service returns a server that is reached by HTTP. ok is false if the config has none of that name.
func (s *Servers) Service(name string) (service Service, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	service, ok = s.remote[name]
	return service, ok
}

// SignedIn has a person who has signed in to a server connected to it, and waits until that has come
// out, so that the tools are there at once. A connection that there is goes on.
func (s *Servers) SignedIn(ctx context.Context, name string, who chat.Person) {
	s.mu.Lock()
	server := s.used[name]
	if s.closed || server == nil || !server.Enabled {
		s.mu.Unlock()
		return
	}
	v := s.want(key{name, who})
	s.mu.Unlock()
	awaitAttempt(ctx, v)
}

// SignedOut ends the connection of a person who has signed out of a server.
func (s *Servers) SignedOut(name string, who chat.Person) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end(key{name, who})
}

// end ends the connection of k, if there is one. s.mu is held.
func (s *Servers) end(k key) {
	if v := s.all[k]; v != nil {
		delete(s.all, k)
		s.ending = append(s.ending, v)
		s.poke()
	}
}

// awaitAttempt waits until v is connected or another attempt to connect has failed.
func awaitAttempt(ctx context.Context, v *supervisor) {
	ctx, stop := context.WithTimeout(ctx, v.config.handshakeWait())
	defer stop()
	v.mu.Lock()
	if v.phase == Failed || v.phase == SignedOut {
		v.enter(Connecting)
		v.reconnect()
	}
	v.mu.Unlock()
	for {
		v.mu.Lock()
		phase := v.phase
		changed := v.changed
		v.mu.Unlock()
		if phase != Connecting {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// allows reports whether the connection of k may be used in scope: that of a person never in a group.
func (k key) allows(scope tools.Scope) bool {
	return k.who == "" || !scope.Group && scope.Whose() == k.who
}

// redact returns text, which a server returned, without the tokens of sign-ins.
func (c Config) redact(text string) string {
	if c.Redact == nil {
		return text
	}
	return c.Redact(text)
}

// awaitSignIn waits until the person of v has signed in.
func awaitSignIn(v *supervisor) {
	v.fail(SignedOut, ErrSignInNeeded, time.Time{})
	v.settle()
	v.pause(nil)
	v.setPhase(Connecting, ErrSignInNeeded)
}
