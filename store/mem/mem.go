// Package mem is a Store in memory, for tests and replays. It is gone when the process
// ends. It starts no goroutines.
package mem

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"parley/store"
)

// Store keeps everything in maps. Make one with [New].
type Store struct {
	locks *store.Locks

	mu      sync.Mutex // guards all that follows, and what it points to
	closed  bool
	buckets map[string]*bucket
	logs    map[string]*log
	queues  map[string]*queue
}

// New returns an empty Store.
func New() *Store {
	s := &Store{
		buckets: map[string]*bucket{},
		logs:    map[string]*log{},
		queues:  map[string]*queue{},
	}
	s.locks = store.NewLocks(s.Bucket(store.BucketLocks))
	return s
}

// Bucket implements [store.Store].
func (s *Store) Bucket(name string) store.Bucket {
	return named(s, s.buckets, name, func() *bucket { return &bucket{store: s, entries: map[string]entry{}} })
}

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log {
	return named(s, s.logs, name, func() *log { return &log{store: s} })
}

// Queue implements [store.Store].
func (s *Store) Queue(name string) store.Queue {
	return named(s, s.queues, name, func() *queue { return newQueue(s) })
}

// Lock implements [store.Store].
func (s *Store) Lock(ctx context.Context, name string) (store.Lease, error) {
	return s.locks.Lock(ctx, name)
}

// Close implements [store.Store].
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	s.locks.Close()
	for _, q := range s.queues {
		q.pending.Close()
	}
	return nil
}

// named returns the V of that name, and creates it if need be.
func named[V any](s *Store, all map[string]V, name string, create func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := all[name]
	if !ok {
		v = create()
		all[name] = v
	}
	return v
}

// do calls fn with the Store locked, unless ctx has ended or the Store is closed.
func (s *Store) do(ctx context.Context, fn func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	return fn()
}

type bucket struct {
	store   *Store
	entries map[string]entry
	last    uint64 // revision given last
}

type entry struct {
	val []byte
	rev uint64
}

// Get implements [store.Bucket].
func (b *bucket) Get(ctx context.Context, key string) (val []byte, rev uint64, err error) {
	err = b.store.do(ctx, func() error {
		e, ok := b.entries[key]
		if !ok {
			return store.ErrNotFound
		}
		val = bytes.Clone(e.val)
		rev = e.rev
		return nil
	})
	return val, rev, err
}

// Put implements [store.Bucket].
func (b *bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (given uint64, err error) {
	err = b.store.do(ctx, func() error {
		if rev != store.Any && rev != b.entries[key].rev {
			return store.ErrConflict
		}
		b.last++
		given = b.last
		b.entries[key] = entry{val: bytes.Clone(val), rev: given}
		return nil
	})
	return given, err
}

// Delete implements [store.Bucket].
func (b *bucket) Delete(ctx context.Context, key string) error {
	return b.store.do(ctx, func() error {
		delete(b.entries, key)
		return nil
	})
}

// Keys implements [store.Bucket].
func (b *bucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var keys []string
		err := b.store.do(ctx, func() error {
			keys = slices.Sorted(maps.Keys(b.entries))
			return nil
		})
		if err != nil {
			yield("", err)
			return
		}
		for _, k := range keys {
			if strings.HasPrefix(k, prefix) && !yield(k, nil) {
				return
			}
		}
	}
}

type log struct {
	store   *Store
	trimmed uint64 // records that were trimmed: one less than the number of recs[0]
	recs    [][]byte
}

// Append implements [store.Log].
func (l *log) Append(ctx context.Context, after uint64, recs ...[]byte) (seq uint64, err error) {
	err = l.store.do(ctx, func() error {
		if after != store.Any && after != l.trimmed+uint64(len(l.recs)) {
			return store.ErrConflict
		}
		for _, r := range recs {
			l.recs = append(l.recs, bytes.Clone(r))
		}
		seq = l.trimmed + uint64(len(l.recs))
		return nil
	})
	return seq, err
}

// Since implements [store.Log].
func (l *log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		var recs [][]byte // which trimming and appending do not change
		first := uint64(1)
		err := l.store.do(ctx, func() error {
			skip := l.countUpTo(seq)
			recs = l.recs[skip:]
			first = l.trimmed + skip + 1
			return nil
		})
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for i, body := range recs {
			if !yield(store.Record{Seq: first + uint64(i), Body: bytes.Clone(body)}, nil) {
				return
			}
		}
	}
}

// Trim implements [store.Log].
func (l *log) Trim(ctx context.Context, seq uint64) error {
	return l.store.do(ctx, func() error {
		n := l.countUpTo(seq)
		l.trimmed += n
		l.recs = l.recs[n:]
		return nil
	})
}

// countUpTo counts the records up to and including seq.
func (l *log) countUpTo(seq uint64) uint64 {
	return min(max(seq, l.trimmed)-l.trimmed, uint64(len(l.recs)))
}

// A Config is "store" in config.json (see package config): it has no keys.
type Config struct{}

// Open implements [store.Driver].
func (*Config) Open(context.Context, store.Host) (store.Store, error) { return New(), nil }
