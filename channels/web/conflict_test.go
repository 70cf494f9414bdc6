package web

import (
	"errors"
	"log/slog"
	"testing"

	"parley/chat"
	"parley/store"
	"parley/store/mem"
)

// P3 P9: who has a room in memory, to which somebody else has written, writes nothing of what
// depends on it, and knows what there is when it tries again.
func TestRoomOfAnother(t *testing.T) {
	s := mem.New()
	open := func() *room {
		c, err := New(Config{Name: "web", Store: s, Log: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		at := c.address("ann", "talk")
		if err := c.conversations.set(t.Context(), at, conversation{Used: true}); err != nil {
			t.Fatal(err)
		}
		rm, leave := c.openRoom(at)
		t.Cleanup(leave)
		return rm
	}
	write := func(rm *room, id string, wantSeq uint64, wantAgain bool, want error) {
		t.Helper()
		rm.writeMu.Lock()
		defer rm.writeMu.Unlock()
		seq, again, err := rm.appendEntry(t.Context(), logEntry{ID: id, Who: whoAgent, Text: id})
		if seq != wantSeq || again != wantAgain || !errors.Is(err, want) {
			t.Errorf("appending %s = %d, %v, %v; want %d, %v, %v", id, seq, again, err, wantSeq, wantAgain, want)
		}
	}
	one, another := open(), open()
	write(one, "a", 1, false, nil)
	write(another, "b", 2, false, nil)
	write(one, "b", 0, false, store.ErrConflict) // it would be there twice
	write(one, "b", 2, true, nil)
	write(another, "c", 3, false, nil)
	edit := chat.Reply{Text: "edited"}
	if err := one.editEntry(t.Context(), 1, edit); !errors.Is(err, store.ErrConflict) {
		t.Errorf("editing = %v, want ErrConflict", err)
	}
	if err := one.editEntry(t.Context(), 1, edit); err != nil {
		t.Error(err)
	}
	if err := one.log.Trim(t.Context(), store.Any); err != nil {
		t.Fatal(err)
	}
	write(open(), "d", 5, false, nil)
}
