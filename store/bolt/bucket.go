package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Bucket implements [store.Store].
func (s *Store) Bucket(name string) store.Bucket { return bucket{s.part("bucket", name)} }

type bucket struct{ part }

func (b bucket) Get(ctx context.Context, key string) (val []byte, rev uint64, err error) {
	err = b.store.view(ctx, func(tx *bbolt.Tx) error {
		v, err := b.get(tx, label(key))
		if err != nil {
			return fmt.Errorf("key %q: %w", key, err)
		}
		rev, v = split(v)
		val = bytes.Clone(v)
		return nil
	})
	return val, rev, b.wrap(err)
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (given uint64, err error) {
	err = b.store.write(ctx, func(tx *bbolt.Tx) error {
		if err := b.match(tx, key, rev); err != nil {
			return err
		}
		in, err := b.make(tx)
		if err != nil {
			return err
		}
		if given, err = in.NextSequence(); err != nil {
			return err
		}
		return b.put(tx, label(key), number(given), val)
	}, nil)
	if err != nil {
		return 0, b.wrap(fmt.Errorf("key %q: %w", key, err))
	}
	return given, nil
}

// match says whether key may be put at rev.
func (b bucket) match(tx *bbolt.Tx, key string, rev uint64) error {
	if rev == store.Any {
		return nil
	}
	is := uint64(0)
	v, err := b.get(tx, label(key))
	switch {
	case err == nil:
		is, _ = split(v)
	case !errors.Is(err, store.ErrNotFound):
		return err
	}
	if is != rev {
		return store.ErrConflict
	}
	return nil
}

func (b bucket) Delete(ctx context.Context, key string) error {
	return b.wrap(b.store.write(ctx, func(tx *bbolt.Tx) error { return b.delete(tx, label(key)) }, nil))
}

func (b bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		first := label(prefix)
		for next := first; next != nil; {
			var keys []string
			err := b.store.view(ctx, func(tx *bbolt.Tx) error {
				next = b.scan(tx, next, func(k, _ []byte) bool {
					if !bytes.HasPrefix(k, first) {
						return false
					}
					keys = append(keys, string(k[1:]))
					return true
				})
				return nil
			})
			if err != nil {
				yield("", b.wrap(err))
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
