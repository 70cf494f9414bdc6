package deadletter

import (
	"context"
	"errors"
	"iter"

	"parley/store"
)

// Trim removes the dead letters whose messages were sent before t.Before.
func (l *Letters) Trim(ctx context.Context, t store.Trimming) error {
	return t.Remove(ctx, l.bucket, l.old(ctx, t))
}

func (l *Letters) old(ctx context.Context, t store.Trimming) iter.Seq2[store.OldEntry, error] {
	return func(yield func(store.OldEntry, error) bool) {
		for e, err := range l.readable.Each(ctx, "") {
			switch {
			case errors.Is(err, store.ErrDamaged): // its time is not known
				continue
			case err != nil:
				yield(store.OldEntry{}, err)
				return
			case !e.Value.Time.Before(t.Before):
				continue
			}
			line, _, err := l.bucket.Get(ctx, e.Key)
			if errors.Is(err, store.ErrNotFound) { // tried again, or dismissed
				continue
			}
			file := "messages " + e.Value.Time.UTC().Format("2006-01")
			if !yield(store.OldEntry{Key: e.Key, File: file, Line: line}, err) || err != nil {
				return
			}
		}
	}
}
