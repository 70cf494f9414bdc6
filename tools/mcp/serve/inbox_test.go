package serve

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
)

// texts returns what waits for a coding session of who.
func (b *inbox) texts(t *testing.T, who chat.Person, session string, known ...string) (texts []string) {
	t.Helper()
	all, err := b.list(t.Context(), inboxPrefix(who, session), known)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range all {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestInbox: a message waits for one session of one person until that acknowledges it, once however often it is
// delivered. One session has 500 at most; what was read is forgotten after two days, and what nobody reads after
// thirty.
func TestInbox(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newInbox(mem.New(), slog.New(slog.DiscardHandler))
		const who = chat.Person("telegram:1")
		put := func(id, session string) error {
			timetest.Sleep(time.Second)
			return b.put(t.Context(), who, message{ID: id, Session: session, Text: "text " + id, Time: time.Now()})
		}
		for _, id := range []string{"b", "a", "b"} {
			if err := put(id, ""); err != nil {
				t.Fatal(err)
			}
		}
		for _, want := range []struct {
			got, want []string
		}{
			{b.texts(t, who, "code"), []string{"text b", "text a"}},
			{b.texts(t, who, "code", "b"), []string{"text a"}},
			{b.texts(t, who, "other"), nil},
			{b.texts(t, "telegram:2", "code"), nil},
		} {
			if !slices.Equal(want.got, want.want) {
				t.Errorf("%q, want %q", want.got, want.want)
			}
		}
		_, key, err := b.find(t.Context(), who, "b")
		if err != nil {
			t.Fatal(err)
		}
		if err := b.acknowledge(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		if err := put("b", ""); err != nil || !slices.Equal(b.texts(t, who, ""), []string{"text a"}) {
			t.Errorf("%v, %q: an acknowledged message is back", err, b.texts(t, who, ""))
		}
		for n := range maxWaiting - 1 {
			if err := put(fmt.Sprint("n", n), ""); err != nil {
				t.Fatal(n, err)
			}
		}
		if err := put("many", ""); !errors.Is(err, errInboxFull) {
			t.Errorf("one more: %v", err)
		}
		if err := put("n0", ""); err != nil {
			t.Errorf("the same again: %v", err)
		}
		if err := put("c", "other"); err != nil {
			t.Errorf("for another session: %v", err)
		}
		timetest.Sleep(keepAcked)
		if err := put("many", ""); !errors.Is(err, errInboxFull) {
			t.Errorf("two days later: %v", err)
		}
		if _, _, err := b.find(t.Context(), who, "b"); err == nil {
			t.Error("what was read is kept")
		}
		timetest.Sleep(keepUnacked)
		if err := put("late", ""); err != nil || !slices.Equal(b.texts(t, who, ""), []string{"text late"}) {
			t.Errorf("%v, %q after thirty days", err, b.texts(t, who, ""))
		}
	})
}
