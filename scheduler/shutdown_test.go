package scheduler_test

import (
	"bytes"
	"context"
	"log/slog"
	"testing"

	"parley/scheduler"
	"parley/store"
	"parley/store/mem"
)

// endingStore ends a context when a job is read for the second time.
type endingStore struct {
	store.Store
	end   func()
	reads int
}

func (s *endingStore) Bucket(name string) store.Bucket { return endingBucket{s.Store.Bucket(name), s} }

type endingBucket struct {
	store.Bucket
	store *endingStore
}

func (b endingBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if b.store.reads++; b.store.reads == 2 {
		b.store.end()
		return nil, 0, ctx.Err()
	}
	return b.Bucket.Get(ctx, key)
}

// TestShutdownAtTheStart checks that a shutdown while jobs are read for the first
// time is not logged as a fault of a job.
func TestShutdownAtTheStart(t *testing.T) {
	var log bytes.Buffer
	w := newWorld(t)
	ctx, cancel := context.WithCancel(t.Context())
	ending := &endingStore{Store: mem.New(), end: cancel}
	w.store = ending
	w.system = []scheduler.System{{ID: "heartbeat", Schedule: scheduler.Schedule{Cron: "0 4 * * *"}}}
	c := w.config()
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	if err := scheduler.New(c).Run(ctx); err != nil {
		t.Error(err)
	}
	if ending.reads != 2 || log.Len() > 0 {
		t.Errorf("%d reads; the log: %s", ending.reads, log.String())
	}
}
