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

// A read transaction copies out at most so many entries and about so many bytes (P20).
const (
	pageLen  = 256
	pageSize = 1 << 20
)

// Bucket implements [store.Store].
func (s *Store) Bucket(name string) store.Bucket { return &bucket{s, name} }

type bucket struct {
	store *Store
	name  string
}

func (b *bucket) wrap(err error) error { return wrap("bucket", b.name, err) }

func wrap(kind, name string, err error) error {
	if err != nil {
		err = fmt.Errorf("%s %q: %w", kind, name, err)
	}
	return err
}

// child returns the bucket that a top bucket has under name, or nil.
func child(tx *bbolt.Tx, top []byte, name string) *bbolt.Bucket {
	if t := tx.Bucket(top); t != nil {
		return t.Bucket(label(name))
	}
	return nil
}

// ensure is child, which it makes when it is absent.
func ensure(tx *bbolt.Tx, top []byte, name string) (*bbolt.Bucket, error) {
	t, err := tx.CreateBucketIfNotExists(top)
	if err != nil {
		return nil, err
	}
	if len(name) >= bbolt.MaxKeySize {
		return nil, bbolt.ErrKeyTooLarge
	}
	return t.CreateBucketIfNotExists(label(name))
}

func (b *bucket) Get(ctx context.Context, key string) (val []byte, rev uint64, err error) {
	err = b.store.view(ctx, func(tx *bbolt.Tx) error {
		r, v, err := lookup(child(tx, buckets, b.name), label(key))
		rev, val = r, bytes.Clone(v)
		return err
	})
	if err != nil {
		return nil, 0, b.wrap(fmt.Errorf("key %q: %w", key, err))
	}
	return val, rev, nil
}

// lookup returns the revision and value of k in b, which may be nil.
func lookup(b *bbolt.Bucket, k []byte) (rev uint64, val []byte, err error) {
	if b == nil {
		return 0, nil, store.ErrNotFound
	}
	sealed := b.Get(k)
	if sealed == nil {
		return 0, nil, store.ErrNotFound
	}
	v, ok := unseal(k, sealed)
	if !ok {
		return 0, nil, store.ErrDamaged
	}
	rev, val = split(v)
	return rev, val, nil
}

func (b *bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	k := label(key)
	var given uint64
	err := b.store.write(ctx, func(tx *bbolt.Tx) error {
		if err := match(child(tx, buckets, b.name), k, rev); err != nil {
			return err
		}
		in, err := ensure(tx, buckets, b.name)
		if err != nil {
			return err
		}
		if given, err = in.NextSequence(); err != nil {
			return err
		}
		return in.Put(k, seal(k, number(given), val))
	}, nil)
	if err != nil {
		return 0, b.wrap(fmt.Errorf("key %q: %w", key, err))
	}
	return given, nil
}

// match says whether k may be put at rev.
func match(b *bbolt.Bucket, k []byte, rev uint64) error {
	if rev == store.Any {
		return nil
	}
	is, _, err := lookup(b, k)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return err
	case is != rev:
		return store.ErrConflict
	}
	return nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	k := label(key)
	return b.wrap(b.store.write(ctx, func(tx *bbolt.Tx) error {
		in := child(tx, buckets, b.name)
		if in == nil || in.Get(k) == nil {
			return errSame
		}
		return in.Delete(k)
	}, nil))
}

func (b *bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for from := label(prefix); from != nil; {
			keys, next, err := b.keys(ctx, label(prefix), from)
			if err != nil {
				yield("", b.wrap(err))
				return
			}
			for _, k := range keys {
				if !yield(k, nil) {
					return
				}
			}
			from = next
		}
	}
}

// keys returns some keys at and after from, and where to go on, or nil.
func (b *bucket) keys(ctx context.Context, prefix, from []byte) (keys []string, next []byte, err error) {
	err = b.store.view(ctx, func(tx *bbolt.Tx) error {
		in := child(tx, buckets, b.name)
		if in == nil {
			return nil
		}
		size := 0
		c := in.Cursor()
		for k, _ := c.Seek(from); bytes.HasPrefix(k, prefix); k, _ = c.Next() {
			if len(keys) == pageLen || size > pageSize {
				next = bytes.Clone(k)
				return nil
			}
			keys = append(keys, string(k[1:]))
			size += len(k)
		}
		return nil
	})
	return keys, next, err
}
