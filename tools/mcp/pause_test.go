package mcp

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/oauth2"

	"parley/chat"
	"parley/timetest"
	"parley/tools"
)

// slowPerson signs in after an hour.
type slowPerson struct{}

func (slowPerson) TokenSource(context.Context) (oauth2.TokenSource, error) { return nil, nil }

func (slowPerson) Authorize(ctx context.Context, _ *http.Request, _ *http.Response) error {
	timetest.Sleep(time.Hour)
	return context.Cause(ctx)
}

type slowSignIn struct{ SignIn }

func (slowSignIn) Handler(Service, chat.Person) auth.OAuthHandler { return slowPerson{} }

// The time limit of a call waits while its person signs in, and goes on then.
func TestTimeLimitWaitsForSignIn(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		entry := &Server{URL: "https://mcp.example.com", ToolTimeout: 30 * time.Second}
		v := newSupervisor(New(Config{SignIn: slowSignIn{}}).config, key{server: "mail"}, entry)
		v.phase = Connected
		v.live = &connection{
			v: v, ctx: t.Context(), done: make(chan struct{}), doubt: make(chan struct{}, 1), open: map[*openCall]bool{},
		}
		handler := v.live.httpTransport(typeHTTP).(*sdk.StreamableClientTransport).OAuthHandler
		before := 20 * time.Second
		r := request{what: "tool call", send: func(
			ctx context.Context, _ *connection, _ tools.Call, _ Answers,
		) (tools.Result, Questions, error) {
			timetest.Sleep(before)
			if err := handler.Authorize(ctx, nil, nil); err != nil {
				return tools.Result{}, Questions{}, err
			}
			select {
			case <-ctx.Done():
				return tools.Result{}, Questions{}, ctx.Err()
			case <-time.After(9 * time.Second):
				return tools.Result{Text: "done"}, Questions{}, nil
			}
		}}
		if got, err := v.call(t.Context(), tools.Call{}, r); got.Text != "done" || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		before = 22 * time.Second
		if got, err := v.call(t.Context(), tools.Call{}, r); !strings.Contains(got.Text, "timed out after 30s") || err != nil {
			t.Errorf("31 seconds without the sign-in: %+v, %v", got, err)
		}
		if got := v.state().Latency; got != (29+30)*time.Second/2 {
			t.Errorf("without the hours in which people signed in, calls took %v on average", got)
		}
	})
}
