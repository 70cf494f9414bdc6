// Package mem is a Store in memory, forgotten when the process ends: for tests
// and rehearsals. It starts no goroutines.
package mem

import (
	"context"
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
	return &Store{
		locks:   store.NewLocks(),
		buckets: map[string]*bucket{},
		logs:    map[string]*log{},
		queues:  map[string]*queue{},
	}
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
func (s *Store) Lock(ctx context.Context, name string) (func(), error) {
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

func named[V any](s *Store, all map[string]V, name string, make func() V) V {
	s.mu.Lock()
	defer s.mu.Unlock()
	v, ok := all[name]
	if !ok {
		v = make()
		all[name] = v
	}
	return v
}

// enter locks the Store for a call, unless the call is in vain.
func (s *Store) enter(ctx context.Context) (leave func(), err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, store.ErrClosed
	}
	return s.mu.Unlock, nil
}
