package observe

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"parley/store"
)

// Store measures how long s takes to commit.
func (o *Observer) Store(s store.Store) store.Store {
	return measured{s, &commits{
		put: o.commits.WithLabelValues("put"), delete: o.commits.WithLabelValues("delete"),
		append: o.commits.WithLabelValues("append"), trim: o.commits.WithLabelValues("trim"),
		push: o.commits.WithLabelValues("push"), done: o.commits.WithLabelValues("done"),
	}}
}

// commits are the histograms of the operations.
type commits struct{ put, delete, append, trim, push, done prometheus.Observer }

func since(began time.Time, in prometheus.Observer) { in.Observe(time.Since(began).Seconds()) }

type measured struct {
	store.Store
	*commits
}

func (m measured) Bucket(name string) store.Bucket { return bucket{m.Store.Bucket(name), m.commits} }
func (m measured) Log(name string) store.Log       { return log{m.Store.Log(name), m.commits} }
func (m measured) Queue(name string) store.Queue   { return queue{m.Store.Queue(name), m.commits} }

type bucket struct {
	store.Bucket
	took *commits
}

func (b bucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	defer since(time.Now(), b.took.put)
	return b.Bucket.Put(ctx, key, val, rev)
}

func (b bucket) Delete(ctx context.Context, key string) error {
	defer since(time.Now(), b.took.delete)
	return b.Bucket.Delete(ctx, key)
}

type log struct {
	store.Log
	took *commits
}

func (l log) Append(ctx context.Context, recs ...[]byte) (uint64, error) {
	defer since(time.Now(), l.took.append)
	return l.Log.Append(ctx, recs...)
}

func (l log) Trim(ctx context.Context, seq uint64) error {
	defer since(time.Now(), l.took.trim)
	return l.Log.Trim(ctx, seq)
}

type queue struct {
	store.Queue
	took *commits
}

func (q queue) Push(ctx context.Context, id string, body []byte) error {
	defer since(time.Now(), q.took.push)
	return q.Queue.Push(ctx, id, body)
}

func (q queue) Pull(ctx context.Context) (store.Item, error) {
	item, err := q.Queue.Pull(ctx)
	if err != nil {
		return item, err
	}
	done := item.Done
	item.Done = func(ctx context.Context) error {
		defer since(time.Now(), q.took.done)
		return done(ctx)
	}
	return item, nil
}
