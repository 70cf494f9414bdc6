package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
)

// ErrUnchanged is returned by a function that [Table.Update] or [Table.Upsert]
// calls when there is nothing to write.
var ErrUnchanged = errors.New("nothing changed")

// A Table keeps values of one type in a bucket, as JSON. Its [OnDamage] decides
// for all readers what becomes of a value that cannot be read (P21).
type Table[T any] struct {
	bucket   Bucket
	onDamage OnDamage[T]
}

// An OnDamage handles a value that cannot be read because of err, which is ErrDamaged.
// It returns a value to be stored instead, ErrNotFound to remove the damaged one, or an
// error for the reader, such as err itself.
type OnDamage[T any] func(key string, err error) (T, error)

// Report is an OnDamage that leaves the value as it is and returns ErrDamaged.
func Report[T any](_ string, err error) (none T, _ error) { return none, err }

// Forget returns an OnDamage that logs and removes the value; the log calls it what.
// Readers get ErrNotFound.
func Forget[T any](log *slog.Logger, what string) OnDamage[T] {
	return func(key string, err error) (none T, _ error) {
		log.Error("damaged value forgotten", "what", what, "key", key, "err", err)
		return none, ErrNotFound
	}
}

// NewTable returns the Table of the values in b.
func NewTable[T any](b Bucket, onDamage OnDamage[T]) Table[T] {
	return Table[T]{bucket: b, onDamage: onDamage}
}

// Get returns the value of key, and the revision to Put its successor at. The
// error is ErrNotFound if there is none; a first value is Put at that revision.
func (t Table[T]) Get(ctx context.Context, key string) (T, uint64, error) {
	var v, none T
	body, rev, err := t.bucket.Get(ctx, key)
	if errors.Is(err, ErrDamaged) {
		return t.repair(ctx, key, err)
	}
	if err != nil {
		return none, 0, err
	}
	if err := json.Unmarshal(body, &v); err != nil {
		return t.repair(ctx, key, fmt.Errorf("key %q: %w: %w", key, ErrDamaged, err))
	}
	return v, rev, nil
}

// repair handles the damaged value of key as onDamage says.
func (t Table[T]) repair(ctx context.Context, key string, damage error) (T, uint64, error) {
	v, err := t.onDamage(key, damage)
	switch {
	case errors.Is(err, ErrNotFound):
		if t.bucket.Delete(ctx, key) != nil { // it is harmless, and the next reader removes it
			return v, Any, err
		}
		return v, 0, err
	case err != nil:
		return v, Any, err
	}
	rev, err := t.Put(ctx, key, v, Any)
	return v, rev, err
}

// Put sets key to v and returns its new revision, as [Bucket.Put] does.
func (t Table[T]) Put(ctx context.Context, key string, v T, rev uint64) (uint64, error) {
	body, err := json.Marshal(v)
	if err != nil {
		return 0, fmt.Errorf("key %q: %w", key, err)
	}
	return t.bucket.Put(ctx, key, body, rev)
}

// Set sets key to v, whatever its value was.
func (t Table[T]) Set(ctx context.Context, key string, v T) error {
	_, err := t.Put(ctx, key, v, Any)
	return err
}

// Delete removes key, which may be absent.
func (t Table[T]) Delete(ctx context.Context, key string) error { return t.bucket.Delete(ctx, key) }

// Keys yields the keys that begin with prefix, as [Bucket.Keys] does.
func (t Table[T]) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return t.bucket.Keys(ctx, prefix)
}

// Update changes the value of key with change, and returns it with its revision. If
// another writer was faster, change is called again with the newer value. If it returns
// ErrUnchanged, nothing is written; any other error is returned. Update returns
// ErrNotFound if there is no value.
func (t Table[T]) Update(ctx context.Context, key string, change func(*T) error) (T, uint64, error) {
	return t.update(ctx, key, change, false)
}

// Upsert is Update that begins with the zero T if there is no value.
func (t Table[T]) Upsert(ctx context.Context, key string, change func(*T) error) (T, uint64, error) {
	return t.update(ctx, key, change, true)
}

func (t Table[T]) update(ctx context.Context, key string, change func(*T) error, insert bool) (T, uint64, error) {
	for {
		v, rev, err := t.Get(ctx, key)
		if err != nil && (!insert || !errors.Is(err, ErrNotFound)) {
			return v, 0, err
		}
		switch err := change(&v); {
		case errors.Is(err, ErrUnchanged):
			return v, rev, nil
		case err != nil:
			return v, 0, err
		}
		rev, err = t.Put(ctx, key, v, rev)
		if !errors.Is(err, ErrConflict) {
			return v, rev, err
		}
	}
}

// An Entry is one value of a Table.
type Entry[T any] struct {
	Key   string
	Value T
	Rev   uint64
}

// Each yields the entries whose keys begin with prefix, in the order of their
// keys. A damaged entry is yielded with its key and ErrDamaged, if the OnDamage returns
// that, and the next ones follow. Any other error ends the list.
func (t Table[T]) Each(ctx context.Context, prefix string) iter.Seq2[Entry[T], error] {
	return func(yield func(Entry[T], error) bool) {
		for key, err := range t.bucket.Keys(ctx, prefix) {
			if err != nil {
				yield(Entry[T]{}, err)
				return
			}
			e := Entry[T]{Key: key}
			e.Value, e.Rev, err = t.Get(ctx, key)
			if errors.Is(err, ErrNotFound) { // removed since Keys looked, or forgotten
				continue
			}
			fatal := err != nil && !errors.Is(err, ErrDamaged)
			if !yield(e, err) || fatal {
				return
			}
		}
	}
}

// Retain removes the values for which keep returns false. It calls keep with all values
// that can be read, in the order of their keys. A value that cannot be removed now stays
// until the next call.
func (t Table[T]) Retain(ctx context.Context, keep func(key string, v T) bool) error {
	for e, err := range t.Each(ctx, "") {
		switch {
		case errors.Is(err, ErrDamaged):
		case err != nil:
			return err
		case !keep(e.Key, e.Value):
			_ = t.Delete(ctx, e.Key)
		}
	}
	return nil
}
