package deadletter

import (
	"context"
	"encoding/json"
	"iter"

	"parley/store"
)

// Trim removes the dead letters of before t.Before. Those that are retried
// automatically are younger.
func (l *Letters) Trim(ctx context.Context, t store.Trimming) error {
	return t.Remove(ctx, l.cfg.Store.Bucket(store.BucketDeadReplies), l.old(ctx, t))
}

func (l *Letters) old(ctx context.Context, t store.Trimming) iter.Seq2[store.OldEntry, error] {
	return func(yield func(store.OldEntry, error) bool) {
		for e, err := range l.table.Each(ctx, "") {
			if err == nil && !e.Value.Time.Before(t.Before) {
				return // their keys sort by time
			}
			line, _ := json.Marshal(e.Value) // it was read from JSON
			file := "replies " + e.Value.Time.UTC().Format("2006-01")
			if !yield(store.OldEntry{Key: e.Key, File: file, Line: line}, err) || err != nil {
				return
			}
		}
	}
}
