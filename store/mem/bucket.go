package mem

import (
	"bytes"
	"context"
	"iter"
	"slices"
	"strings"

	"parley/store"
)

type bucket struct {
	store   *Store
	entries map[string]entry
	last    uint64 // revision given last
}

type entry struct {
	val []byte
	rev uint64
}

func (b *bucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	leave, err := b.store.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	e, ok := b.entries[key]
	if !ok {
		return nil, 0, store.ErrNotFound
	}
	return bytes.Clone(e.val), e.rev, nil
}

func (b *bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	leave, err := b.store.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	if rev != store.Any && rev != b.entries[key].rev {
		return 0, store.ErrConflict
	}
	b.last++
	b.entries[key] = entry{bytes.Clone(val), b.last}
	return b.last, nil
}

func (b *bucket) Delete(ctx context.Context, key string) error {
	leave, err := b.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	delete(b.entries, key)
	return nil
}

func (b *bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		keys, err := b.keys(ctx, prefix)
		if err != nil {
			yield("", err)
			return
		}
		for _, k := range keys {
			if !yield(k, nil) {
				return
			}
		}
	}
}

func (b *bucket) keys(ctx context.Context, prefix string) ([]string, error) {
	leave, err := b.store.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()
	var keys []string
	for k := range b.entries {
		if strings.HasPrefix(k, prefix) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	return keys, nil
}
