package deadletter_test

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"parley/channels/deadletter"
	"parley/chat"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// P28: replies that nobody sent again for long are removed, with a crash anywhere.
func TestTrim(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		letters := func(s store.Store) *deadletter.Letters {
			return deadletter.New(deadletter.Config{Store: s, Log: slog.New(slog.DiscardHandler)})
		}
		full := mem.New()
		var before time.Time
		for i := range 4 {
			if i == 2 {
				before = time.Now()
			}
			r := chat.Reply{ID: fmt.Sprint("r", i), Text: fmt.Sprint("reply ", i)}
			if err := letters(full).Add(t.Context(), deadletter.Letter{Reply: r, Reason: "gone"}); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(24 * time.Hour)
		}
		retentiontest.Run(t, retentiontest.Case{
			Open: func() store.Store {
				s, from := mem.New(), full.Bucket(store.BucketDeadReplies)
				for key, err := range from.Keys(t.Context(), "") {
					var body []byte
					if err == nil {
						body, _, err = from.Get(t.Context(), key)
					}
					if err == nil {
						_, err = s.Bucket(store.BucketDeadReplies).Put(t.Context(), key, body, 0)
					}
					if err != nil {
						t.Fatal(err)
					}
				}
				return s
			},
			Before:   before,
			Trim:     func(s store.Store, pass store.Trimming) error { return letters(s).Trim(t.Context(), pass) },
			Archived: []string{`"reason":"gone","time":"2000-01-01T00:00:00Z"}`, `"reason":"gone","time":"2000-01-02T00:00:00Z"}`},
			Check: func(t *testing.T, s store.Store) {
				t.Helper()
				left, err := letters(s).List(t.Context())
				if err != nil || len(left) != 2 || left[0].Reply.ID != "r2" || left[1].Reply.ID != "r3" {
					t.Errorf("left are %+v, %v", left, err)
				}
			},
		})
	})
}
