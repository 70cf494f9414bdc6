package channels

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"

	"parley/store"
)

// read reads the value of key into v. It returns ErrDamaged for one that makes no sense.
func read(ctx context.Context, b store.Bucket, key string, v any) error {
	val, _, err := b.Get(ctx, key)
	if err == nil && json.Unmarshal(val, v) != nil {
		err = store.ErrDamaged
	}
	return err
}

// write sets key to v, whatever it was.
func write(ctx context.Context, b store.Bucket, key string, v any) error {
	val, err := json.Marshal(v)
	if err == nil {
		_, err = b.Put(ctx, key, val, store.Any)
	}
	return err
}

// sift shows keep every value of b, in the order of their keys. What is not to
// be kept, or is damaged, is removed; what cannot be now, is the next time.
func sift[T any](ctx context.Context, b store.Bucket, log *slog.Logger, keep func(key string, v T) bool) error {
	for key, err := range b.Keys(ctx, "") {
		var v T
		if err == nil {
			err = read(ctx, b, key, &v)
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
