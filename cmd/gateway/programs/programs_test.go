package programs

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"

	"parley/agent/activity"
	"parley/agent/subagents"
	"parley/agent/underway"
	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
	"parley/tools"
	"parley/tools/sandbox"
	"parley/tools/shell"
	"parley/workspace"
)

// endless is a Runner whose commands end when they are stopped.
type endless struct{}

func (endless) Run(ctx context.Context, _ sandbox.Spec) (sandbox.Outcome, error) {
	<-ctx.Done()
	return sandbox.Outcome{End: sandbox.Cancelled, Exit: -1}, nil
}

// TestWhoseCommands: when a person or a group is blocked, the commands end that the person began, in whatever chat, and
// those of others in the group, but none of an owner's.
func TestWhoseCommands(t *testing.T) { timetest.Test(t, whoseCommands) }

func whoseCommands(t *testing.T) {
	w, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	s := shell.New(shell.Config{
		Store: mem.New(), Runner: endless{}, Deliver: func(context.Context, chat.Message) error { return nil },
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Run(ctx)
	}()
	defer func() { cancel(); <-done }()
	begin := func(chatID string, from chat.Sender) {
		t.Helper()
		at := chat.Address{Channel: "discord", Chat: chatID}
		scope := tools.Scope{Session: at.Session(), At: at, From: from, Workspace: w, Turn: "turn"}
		everyone := tools.Rules{"exec": tools.Everyone}
		kit, err := tools.NewKit(ctx, scope, everyone.Permit(tools.Fixed(s.Tools(shell.Settings{}))))
		if err != nil {
			t.Fatal(err)
		}
		args, _ := json.Marshal(map[string]any{"command": "wait", "background": true})
		call := llm.ToolCall{ID: chatID + from.ID, Name: "exec", Args: string(args)}
		if r := kit.Call(ctx, tools.Call{ToolCall: call, Scope: scope}); r.Failed {
			t.Fatalf("%+v", r)
		}
	}
	owner, guest := chat.Sender{ID: "1", Role: chat.Owner}, chat.Sender{ID: "2", Role: chat.User}
	begin("group", owner)
	begin("group", guest)
	begin("direct", guest)
	begin("other", chat.Sender{ID: "3", Role: chat.User})
	l := underway.New(activity.NewSet(), subagents.New(subagents.Config{Bucket: mem.New().Bucket(store.BucketSubagents)}), Background(s))
	left := func(id string, want int) {
		t.Helper()
		is := func(at chat.Address, from chat.Sender) bool { return (from.ID == id || at.Chat == id) && from != owner }
		if err := l.StopAll(ctx, is, "an owner"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if working, err := s.Working(ctx, ""); err != nil || len(working) != want {
			t.Errorf("after a block of %s there are %+v, %v; want %d", id, working, err, want)
		}
	}
	left("nobody", 4)
	left("group", 3)
	left("2", 2)
}
