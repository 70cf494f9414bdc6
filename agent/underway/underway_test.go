package underway_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"parley/agent/activity"
	"parley/agent/subagents"
	"parley/agent/underway"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/tools"
)

// All that is under way is listed, the oldest first, and Stop stops what it names and
// nothing else.
func TestStop(t *testing.T) {
	ctx := t.Context()
	began := time.Now().Add(-time.Hour)
	var stopped []string
	acts := activity.NewSet()
	enter := func(session chat.SessionID, minute int, a activity.Activity) {
		a.Since = began.Add(time.Duration(minute) * time.Minute)
		a.Stop = func(why error) { stopped = append(stopped, fmt.Sprint(session, " ", why)) }
		if err := acts.Enter(ctx, session, &a, nil); err != nil {
			t.Fatal(err)
		}
	}
	enter("web:owner/1", 1, activity.Activity{Said: began, Doing: "thinking"})
	enter("cron:tea", 2, activity.Activity{Said: began, Options: &chat.RunOptions{Job: "tea"}})
	enter("web:owner/2", 3, activity.Activity{Doing: "archiving"}) // nobody can stop it
	enter("agent:aaaaaaaa", 4, activity.Activity{Said: began, Doing: "using web_search"})
	super := subagents.New(subagents.Config{
		Bucket: mem.New().Bucket(store.BucketSubagents),
		Log:    slog.New(slog.DiscardHandler),
		Admit:  func(context.Context, *tools.Subagent) error { return nil },
		Deliver: func(_ context.Context, m chat.Message) error {
			stopped = append(stopped, "told "+string(m.At.Session()))
			return nil
		},
		Stop:  func(session, _ chat.SessionID) { stopped = append(stopped, "interrupted "+string(session)) },
		Retry: func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
	})
	spawn := func(id string, parent chat.SessionID, report bool) {
		home := chat.Address{Channel: "web", Chat: "owner", Thread: "1"}
		c := tools.Subagent{ID: id, Call: id, Label: "find " + id, Parent: parent, At: home, Report: report, Said: began, Began: began.Add(5 * time.Minute)}
		if _, err := super.Spawn(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	spawn("aaaaaaaa", "web:owner/1", true)
	spawn("bbbbbbbb", "web:owner/1", false) // the turn waits for it
	running := []subagents.BackgroundTask{{ID: "c1", What: "sleep\n9", Session: "web:owner/9", Began: began}}
	l := underway.List{Activities: acts, Subagents: super, Background: subagents.Background{
		List: func(_ context.Context, session chat.SessionID) ([]subagents.BackgroundTask, error) {
			if session != "" {
				t.Errorf("asked for those of %q", session)
			}
			return running, nil
		},
		Stop: func(session chat.SessionID, prefix string) int {
			stopped = append(stopped, "killed "+string(session)+" "+prefix)
			running = nil
			return 1
		},
	}}
	stopped = nil
	list := func() (all []string) {
		got, err := l.All(ctx)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range got {
			all = append(all, fmt.Sprintf("%s|%s|%s|%s|%s", w.ID, w.Kind, w.What, w.Doing, w.Session))
		}
		return all
	}
	want := []string{
		"command:c1|command|sleep 9||web:owner/9",
		"turn:web:owner/1|turn||thinking|web:owner/1",
		"turn:cron:tea|job|tea||cron:tea",
		"task:aaaaaaaa|background task|find aaaaaaaa|using web_search|web:owner/1",
		"task:bbbbbbbb|background task|find bbbbbbbb||web:owner/1",
	}
	if got := list(); !slices.Equal(got, want) {
		t.Fatalf("under way is %q", got)
	}
	for _, c := range []struct {
		id   string
		want []string
	}{
		{"turn:web:owner/1", []string{"web:owner/1 stopped by the person", "interrupted agent:bbbbbbbb"}},
		{"turn:cron:tea", []string{"cron:tea stopped by the person"}},
		{"command:c1", []string{"killed web:owner/9 c1"}},
		{"task:aaaaaaaa", []string{"told web:owner/1", "interrupted agent:aaaaaaaa"}},
		{"task:aaaaaaaa", nil}, // it is over
		{"turn:web:owner/2", nil},
		{"", nil},
	} {
		stopped = nil
		w, err := l.Stop(ctx, c.id, "Anna")
		if errors.Is(err, store.ErrNotFound) != (c.want == nil) || !slices.Equal(stopped, c.want) || c.want != nil && w.ID != c.id {
			t.Errorf("stop %s: %v, %+v, and stopped %q, want %q", c.id, err, w, stopped, c.want)
		}
	}
}

// StopAll stops what is under way for somebody, also if they were an owner when it began, and nothing of others.
func TestStopAll(t *testing.T) {
	ctx := t.Context()
	var stopped []string
	acts := activity.NewSet()
	enter := func(at chat.Address, from chat.Sender) {
		a := activity.Activity{Since: time.Now(), Said: time.Now().Add(-time.Minute), At: at, From: from}
		a.Stop = func(error) { stopped = append(stopped, string(at.Session())) }
		if err := acts.Enter(ctx, at.Session(), &a, nil); err != nil {
			t.Fatal(err)
		}
	}
	chatOf := func(id string) chat.Address { return chat.Address{Channel: "net", Chat: id} }
	bert := chat.Sender{ID: "2", Role: chat.User}
	enter(chatOf("2"), bert)
	enter(chatOf("-100"), bert)
	enter(chatOf("-200"), chat.Sender{ID: "3", Role: chat.User})
	enter(chat.Address{Channel: "other", Chat: "2"}, bert)
	enter(chat.Address{Channel: "net", Chat: "2", Thread: "7"}, chat.Sender{ID: "1", Role: chat.Owner})
	super := subagents.New(subagents.Config{
		Bucket:  mem.New().Bucket(store.BucketSubagents),
		Log:     slog.New(slog.DiscardHandler),
		Admit:   func(context.Context, *tools.Subagent) error { return nil },
		Deliver: func(context.Context, chat.Message) error { return nil },
		Stop:    func(session, _ chat.SessionID) { stopped = append(stopped, string(session)) },
		Retry:   func(ctx context.Context, _ string, do func(context.Context) error) error { return do(ctx) },
	})
	for id, from := range map[string]chat.Sender{"aaaaaaaa": bert, "bbbbbbbb": {ID: "3", Role: chat.User}} {
		c := tools.Subagent{ID: id, Call: id, Parent: "net:" + chat.SessionID(from.ID), At: chatOf(from.ID), From: from, Report: true, Said: time.Now(), Began: time.Now()}
		if _, err := super.Spawn(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	running := []subagents.BackgroundTask{
		{ID: "c1", Session: "net:2/9", At: chatOf("2"), From: bert},
		{ID: "c2", Session: "net:3", At: chatOf("3"), From: chat.Sender{ID: "3", Role: chat.User}},
		{ID: "c3", Session: "net:99", At: chatOf("99"), From: bert}, // a direct message on Discord
		{ID: "c4", Session: "net:2/8", At: chatOf("2"), From: chat.Sender{ID: "1", Role: chat.Owner}},
		{ID: "c6", Session: "net:98", At: chatOf("98"), From: chat.Sender{ID: "2", Role: chat.Owner}}, // an owner then
		{ID: "c5", Session: "other:2", At: chat.Address{Channel: "other", Chat: "2"}, From: bert},
	}
	l := underway.List{Activities: acts, Subagents: super, Background: subagents.Background{
		List: func(context.Context, chat.SessionID) ([]subagents.BackgroundTask, error) { return running, nil },
		Stop: func(_ chat.SessionID, id string) int { stopped = append(stopped, id); return 1 },
	}}
	stopped = nil
	is := func(at chat.Address, from chat.Sender) bool {
		return at.Channel == "net" && (from.ID == "2" || at.Chat == "2") && from.ID != "1"
	}
	if err := l.StopAll(ctx, is, "Anna"); err != nil {
		t.Fatal(err)
	}
	slices.Sort(stopped)
	if want := []string{"agent:aaaaaaaa", "c1", "c3", "c6", "net:-100", "net:2"}; !slices.Equal(stopped, want) {
		t.Errorf("stopped %q, want %q", stopped, want)
	}
}
