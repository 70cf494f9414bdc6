package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"parley/store"
)

// Bucket implements [store.Store].
func (s *Store) Bucket(name string) store.Bucket { return bucket{part: s.part("bucket", name)} }

type bucket struct{ part part }

// Get implements [store.Bucket].
func (b bucket) Get(ctx context.Context, key string) (val []byte, rev uint64, err error) {
	err = b.part.store.view(ctx, func(t *txn) error {
		v, err := b.part.get(t, encodeKey(key))
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		rev, v = decodeNumber(v)
		val = bytes.Clone(v)
		return nil
	})
	return val, rev, b.part.wrap(err)
}

// Put implements [store.Bucket].
func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (given uint64, err error) {
	err = b.part.store.write(ctx, func(t *txn) error {
		if err := b.checkRevision(t, key, rev); err != nil {
			return err
		}
		last, _ := b.part.sequence(t)
		given = last + 1
		if err := b.part.setSequence(t, given); err != nil {
			return err
		}
		return b.part.put(t, encodeKey(key), encodeNumber(given), val)
	}, nil)
	if err != nil {
		return 0, b.part.wrap(fmt.Errorf("key %q: %w", key, err))
	}
	return given, nil
}

// checkRevision returns ErrConflict unless key may be put at rev.
func (b bucket) checkRevision(t *txn, key string, rev uint64) error {
	if rev == store.Any {
		return nil
	}
	current, err := b.revision(t, key)
	if err != nil {
		return err
	}
	if current != rev {
		return store.ErrConflict
	}
	return nil
}

// revision returns the revision of key, 0 if there is no key.
func (b bucket) revision(t *txn, key string) (uint64, error) {
	v, err := b.part.get(t, encodeKey(key))
	if errors.Is(err, store.ErrNotFound) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	rev, _ := decodeNumber(v)
	return rev, nil
}

// Delete implements [store.Bucket].
func (b bucket) Delete(ctx context.Context, key string) error {
	err := b.part.store.write(ctx, func(t *txn) error { return b.part.delete(t, encodeKey(key)) }, nil)
	return b.part.wrap(err)
}

// Keys implements [store.Bucket].
func (b bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		first := encodeKey(prefix)
		for next := first; next != nil; {
			var keys []string
			err := b.part.store.view(ctx, func(t *txn) error {
				next = b.part.scan(t, next, func(k, _ []byte) bool {
					if !bytes.HasPrefix(k, first) {
						return false
					}
					keys = append(keys, decodeKey(k))
					return true
				})
				return nil
			})
			if err != nil {
				yield("", b.part.wrap(err))
				return
			}
			for _, k := range keys {
				if !yield(k, nil) {
					return
				}
			}
		}
	}
}
