package bolt

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"parley/store"
	"parley/store/bolt/checksum"
)

// sweepSize is how many ids a push checks for expiry: more than it adds, so that
// they become fewer, and few, so that no push is slow.
const sweepSize = 8

// Queue implements [store.Store].
func (s *Store) Queue(name string) store.Queue {
	s.mu.Lock()
	defer s.mu.Unlock()
	q, ok := s.queues[name]
	if !ok {
		q = &queue{part: s.part("queue", name), seen: s.part("seen", name), pending: store.NewPending()}
		if s.closed {
			q.pending.Close()
		}
		s.queues[name] = q
	}
	return q
}

type queue struct {
	part    part           // the work that is not done
	seen    part           // the ids that were pushed, and when
	pending *store.Pending // complete once loaded

	// The writer's:
	sweepFrom   []byte // the key at which it goes on checking ids for expiry
	keepExpired bool   // expired ids stay: damage was found among them

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
	var numbers []uint64
	for next := encodeNumber(0); next != nil; {
		err := q.part.store.view(ctx, func(t *txn) error {
			next = q.part.scan(t, next, func(k, _ []byte) bool {
				n, _ := decodeNumber(k)
				numbers = append(numbers, n)
				return true
			})
			return nil
		})
		if err != nil {
			return q.part.wrap(err)
		}
	}
	q.pending.Add(numbers...)
	if len(numbers) > 0 {
		q.old = numbers[len(numbers)-1]
	}
	q.loaded = true
	return nil
}

// Push implements [store.Queue].
func (q *queue) Push(ctx context.Context, id string, body []byte) error {
	if err := q.load(ctx); err != nil {
		return err
	}
	var n uint64
	err := q.part.store.submit(ctx, &op{
		do: func(t *txn) (err error) {
			n, err = q.insert(t, id, body)
			return err
		},
		onCommit: func() { q.pending.Add(n) },
		vital:    true,
	})
	return q.part.wrap(err)
}

func (q *queue) insert(t *txn, id string, body []byte) (uint64, error) {
	now := q.part.store.now()
	if pushed, err := q.seen.get(t, encodeKey(id)); err == nil && !isExpired(pushed, now) {
		return 0, errUnchanged
	}
	// This comes first, because it fails if the id is too long.
	if err := q.seen.put(t, encodeKey(id), encodeNumber(uint64(now.UnixNano()))); err != nil {
		return 0, err
	}
	n := q.part.lastNumber(t) + 1
	if err := q.part.put(t, encodeNumber(n), encodeNumber(uint64(len(id))), []byte(id), body); err != nil {
		return 0, err
	}
	if err := q.part.setSequence(t, n); err != nil {
		return 0, err
	}
	return n, q.forgetExpired(t, now)
}

// isExpired reports whether an id that was pushed at that time, as it is stored,
// is no longer remembered.
func isExpired(pushed []byte, now time.Time) bool {
	ns, _ := decodeNumber(pushed)
	return now.Sub(time.Unix(0, int64(ns))) >= store.IDRetention
}

// forgetExpired checks the next ids and removes those that are expired. If it
// meets damage, it does nothing until the next start.
func (q *queue) forgetExpired(t *txn, now time.Time) error {
	if q.keepExpired {
		return nil
	}
	expired, err := q.nextExpired(t, now)
	q.keepExpired = err != nil
	for _, k := range expired {
		if err := q.seen.delete(t, k); err != nil {
			return err
		}
	}
	return nil
}

// nextExpired checks the next ids and returns the keys of those that are expired.
func (q *queue) nextExpired(t *txn, now time.Time) (keys [][]byte, err error) {
	defer catch(&err)()
	c := q.seen.cursor(t)
	k, stored := c.seek(q.sweepFrom)
	for n := 0; n < sweepSize && k != nil; n++ {
		if pushed, ok := checksum.Strip(q.seen.place, k, stored); ok && isExpired(pushed, now) {
			keys = append(keys, bytes.Clone(k))
		}
		k, stored = c.next(k)
	}
	q.sweepFrom = bytes.Clone(k)
	return keys, nil
}

// Pull implements [store.Queue].
func (q *queue) Pull(ctx context.Context) (store.Item, error) {
	if err := q.load(ctx); err != nil {
		return store.Item{}, err
	}
	for {
		n, err := q.pending.Pull(ctx)
		if err != nil {
			return store.Item{}, q.part.wrap(err)
		}
		item, err := q.item(ctx, n)
		switch {
		case err == nil:
			return item, nil
		case errors.Is(err, store.ErrDamaged):
			q.moveDamaged(ctx, n, err)
		case errors.Is(err, store.ErrNotFound): // done by an earlier holder
			q.pending.Drop(n)
		default:
			q.pending.Return(n, 0)
			return store.Item{}, q.part.wrap(err)
		}
	}
}

func (q *queue) item(ctx context.Context, n uint64) (item store.Item, err error) {
	err = q.part.store.view(ctx, func(t *txn) error {
		v, err := q.part.get(t, encodeNumber(n))
		if err != nil {
			return err
		}
		size, v := decodeNumber(v)
		item.ID = string(v[:size])
		item.Body = bytes.Clone(v[size:])
		return nil
	})
	item.Again = n <= q.old
	item.Done = func(ctx context.Context) error { return q.done(ctx, n) }
	item.Later = q.pending.Later(n)
	return item, err
}

func (q *queue) done(ctx context.Context, n uint64) error {
	err := q.part.store.submit(ctx, &op{
		do:       func(t *txn) error { return q.part.delete(t, encodeNumber(n)) },
		onCommit: func() { q.pending.Drop(n) },
		vital:    true,
	})
	return q.part.wrap(err)
}

// moveDamaged removes damaged work from the queue, so that the rest goes on (P21),
// and keeps what is left of it in the file. If its page has a fault it stays where
// it is: another access may do harm.
func (q *queue) moveDamaged(ctx context.Context, n uint64, cause error) {
	log := q.part.store.log.With("queue", q.part.name, "number", n)
	log.Error("damaged work removed from its queue", "err", cause)
	if !errors.Is(cause, errChecksum) {
		return
	}
	key := encodeNumber(n)
	err := q.part.store.write(ctx, func(t *txn) error {
		found := bytes.Clone(q.part.stored(t, key))
		if err := q.part.store.part("damaged", q.part.name).put(t, key, found); err != nil {
			return err
		}
		return q.part.delete(t, key)
	}, func() { q.pending.Drop(n) })
	if err != nil {
		log.Error("damaged work not moved", "err", err)
	}
}

// Len implements [store.Queue].
func (q *queue) Len(ctx context.Context) (int, error) {
	if err := q.load(ctx); err != nil {
		return 0, err
	}
	if err := q.part.store.beginCall(ctx); err != nil {
		return 0, q.part.wrap(err)
	}
	defer q.part.store.calls.Done()
	return q.pending.Len(), nil
}
