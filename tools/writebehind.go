package tools

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/store"
)

const (
	writeDelay = 2 * time.Second  // from a change to its write: what changes together is written together
	retryDelay = 30 * time.Second // after a write that failed
)

// A writeBehind keeps values in a bucket without making anybody wait: a value
// is written a moment after it changed. A crash loses the last seconds.
type writeBehind struct {
	bucket store.Bucket
	log    *slog.Logger
	what   string        // for the log: "tool cache"
	wake   chan struct{} // something is to be written

	mu      sync.Mutex
	pending map[string][]byte // to be written; nil: to be deleted
}

func newWriteBehind(bucket store.Bucket, log *slog.Logger, what string) *writeBehind {
	return &writeBehind{bucket: bucket, log: log, what: what, wake: make(chan struct{}, 1), pending: map[string][]byte{}}
}

// set has value written under key; nil deletes it. w may be nil.
func (w *writeBehind) set(key string, value []byte) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key] = value
	w.wakeRun()
}

func (w *writeBehind) wakeRun() {
	select {
	case w.wake <- struct{}{}:
	default: // run is awake, and sees this one, too
	}
}

// load calls each with all values there are. What cannot be read is deleted.
func (w *writeBehind) load(ctx context.Context, each func(key string, value []byte) error) error {
	for key, err := range w.bucket.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the %s: %w", w.what, err)
		}
		value, _, err := w.bucket.Get(ctx, key)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case err == nil:
			err = each(key, value)
		case !errors.Is(err, store.ErrDamaged):
			return fmt.Errorf("read the %s: %w", w.what, err)
		}
		if err != nil {
			w.log.Warn("entry dropped: it cannot be read", "of", w.what, "key", key, "err", err)
			w.set(key, nil)
		}
	}
	return nil
}

// run writes until ctx ends, and then what is left. It calls tidy, which may
// be nil, before each write and every few minutes.
func (w *writeBehind) run(ctx context.Context, tidy func()) {
	delay := writeDelay
	for last := false; !last; {
		select {
		case <-ctx.Done():
		case <-w.wake:
		case <-time.After(tidyInterval):
		}
		select {
		case <-ctx.Done():
		case <-time.After(delay):
		}
		last = ctx.Err() != nil
		if tidy != nil {
			tidy()
		}
		delay = writeDelay
		if err := w.flush(context.WithoutCancel(ctx)); err != nil {
			delay = retryDelay
			w.log.Warn("not written; it is tried again", "what", w.what, "err", err)
		}
	}
}

const tidyInterval = 5 * time.Minute

// flush writes what is pending. What could not be written stays pending.
func (w *writeBehind) flush(ctx context.Context) error {
	w.mu.Lock()
	writing := w.pending
	w.pending = map[string][]byte{}
	w.mu.Unlock()
	var all errgroup.Group // they share a sync of the disk
	for key, value := range writing {
		all.Go(func() error {
			err := w.write(ctx, key, value)
			if err != nil {
				w.again(key, value)
			}
			return err
		})
	}
	return all.Wait()
}

func (w *writeBehind) write(ctx context.Context, key string, value []byte) error {
	if value == nil {
		return w.bucket.Delete(ctx, key)
	}
	_, err := w.bucket.Put(ctx, key, value, store.Any)
	return err
}

// again has value written at the next try, unless there is a later one.
func (w *writeBehind) again(key string, value []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, later := w.pending[key]; !later {
		w.pending[key] = value
		w.wakeRun()
	}
}
