package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

const (
	// memory is how long a pushed id is remembered (P2).
	memory = 48 * time.Hour
	// forgets is how many ids a push forgets at most whose time is over: more
	// than it adds, so that they become fewer, and few, so that no push is slow.
	forgets = 3
)

// The names of the buckets of a queue.
var (
	items = []byte("items")
	seen  = []byte("seen")
	times = []byte("times")
)

// Queue implements [store.Store].
func (s *Store) Queue(name string) store.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		q = &queue{store: s, name: name, pending: store.NewPending()}
		if s.closed {
			q.pending.Close()
		}
		s.queues[name] = q
	}
	return q
}

type queue struct {
	store   *Store
	name    string
	pending *store.Pending // complete once loaded

	mu     sync.Mutex // guards what follows
	loaded bool
	old    uint64 // the highest number that was there when the Store was opened
}

func (q *queue) wrap(err error) error { return wrap("queue", q.name, err) }

// load reads the numbers of the pending work, at the first use of the queue.
func (q *queue) load(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.loaded {
		return nil
	}
	var ns []uint64
	err := q.store.view(ctx, func(tx *bbolt.Tx) error {
		in := child(tx, queues, q.name)
		if in == nil {
			return nil
		}
		work := in.Bucket(items)
		q.old = work.Sequence()
		c := work.Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			ns = append(ns, binary.BigEndian.Uint64(k))
		}
		return nil
	})
	if err != nil {
		return err
	}
	q.pending.Add(ns...)
	q.loaded = true
	return nil
}

func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	if err := q.load(ctx); err != nil {
		return q.wrap(err)
	}
	var n uint64
	return q.wrap(q.store.write(ctx, func(tx *bbolt.Tx) (err error) {
		n, err = q.insert(tx, id, body)
		return err
	}, func() { q.pending.Add(n) }))
}

func (q *queue) insert(tx *bbolt.Tx, id string, body []byte) (uint64, error) {
	work, ids, at, err := q.open(tx)
	if err != nil {
		return 0, err
	}
	now, k := q.store.now(), label(id)
	if v, ok := unseal(k, ids.Get(k)); ok && now.Sub(pushed(v[8:])) < memory {
		return 0, errSame
	}
	n, err := work.NextSequence()
	if err != nil {
		return 0, err
	}
	key, when := number(n), number(uint64(now.UnixNano()))
	if err := ids.Put(k, seal(k, key, when)); err != nil { // fails for an id too long, before anything changed
		return 0, err
	}
	if err := at.Put(key, seal(key, when, k)); err != nil {
		return 0, err
	}
	if err := work.Put(key, seal(key, number(uint64(len(id))), []byte(id), body)); err != nil {
		return 0, err
	}
	return n, forget(ids, at, now)
}

// open returns the buckets of the queue: its work, the ids it has seen, and when.
func (q *queue) open(tx *bbolt.Tx) (work, ids, at *bbolt.Bucket, err error) {
	in, err := ensure(tx, queues, q.name)
	if err != nil {
		return nil, nil, nil, err
	}
	if work, err = in.CreateBucketIfNotExists(items); err != nil {
		return nil, nil, nil, err
	}
	if ids, err = in.CreateBucketIfNotExists(seen); err != nil {
		return nil, nil, nil, err
	}
	at, err = in.CreateBucketIfNotExists(times)
	return work, ids, at, err
}

func pushed(v []byte) time.Time {
	return time.Unix(0, int64(binary.BigEndian.Uint64(v)))
}

// forget lets go of some ids whose time is over. They stand in the order of
// pushing: when the clock was set back, some stay longer.
func forget(ids, at *bbolt.Bucket, now time.Time) error {
	for range forgets {
		key, sealed := at.Cursor().First()
		if key == nil {
			return nil
		}
		v, ok := unseal(key, sealed)
		if ok && now.Sub(pushed(v)) < memory {
			return nil
		}
		if ok {
			k := v[8:]
			if s, ok := unseal(k, ids.Get(k)); ok && bytes.HasPrefix(s, key) { // not pushed again since
				if err := ids.Delete(bytes.Clone(k)); err != nil {
					return err
				}
			}
		}
		if err := at.Delete(bytes.Clone(key)); err != nil {
			return err
		}
	}
	return nil
}

func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	if err := q.load(ctx); err != nil {
		return store.Item{}, q.wrap(err)
	}
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, q.wrap(err)
		}
		id, body, err := q.read(ctx, n)
		switch {
		case err == nil:
			return q.item(n, id, body), nil
		case errors.Is(err, store.ErrNotFound):
			q.pending.Drop(n)
		case errors.Is(err, store.ErrDamaged):
			q.setAside(ctx, n, err)
		default:
			q.pending.Return(n, 0)
			return store.Item{}, q.wrap(err)
		}
	}
}

func (q *queue) item(n uint64, id string, body []byte) store.Item {
	return store.Item{
		ID:    id,
		Body:  body,
		Again: n <= q.old,
		Done:  func(ctx context.Context) error { return q.done(ctx, n) },
		Later: q.pending.Later(n),
	}
}

func (q *queue) read(ctx context.Context, n uint64) (id string, body []byte, err error) {
	key := number(n)
	err = q.store.view(ctx, func(tx *bbolt.Tx) error {
		sealed := child(tx, queues, q.name).Bucket(items).Get(key)
		if sealed == nil {
			return store.ErrNotFound
		}
		v, ok := unseal(key, sealed)
		if !ok {
			return errItem
		}
		size, v := split(v)
		id, body = string(v[:size]), bytes.Clone(v[size:])
		return nil
	})
	return id, body, err
}

// errItem is a wrong checksum of one item, in a file that is otherwise sound.
var errItem = fmt.Errorf("item: %w", store.ErrDamaged)

// setAside takes damaged work out of the way of the rest (P21) and keeps what
// is left of it in the file.
func (q *queue) setAside(ctx context.Context, n uint64, cause error) {
	q.store.log.Error("damaged work set aside", "queue", q.name, "number", n, "err", cause)
	if !errors.Is(cause, errItem) {
		return // touching its page again may do harm: this process leaves it alone
	}
	key := number(n)
	err := q.store.write(ctx, func(tx *bbolt.Tx) error {
		aside, err := tx.CreateBucketIfNotExists(damaged)
		if err != nil {
			return err
		}
		work := child(tx, queues, q.name).Bucket(items)
		if err := aside.Put(append(label(q.name), key...), bytes.Clone(work.Get(key))); err != nil {
			return err
		}
		return work.Delete(key)
	}, func() { q.pending.Drop(n) })
	if err != nil {
		q.store.log.Error("damaged work not moved", "queue", q.name, "number", n, "err", err)
	}
}

func (q *queue) done(ctx context.Context, n uint64) error {
	key := number(n)
	return q.wrap(q.store.write(ctx, func(tx *bbolt.Tx) error {
		work := child(tx, queues, q.name).Bucket(items)
		if work.Get(key) == nil {
			return errSame
		}
		return work.Delete(key)
	}, func() { q.pending.Drop(n) }))
}

func (q *queue) Len(ctx context.Context) (int, error) {
	if err := q.load(ctx); err != nil {
		return 0, q.wrap(err)
	}
	if err := q.store.enter(ctx); err != nil {
		return 0, q.wrap(err)
	}
	defer q.store.calls.Done()
	return q.pending.Len(), nil
}
