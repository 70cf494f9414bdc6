package deadletter_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"testing"
	"time"

	"parley/agent/deadletter"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// Messages that waited for a model are answered in the order in which they came: the inbox gets them back so.
func TestModelIsBackInOrder(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		s := deadletter.NewSuspended(mem.New().Bucket("suspended"), slog.New(slog.DiscardHandler))
		var want, got []string
		for i := range 40 {
			key := fmt.Sprint("message ", 40-i)
			want = append(want, key)
			item := store.Item{ID: key, Later: func(time.Duration) { got = append(got, key) }}
			if err := s.Add(context.Background(), deadletter.Suspension{Key: key, Since: time.Now(), Model: "main"}, item); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(time.Second)
		}
		s.ModelIsBack("main")
		if !slices.Equal(got, want) {
			t.Errorf("given back: %q", got)
		}
	})
}
