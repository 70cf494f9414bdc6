package mcp

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"

	"parley/chat"
	"parley/timetest"
	"parley/tools"
)

// signedOut is a sign-in that nobody has made. It counts what asks for it.
type signedOut struct{ asked *atomic.Int32 }

func (signedOut) Personal(Service) bool { return true }

func (s signedOut) Handler(Service, chat.Person) auth.OAuthHandler { return s }

func (signedOut) Tool(context.Context, Service, tools.Scope) (t tools.Tool, ok bool) { return t, false }

func (s signedOut) TokenSource(context.Context) (oauth2.TokenSource, error) {
	s.asked.Add(1)
	return nil, ErrSignInNeeded
}

func (signedOut) Authorize(context.Context, *http.Request, *http.Response) error {
	return ErrSignInNeeded
}

// The server of a person who has not signed in is not tried again and again, but at once when they have.
func TestSignedOutServerWaits(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var asked atomic.Int32
		s := New(Config{SignIn: signedOut{&asked}})
		s.Use(map[string]*Server{"mail": {
			URL: "https://mcp.example.com", Enabled: true, For: []string{forEveryone}, ToolTimeout: time.Minute,
		}})
		ctx, stop := context.WithCancel(t.Context())
		go s.Run(ctx)
		defer synctest.Wait()
		defer stop()
		scope := tools.Scope{
			At: chat.Address{Channel: "telegram", Chat: "1"}, From: chat.Sender{ID: "1", Role: chat.User}, Turn: "turn",
		}
		for day := range 3 {
			if _, err := s.Tools(t.Context(), scope); err != nil {
				t.Fatal(err)
			}
			if day == 0 {
				asked.Store(0)
			}
			timetest.Sleep(24 * time.Hour)
		}
		if n := asked.Load(); n > 0 {
			t.Errorf("tried %d times more", n)
		}
		if state := s.States()[0]; state.Phase != SignedOut || !state.NextTry.IsZero() || state.Who != "telegram:1" {
			t.Errorf("%+v", state)
		}
		s.SignedIn(t.Context(), "mail", "telegram:1")
		if asked.Load() == 0 {
			t.Error("not tried after the sign-in")
		}
	})
}

// A connection of a person is never used for somebody else, nor in a group, whatever turn has got hold of its
// tools.
func TestPersonalConnection(t *testing.T) {
	entry := &Server{URL: "https://mcp.example.com", ToolTimeout: time.Minute}
	v := newSupervisor(New(Config{}).config, key{"mail", "telegram:1"}, entry)
	scope := func(id string, group bool) tools.Scope {
		return tools.Scope{At: chat.Address{Channel: "telegram", Chat: "1"}, From: chat.Sender{ID: id}, Group: group}
	}
	for _, s := range []tools.Scope{scope("2", false), scope("1", true)} {
		if got, err := v.call(t.Context(), tools.Call{Scope: s}, request{}); got.Code != tools.CodeDenied || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if !v.key.allows(scope("1", false)) {
		t.Error("it may not be used by its person")
	}
}
