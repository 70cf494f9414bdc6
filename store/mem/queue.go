package mem

import (
	"bytes"
	"context"
	"time"

	"parley/store"
)

// memory is how long a pushed id is remembered (P2).
const memory = 48 * time.Hour

type queue struct {
	store   *Store
	pending *store.Pending
	last    uint64
	bodies  map[uint64]work
	seen    map[string]bool
	pushes  []push // what seen holds, oldest first
}

type work struct {
	id   string
	body []byte
}

type push struct {
	id string
	at time.Time
}

func newQueue(s *Store) *queue {
	q := &queue{store: s, pending: store.NewPending(), bodies: map[uint64]work{}, seen: map[string]bool{}}
	if s.closed {
		q.pending.Close()
	}
	return q
}

func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	leave, err := q.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	now := time.Now()
	q.forget(now)
	if q.seen[id] {
		return nil
	}
	q.last++
	q.seen[id] = true
	q.pushes = append(q.pushes, push{id, now})
	q.bodies[q.last] = work{id, bytes.Clone(body)}
	q.pending.Add(q.last)
	return nil
}

// forget lets go of the ids whose time is over.
func (q *queue) forget(now time.Time) {
	for len(q.pushes) > 0 && now.Sub(q.pushes[0].at) >= memory {
		delete(q.seen, q.pushes[0].id)
		q.pushes = q.pushes[1:]
	}
}

func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, err
		}
		q.store.mu.Lock()
		w, ok := q.bodies[n]
		q.store.mu.Unlock()
		if !ok {
			continue
		}
		return store.Item{
			ID:    w.id,
			Body:  bytes.Clone(w.body),
			Done:  func(ctx context.Context) error { return q.done(ctx, n) },
			Later: q.pending.Later(n),
		}, nil
	}
}

func (q *queue) done(ctx context.Context, n uint64) error {
	leave, err := q.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	delete(q.bodies, n)
	q.pending.Drop(n)
	return nil
}

func (q *queue) Len(ctx context.Context) (int, error) {
	leave, err := q.store.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	return q.pending.Len(), nil
}
