package conversation_test

import (
	"log/slog"
	"testing"
	"time"

	"parley/agent/conversation"
	"parley/store/mem"
	"parley/texts"
)

// P28: a turn that was under way while a title was removed does not bring it back.
func TestTitleStaysRemoved(t *testing.T) {
	ss := conversation.NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{})
	s := ss.Restore("test:1", conversation.State{Title: "removed"}, conversation.NewHistory(time.UTC), 0)
	for _, left := range []string{"", "left"} {
		if err := ss.Update(t.Context(), "test:1", func(st *conversation.State) { st.Title = left }); err != nil {
			t.Fatal(err)
		}
		if err := ss.NoteTurn(t.Context(), s, time.Now()); err != nil {
			t.Fatal(err)
		}
		if st, _, err := ss.Lookup(t.Context(), "test:1"); st.Title != left || st.Last.IsZero() || err != nil {
			t.Errorf("the title is %q, %v; want %q", st.Title, err, left)
		}
	}
}
