package conversation

import (
	"errors"
	"log/slog"
	"slices"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/texts"
	"parley/timetest"
	"parley/tools"
)

// The owner's page lists what is approved in all chats, and takes one back.
func TestApprovals(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		ss := NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.English().Agent.Speakers)
		grant := func(of, effect string, hour bool) chat.SessionID {
			at := chat.Address{Channel: "test", Chat: of}
			c := tools.Call{
				ToolCall: llm.ToolCall{Name: "write_file"},
				Scope:    tools.Scope{At: at, Session: at.Session()},
				Effect:   effect,
			}
			if err := ss.Grant(t.Context(), c, "test:7", hour); err != nil {
				t.Fatal(err)
			}
			return at.Session()
		}
		one := grant("1", "write SOUL.md", true)
		two := grant("2", "write SOUL.md", false)
		grant("2", "write USER.md", false)
		list := func() []chat.Approval {
			all, err := ss.Approvals(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return all
		}
		want := []chat.Approval{
			{Chat: one, Session: one, Effect: "write SOUL.md", By: "test:7", Until: time.Now().Add(time.Hour)},
			{Chat: two, Session: two, Effect: "write SOUL.md", By: "test:7"},
			{Chat: two, Session: two, Effect: "write USER.md", By: "test:7"},
		}
		same := func(a, b chat.Approval) bool {
			return a.Chat == b.Chat && a.Session == b.Session && a.Effect == b.Effect && a.By == b.By && a.Until.Equal(b.Until)
		}
		if got := list(); !slices.EqualFunc(got, want, same) {
			t.Errorf("listed %+v", got)
		}
		if err := ss.Revoke(t.Context(), want[1]); err != nil {
			t.Fatal(err)
		}
		if got := list(); len(got) != 2 || !same(got[1], want[2]) {
			t.Errorf("after one was revoked: %+v", got)
		}
		scope := tools.Scope{At: chat.Address{Channel: "test", Chat: "2"}, Session: two}
		if granted := ss.Granted(t.Context(), scope); granted("write SOUL.md") || !granted("write USER.md") {
			t.Error("what was revoked still counts, or something else does not")
		}
		for _, gone := range []chat.Approval{want[1], {Chat: "test:3", Session: "test:3", Effect: "x"}} {
			if err := ss.Revoke(t.Context(), gone); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("revoke %+v: %v", gone, err)
			}
		}
		timetest.Sleep(2 * time.Hour)
		if got := list(); len(got) != 1 {
			t.Errorf("an hour later: %+v", got)
		}
	})
}
