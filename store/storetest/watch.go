package storetest

import (
	"context"
	"time"

	"parley/store"
)

// Watch returns s with calls of before and after around every operation that changes it.
// Their argument is the operation: "queue inbox Push", "queue inbox Done", "log
// session/telegram:42 Append", "bucket offsets Put". A crash test kills the process at
// the nth call. They may be called concurrently.
func Watch(s store.Store, before, after func(op string)) store.Store {
	return watched{s, func(op string) func() {
		before(op)
		return func() { after(op) }
	}}
}

type watched struct {
	store.Store
	around around
}

// around is called before an operation, and the function that it returns after it.
type around func(op string) (after func())

func (a around) of(what string) around { return func(op string) func() { return a(what + " " + op) } }

func (w watched) Bucket(name string) store.Bucket {
	return bucket{w.Store.Bucket(name), w.around.of("bucket " + name)}
}

func (w watched) Log(name string) store.Log {
	return log{w.Store.Log(name), w.around.of("log " + name)}
}

func (w watched) Queue(name string) store.Queue {
	return queue{w.Store.Queue(name), w.around.of("queue " + name)}
}

type bucket struct {
	store.Bucket
	around around
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	defer b.around("Put")()
	return b.Bucket.Put(ctx, key, val, rev)
}

func (b bucket) Delete(ctx context.Context, key string) error {
	defer b.around("Delete")()
	return b.Bucket.Delete(ctx, key)
}

type log struct {
	store.Log
	around around
}

func (l log) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if len(recs) > 0 {
		defer l.around("Append")()
	}
	return l.Log.Append(ctx, after, recs...)
}

func (l log) Trim(ctx context.Context, seq uint64) error {
	defer l.around("Trim")()
	return l.Log.Trim(ctx, seq)
}

type queue struct {
	store.Queue
	around around
}

func (q queue) Push(ctx context.Context, id string, body []byte) error {
	defer q.around("Push")()
	return q.Queue.Push(ctx, id, body)
}

func (q queue) Pull(ctx context.Context) (store.Item, error) {
	item, err := q.Queue.Pull(ctx)
	if err != nil {
		return item, err
	}
	done, later := item.Done, item.Later
	item.Done = func(ctx context.Context) error {
		defer q.around("Done")()
		return done(ctx)
	}
	item.Later = func(d time.Duration) {
		defer q.around("Later")()
		later(d)
	}
	return item, nil
}
