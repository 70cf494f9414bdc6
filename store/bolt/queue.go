package bolt

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

const (
	// memory is how long a pushed id is remembered (P2).
	memory = 48 * time.Hour
	// sweep is how many ids a push looks at, to forget those whose time is over:
	// more than it adds, so that they become fewer, and few, so that no push is slow.
	sweep = 8
)

// Queue implements [store.Store].
func (s *Store) Queue(name string) store.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		q = &queue{
			part: s.part("queue", name), seen: s.part("seen", name), pending: store.NewPending(),
		}
		if s.closed {
			q.pending.Close()
		}
		s.queues[name] = q
	}
	return q
}

type queue struct {
	part                   // the work that is not done
	seen    part           // the ids that were pushed, and when
	pending *store.Pending // complete once loaded

	// The writer's:
	swept    []byte // up to where it has looked for old ids
	keepsAll bool   // old ids stay: damage was found among them

	mu     sync.Mutex // guards what follows
	loaded bool
	old    uint64 // the highest number that was there when the Store was opened
}

// load reads the numbers of the pending work, at the first use of the queue.
func (q *queue) load(ctx context.Context) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.loaded {
		return nil
	}
	var ns []uint64
	for next := number(0); next != nil; {
		err := q.store.view(ctx, func(tx *bbolt.Tx) error {
			next = q.scan(tx, next, func(k, _ []byte) bool {
				n, _ := split(k)
				ns = append(ns, n)
				return true
			})
			return nil
		})
		if err != nil {
			return q.wrap(err)
		}
	}
	q.pending.Add(ns...)
	if len(ns) > 0 {
		q.old = ns[len(ns)-1]
	}
	q.loaded = true
	return nil
}

func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	if err := q.load(ctx); err != nil {
		return err
	}
	var n uint64
	do := func(tx *bbolt.Tx) (err error) {
		n, err = q.insert(tx, id, body)
		return err
	}
	return q.wrap(q.store.submit(ctx, &op{do: do, then: func() { q.pending.Add(n) }, vital: true}))
}

func (q *queue) insert(tx *bbolt.Tx, id string, body []byte) (uint64, error) {
	now := q.store.now()
	if v, err := q.seen.get(tx, label(id)); err == nil && !isOver(v, now) {
		return 0, errSame
	}
	if err := q.seen.put(tx, label(id), number(uint64(now.UnixNano()))); err != nil { // fails for an id too long, before anything changed
		return 0, err
	}
	work, err := q.make(tx)
	if err != nil {
		return 0, err
	}
	n := last(work) + 1
	if err := q.put(tx, number(n), number(uint64(len(id))), []byte(id), body); err != nil {
		return 0, err
	}
	if err := work.SetSequence(n); err != nil {
		return 0, err
	}
	return n, q.forget(tx, now)
}

// isOver says whether v, the time of a push, is to be remembered no more.
func isOver(v []byte, now time.Time) bool {
	ns, _ := split(v)
	return now.Sub(time.Unix(0, int64(ns))) >= memory
}

// forget looks at the next ids and lets go of those whose time is over. Damage
// in its way ends that until the next start.
func (q *queue) forget(tx *bbolt.Tx, now time.Time) error {
	if q.keepsAll {
		return nil
	}
	old, err := q.over(tx, now)
	q.keepsAll = err != nil
	for _, k := range old {
		if err := q.seen.delete(tx, k); err != nil {
			return err
		}
	}
	return nil
}

// over returns those of the next ids whose time is over.
func (q *queue) over(tx *bbolt.Tx, now time.Time) (old [][]byte, err error) {
	defer catch(&err)()
	c := q.seen.in(tx).Cursor()
	k, sealed := c.Seek(q.swept)
	for n := 0; n < sweep && k != nil; n++ {
		if v, ok := unseal(q.seen.place, k, sealed); ok && isOver(v, now) {
			old = append(old, bytes.Clone(k))
		}
		k, sealed = c.Next()
	}
	q.swept = bytes.Clone(k)
	return old, nil
}

func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	if err := q.load(ctx); err != nil {
		return store.Item{}, err
	}
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, q.wrap(err)
		}
		item, err := q.item(ctx, n)
		switch {
		case err == nil:
			return item, nil
		case errors.Is(err, store.ErrDamaged):
			q.setAside(ctx, n, err)
		case errors.Is(err, store.ErrNotFound): // done by whoever had it before
			q.pending.Drop(n)
		default:
			q.pending.Return(n, 0)
			return store.Item{}, q.wrap(err)
		}
	}
}

func (q *queue) item(ctx context.Context, n uint64) (item store.Item, err error) {
	err = q.store.view(ctx, func(tx *bbolt.Tx) error {
		v, err := q.get(tx, number(n))
		if err != nil {
			return err
		}
		size, v := split(v)
		item.ID, item.Body = string(v[:size]), bytes.Clone(v[size:])
		return nil
	})
	item.Again = n <= q.old
	item.Done = func(ctx context.Context) error { return q.done(ctx, n) }
	item.Later = q.pending.Later(n)
	return item, err
}

func (q *queue) done(ctx context.Context, n uint64) error {
	do := func(tx *bbolt.Tx) error { return q.delete(tx, number(n)) }
	return q.wrap(q.store.submit(ctx, &op{do: do, then: func() { q.pending.Drop(n) }, vital: true}))
}

// setAside takes damaged work out of the way of the rest (P21) and keeps what
// is left of it in the file. A fault in its page is left alone by this process:
// touching it again may do harm.
func (q *queue) setAside(ctx context.Context, n uint64, cause error) {
	log, key := q.store.log.With("queue", q.name, "number", n), number(n)
	log.Error("damaged work set aside", "err", cause)
	if !errors.Is(cause, errChecksum) {
		return
	}
	err := q.store.write(ctx, func(tx *bbolt.Tx) error {
		if err := q.store.part("damaged", q.name).put(tx, key, bytes.Clone(q.in(tx).Get(key))); err != nil {
			return err
		}
		return q.delete(tx, key)
	}, func() { q.pending.Drop(n) })
	if err != nil {
		log.Error("damaged work not moved", "err", err)
	}
}

func (q *queue) Len(ctx context.Context) (int, error) {
	if err := q.load(ctx); err != nil {
		return 0, err
	}
	if err := q.store.enter(ctx); err != nil {
		return 0, q.wrap(err)
	}
	defer q.store.calls.Done()
	return q.pending.Len(), nil
}
