package budget

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"parley/chat"
	"parley/store"
)

// archivedUsage is a line of the archive.
type archivedUsage struct {
	Day    string                `json:"day"`
	Person chat.Person           `json:"person"`
	Models map[string]ModelUsage `json:"models"`
}

// Trim removes what persons used on days before t.Before, which nothing else removes.
func (b *Book) Trim(ctx context.Context, t store.Trimming) error {
	return t.Remove(ctx, b.cfg.Bucket, b.oldUsage(ctx, t.Before.In(b.cfg.Zone).Format(time.DateOnly)))
}

// oldUsage yields the accounts of persons of the days before day.
func (b *Book) oldUsage(ctx context.Context, day string) iter.Seq2[store.OldEntry, error] {
	return func(yield func(store.OldEntry, error) bool) {
		for key, err := range b.cfg.Bucket.Keys(ctx, "") {
			if err != nil {
				yield(store.OldEntry{}, err)
				return
			}
			at, who, ofPerson := personOf(key)
			if !ofPerson || at >= day {
				continue
			}
			old, _, err := b.read.Get(ctx, key)
			if errors.Is(err, store.ErrNotFound) { // damaged, and removed
				continue
			}
			// It holds only what JSON can.
			line, _ := json.Marshal(archivedUsage{Day: at, Person: who, Models: old.Models})
			if !yield(store.OldEntry{Key: key, File: at[:len("2006-01")], Line: line}, err) || err != nil {
				return
			}
		}
	}
}
