package channels

import (
	"context"
	"errors"
	"log/slog"

	"parley/store"
)

// write sets key to v, whatever it was.
func write(ctx context.Context, b store.Bucket, key string, v any) error {
	_, err := store.Save(ctx, b, key, v, store.Any)
	return err
}

// Sift shows keep every value of b, in the order of their keys. What is not to
// be kept, or is damaged, is removed; what cannot be now, is the next time.
func Sift[T any](ctx context.Context, b store.Bucket, log *slog.Logger, keep func(key string, v T) bool) error {
	for key, err := range b.Keys(ctx, "") {
		var v T
		if err == nil {
			v, _, err = store.Load[T](ctx, b, key)
		}
		switch {
		case errors.Is(err, store.ErrNotFound): // removed meanwhile
		case errors.Is(err, store.ErrDamaged):
			log.Error("a damaged record is forgotten", "key", key)
			_ = b.Delete(ctx, key)
		case err != nil:
			return err
		case !keep(key, v):
			_ = b.Delete(ctx, key)
		}
	}
	return nil
}
