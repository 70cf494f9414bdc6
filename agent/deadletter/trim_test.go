package deadletter_test

import (
	"fmt"
	"testing"
	"time"

	"parley/agent/deadletter"
	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
)

// P28: dead letters that nobody looked at for long are removed, with a crash anywhere.
func TestTrim(t *testing.T) {
	now := time.Date(2024, 4, 1, 0, 0, 0, 0, time.UTC)
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			letters := deadletter.NewLetters(s, nil, nil)
			for i := range 6 {
				body := fmt.Sprintf(`{"time":%q,"text":"message %d"}`, now.AddDate(0, 0, i-3).Format(time.RFC3339), i)
				if err := letters.Put(t.Context(), fmt.Sprint("m", i), []byte(body)); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
		Before: now,
		Trim: func(s store.Store, pass store.Trimming) error {
			return deadletter.NewLetters(s, nil, nil).Trim(t.Context(), pass)
		},
		Archived: []string{`"text":"message 0"}`, `"text":"message 1"}`, `"text":"message 2"}`},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			var keys string
			for key, err := range s.Bucket(store.BucketDeadMessages).Keys(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				keys += key + " "
			}
			if keys != "m3 m4 m5 " {
				t.Errorf("left are %s", keys)
			}
		},
	})
}
