package observe

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/store"
)

// commits are the histograms of the operations.
type commits map[string]prometheus.Observer

func (m maker) commits() commits {
	all, c := m.histogram("store_commit_seconds", "Time until a change was on disk.", quick, "op"), commits{}
	for _, op := range []string{"put", "delete", "append", "trim", "push", "done"} {
		c[op] = all.WithLabelValues(op)
	}
	return c
}

func (c commits) took(op string, began time.Time) { c[op].Observe(time.Since(began).Seconds()) }

// Store measures how long s takes to commit.
func (o *Observer) Store(s store.Store) store.Store { return measured{s, o.commits} }

type measured struct {
	store.Store
	commits
}

func (m measured) Bucket(name string) store.Bucket { return bucket{m.Store.Bucket(name), m.commits} }
func (m measured) Log(name string) store.Log       { return log{m.Store.Log(name), m.commits} }
func (m measured) Queue(name string) store.Queue   { return queue{m.Store.Queue(name), m.commits} }

type bucket struct {
	store.Bucket
	commits
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	defer b.took("put", time.Now())
	return b.Bucket.Put(ctx, key, val, rev)
}

func (b bucket) Delete(ctx context.Context, key string) error {
	defer b.took("delete", time.Now())
	return b.Bucket.Delete(ctx, key)
}

type log struct {
	store.Log
	commits
}

func (l log) Append(ctx context.Context, recs ...[]byte) (uint64, error) {
	defer l.took("append", time.Now())
	return l.Log.Append(ctx, recs...)
}

func (l log) Trim(ctx context.Context, seq uint64) error {
	defer l.took("trim", time.Now())
	return l.Log.Trim(ctx, seq)
}

type queue struct {
	store.Queue
	commits
}

func (q queue) Push(ctx context.Context, id string, body []byte) error {
	defer q.took("push", time.Now())
	return q.Queue.Push(ctx, id, body)
}

func (q queue) Pull(ctx context.Context) (store.Item, error) {
	item, err := q.Queue.Pull(ctx)
	if err != nil {
		return item, err
	}
	done := item.Done
	item.Done = func(ctx context.Context) error {
		defer q.took("done", time.Now())
		return done(ctx)
	}
	return item, nil
}
