package store

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"
)

const (
	writeDelay   = 2 * time.Second  // from a change to its write, so that several share one
	retryDelay   = 30 * time.Second // after a failed write
	tidyInterval = 5 * time.Minute
)

// A WriteBehind keeps values in a bucket without making callers wait: a value is
// written a moment after it changed. A crash loses the last seconds.
type WriteBehind struct {
	bucket Bucket
	log    *slog.Logger
	what   string        // for the log: "tool cache"
	wake   chan struct{} // gets a value when there is something to write

	mu      sync.Mutex
	pending map[string][]byte // to be written; nil: to be deleted
}

// NewWriteBehind returns a WriteBehind for bucket; the log calls its values what.
func NewWriteBehind(bucket Bucket, log *slog.Logger, what string) *WriteBehind {
	return &WriteBehind{
		bucket:  bucket,
		log:     log,
		what:    what,
		wake:    make(chan struct{}, 1),
		pending: map[string][]byte{},
	}
}

// Set schedules the write of value under key; nil deletes it. A nil w writes nothing.
func (w *WriteBehind) Set(key string, value []byte) {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending[key] = value
	w.Wake()
}

// Wake has Run write soon. It spares the caller to encode what changes often: the tidy
// of Run can do that, and then Set it.
func (w *WriteBehind) Wake() {
	select {
	case w.wake <- struct{}{}:
	default: // Run is awake already, and sees this one, too
	}
}

// IsPending reports whether the last Set of key is not in the bucket yet. Only the tidy of Run may ask: nothing is
// being written then.
func (w *WriteBehind) IsPending(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, pending := w.pending[key]
	return pending
}

// Load calls each with all values in the bucket. A value that is damaged, or for which
// each returns an error, is deleted and logged.
func (w *WriteBehind) Load(ctx context.Context, each func(key string, value []byte) error) error {
	for key, err := range w.bucket.Keys(ctx, "") {
		if err != nil {
			return fmt.Errorf("read the %s: %w", w.what, err)
		}
		value, _, err := w.bucket.Get(ctx, key)
		switch {
		case errors.Is(err, ErrNotFound):
			continue
		case err == nil:
			err = each(key, value)
		case !errors.Is(err, ErrDamaged):
			return fmt.Errorf("read the %s: %w", w.what, err)
		}
		if err != nil {
			w.log.Warn("entry dropped: it cannot be read", "of", w.what, "key", key, "err", err)
			w.Set(key, nil)
		}
	}
	return nil
}

// Run writes until ctx ends, and then writes the rest. It calls tidy, which may be nil
// and may call Set, before each write and every few minutes.
func (w *WriteBehind) Run(ctx context.Context, tidy func()) {
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
		if err := w.flush(Deferred(context.WithoutCancel(ctx))); err != nil {
			delay = retryDelay
			w.log.Warn("write failed, retrying later", "what", w.what, "err", err)
		}
	}
}

// flush writes what is pending. Values that could not be written stay pending.
func (w *WriteBehind) flush(ctx context.Context) error {
	w.mu.Lock()
	writing := w.pending
	w.pending = map[string][]byte{}
	w.mu.Unlock()
	var failed error
	for key, value := range writing {
		if err := w.write(ctx, key, value); err != nil {
			w.retry(key, value)
			failed = err
		}
	}
	return failed
}

func (w *WriteBehind) write(ctx context.Context, key string, value []byte) error {
	if value == nil {
		return w.bucket.Delete(ctx, key)
	}
	_, err := w.bucket.Put(ctx, key, value, Any)
	return err
}

// retry schedules value for the next attempt, unless there is a newer one.
func (w *WriteBehind) retry(key string, value []byte) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, newer := w.pending[key]; !newer {
		w.pending[key] = value
		w.Wake()
	}
}
