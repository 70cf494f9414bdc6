package rewind_test

import (
	"log/slog"
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/agent/rewind"
	"parley/chat"
	"parley/store/mem"
	"parley/texts"
)

// There is a way back to what was answered together, also if it had been suspended for one of the messages and resumed for
// another, or only one of them had been.
func TestBackToSuspended(t *testing.T) {
	message := func(id string) chat.Message {
		return chat.Message{ID: id, At: chat.Address{Channel: "test", Chat: "1"}}
	}
	heard := func(id string) conversation.Record {
		m := message(id)
		return conversation.Record{Heard: &m}
	}
	suspended := func(id string, whole bool) conversation.Record {
		return conversation.Record{Suspended: &conversation.Suspension{Key: message(id).Key(), Whole: whole}}
	}
	resumed := func(id string) conversation.Record { return conversation.Record{Resumed: message(id).Key()} }
	ended := conversation.Record{Ended: &conversation.End{}}
	sessions := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
	err := sessions.Append(t.Context(), "test:1",
		heard("a"), heard("b"), suspended("a", true), resumed("b"), ended, // 1 to 5
		heard("c"), heard("d"), suspended("c", false), ended, resumed("c"), ended, // 6 to 11
	)
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]uint64{"a": 5, "b": 5, "c": 11, "d": 9} {
		p, err := rewind.Find(t.Context(), sessions, "test:1", 0, chat.Branch{After: []string{id}})
		if err != nil || !p.Known || p.From != want {
			t.Errorf("after the answer to %s: %+v, %v, want %d", id, p, err, want)
		}
	}
	for id, want := range map[string]uint64{"a": 0, "b": 0, "c": 5, "d": 5} {
		p, err := rewind.Find(t.Context(), sessions, "test:1", 0, chat.Branch{Instead: id})
		if err != nil || !p.Known || p.From != want {
			t.Errorf("instead of %s: %+v, %v, want %d", id, p, err, want)
		}
	}
}
