package budget

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/retention/retentiontest"
	"parley/store"
	"parley/store/mem"
)

// P28: what persons used long ago is removed, with a crash anywhere, and nothing else.
func TestTrim(t *testing.T) {
	var kept []string
	retentiontest.Run(t, retentiontest.Case{
		Open: func() store.Store {
			s := mem.New()
			kept = []string{"2024-03-31/all", "2024-04-01/person/test:7", "conversation/test:1", "imported", "imported/2024-04-02/person/owner"}
			for _, key := range append(slices.Clone(kept), "2024-03-30/person/test:7", "2024-03-31/person/test:7", "imported/2023-01-01/person/owner") {
				body := fmt.Sprintf(`{"models":{"main":{"turns":%d,"usage":{}}}}`, len(key))
				if _, err := s.Bucket("ledger").Put(t.Context(), key, []byte(body), 0); err != nil {
					t.Fatal(err)
				}
			}
			return s
		},
		Before: time.Date(2024, 4, 1, 12, 0, 0, 0, time.UTC),
		Trim:   func(s store.Store, pass store.Trimming) error { return newBook(s, Limits{}).Trim(t.Context(), pass) },
		Archived: []string{
			`{"day":"2024-03-30","person":"test:7","models":{"main":{"turns":24,"usage":{"in":0,"out":0}}}}`,
			`{"day":"2024-03-31","person":"test:7","models":{"main":{"turns":24,"usage":{"in":0,"out":0}}}}`,
			`{"day":"2023-01-01","person":"owner","models":{"main":{"turns":32,"usage":{"in":0,"out":0}}}}`,
		},
		Check: func(t *testing.T, s store.Store) {
			t.Helper()
			var keys []string
			for key, err := range s.Bucket("ledger").Keys(t.Context(), "") {
				if err != nil {
					t.Fatal(err)
				}
				keys = append(keys, key)
			}
			if !slices.Equal(keys, kept) {
				t.Errorf("left are %q, want %q", keys, kept)
			}
		},
	})
}
