package mem

import (
	"bytes"
	"context"
	"time"

	"parley/store"
)

type queue struct {
	store   *Store
	pending *store.Pending
	last    uint64
	work    map[uint64]store.Item // that is not done: ID and Body
	seen    map[string]bool
	pushes  []push // those in seen, oldest first
}

type push struct {
	id string
	at time.Time
}

func newQueue(s *Store) *queue {
	q := &queue{
		store:   s,
		pending: store.NewPending(),
		work:    map[uint64]store.Item{},
		seen:    map[string]bool{},
	}
	if s.closed {
		q.pending.Close()
	}
	return q
}

// Push implements [store.Queue].
func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	return q.store.do(ctx, func() error {
		now := time.Now()
		for len(q.pushes) > 0 && now.Sub(q.pushes[0].at) >= store.IDRetention {
			delete(q.seen, q.pushes[0].id)
			q.pushes = q.pushes[1:]
		}
		if q.seen[id] {
			return nil
		}
		q.last++
		q.seen[id] = true
		q.pushes = append(q.pushes, push{id: id, at: now})
		q.work[q.last] = store.Item{ID: id, Body: bytes.Clone(body)}
		q.pending.Add(q.last)
		return nil
	})
}

// Pull implements [store.Queue].
func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, err
		}
		q.store.mu.Lock()
		item, ok := q.work[n]
		q.store.mu.Unlock()
		if !ok {
			continue // done by an earlier holder
		}
		item.Body = bytes.Clone(item.Body)
		item.Done = func(ctx context.Context) error { return q.done(ctx, n) }
		item.Later = q.pending.Later(n)
		return item, nil
	}
}

func (q *queue) done(ctx context.Context, n uint64) error {
	return q.store.do(ctx, func() error {
		delete(q.work, n)
		q.pending.Drop(n)
		return nil
	})
}

// Len implements [store.Queue].
func (q *queue) Len(ctx context.Context) (n int, err error) {
	err = q.store.do(ctx, func() error {
		n = q.pending.Len()
		return nil
	})
	return n, err
}
