package store

import (
	"context"
	"encoding/json"
)

// Load returns the value of key, which [Save] set, and its revision. One that
// makes no sense is ErrDamaged, too.
func Load[T any](ctx context.Context, b Bucket, key string) (v T, rev uint64, err error) {
	val, rev, err := b.Get(ctx, key)
	if err == nil && json.Unmarshal(val, &v) != nil {
		err = ErrDamaged
	}
	if err != nil {
		var none T
		return none, rev, err
	}
	return v, rev, nil
}

// Save sets key to v, as Put does.
func Save(ctx context.Context, b Bucket, key string, v any, rev uint64) (uint64, error) {
	val, err := json.Marshal(v)
	if err != nil {
		return 0, err
	}
	return b.Put(ctx, key, val, rev)
}
