// Package deadletter keeps the replies that could not be sent, so that an owner can
// retry or dismiss them. Those that no person waits for are retried automatically.
package deadletter

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	maxLetters    = 1000
	retryInterval = time.Minute // between two looks whether a reply is to be retried
	longestSearch = time.Hour   // between two searches for such replies, if none is due
)

// retryDelays are the ages at which a dead letter that no person waits for is
// retried automatically (P26). Replies that a person waited for are not retried:
// by then the person has asked again, or given up.
var retryDelays = []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour}

// A Config is what Letters work with.
type Config struct {
	Store store.Store
	Log   *slog.Logger
	// Fate is called for each reply that no person waits for, before it is kept.
	Fate func(ctx context.Context, r chat.Reply, tries int, reason string) error
	// Withdraw ends a question that cannot be asked.
	Withdraw func(ctx context.Context, question string) error
	// Send sends r once more. If it fails again, it comes back with so many tries.
	Send func(ctx context.Context, r chat.Reply, tries int) error
}

// Letters are the replies that could not be sent (P10). They implement
// [chat.DeadLetters]; their keys sort by time.
type Letters struct {
	cfg   Config
	table store.Table[Letter]

	added atomic.Int64 // letters, since the start
	// What the last search for replies to retry has found, if nothing was due: how many were added
	// by then, and when the first is due. Only RetryRegularly uses it.
	searched int64
	due      time.Time
}

// A Letter is a reply that could not be sent, as the store has it.
type Letter struct {
	Reply  chat.Reply `json:"reply"`
	Reason string     `json:"reason"`
	Time   time.Time  `json:"time"`            // set by Add
	Tries  int        `json:"tries,omitempty"` // how often it was retried automatically
}

// New returns the dead letters in the store. A damaged one is deleted.
func New(cfg Config) *Letters {
	bucket := cfg.Store.Bucket(store.BucketDeadReplies)
	return &Letters{cfg: cfg, table: store.NewTable(bucket, store.Forget[Letter](cfg.Log, "dead letter"))}
}

// isRetried reports whether the reply will be retried automatically.
func (l Letter) isRetried() bool { return l.Reply.Unasked && l.Tries < len(retryDelays) }

// List implements [chat.DeadLetters].
func (l *Letters) List(ctx context.Context) (all []chat.DeadLetter, err error) {
	for e, err := range l.table.Each(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		all = append(all, chat.DeadLetter{
			Key:     e.Key,
			Reply:   e.Value.Reply,
			Reason:  e.Value.Reason,
			Time:    e.Value.Time,
			Retried: e.Value.isRetried(),
		})
	}
	return all, nil
}

// Retry sends the reply under key again: once, however often it is called. It
// returns store.ErrNotFound for an unknown key.
func (l *Letters) Retry(ctx context.Context, key string) error {
	return l.retry(ctx, key, len(retryDelays))
}

// retry sends the reply under key again. Should it become a dead letter once more,
// that one has so many tries.
func (l *Letters) retry(ctx context.Context, key string, tries int) error {
	dead, _, err := l.table.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("send dead letter: %w", err)
	}
	dead.Reply.ID = "again:" + key // the outbox or the network may have seen the old one
	dead.Reply.Ask = nil           // nobody waits for the answer any more
	if err := l.cfg.Send(ctx, dead.Reply, tries); err != nil {
		return err
	}
	return l.Dismiss(ctx, key)
}

// Dismiss implements [chat.DeadLetters].
func (l *Letters) Dismiss(ctx context.Context, key string) error {
	if err := l.table.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete dead letter: %w", err)
	}
	return nil
}

// RetryRegularly retries the replies that no person waits for, until ctx ends.
func (l *Letters) RetryRegularly(ctx context.Context) {
	ticker := time.NewTicker(retryInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if err := l.retryDue(ctx); err != nil && ctx.Err() == nil {
			l.cfg.Log.Warn("dead letters not retried", "err", err)
		}
	}
}

// retryDue retries what is due. All letters are read only if one was added since the last time, or is due.
func (l *Letters) retryDue(ctx context.Context) error {
	now, added := time.Now().Round(0), l.added.Load()
	if added == l.searched && now.Before(l.due) {
		return nil
	}
	next := now.Add(longestSearch)
	var due []store.Entry[Letter]
	for e, err := range l.table.Each(ctx, "") {
		if err != nil {
			return fmt.Errorf("list dead letters: %w", err)
		}
		if !e.Value.isRetried() {
			continue
		}
		at := e.Value.Time.Add(retryDelays[e.Value.Tries])
		if now.Before(at) {
			next = earlier(next, at)
			continue
		}
		due = append(due, e)
	}
	if len(due) == 0 {
		l.searched, l.due = added, next
	}
	var errs []error
	for _, e := range due {
		errs = append(errs, l.retry(ctx, e.Key, e.Value.Tries+1))
	}
	return errors.Join(errs...)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// Add keeps a reply that could not be sent, unless it is kept already, and ends the
// question it asks. If no person waits for the reply, its fate is reported first.
func (l *Letters) Add(ctx context.Context, dead Letter) error {
	if dead.Reply.Unasked {
		if err := l.cfg.Fate(ctx, dead.Reply, dead.Tries, dead.Reason); err != nil {
			return err
		}
	}
	return l.keep(ctx, dead)
}

// keep is Add without the report of the reply's fate.
func (l *Letters) keep(ctx context.Context, dead Letter) error {
	r := dead.Reply
	if r.Ask != nil {
		if err := l.cfg.Withdraw(ctx, r.Ask.ID); err != nil {
			return err
		}
	}
	sum := fmt.Sprintf("%.4x", sha256.Sum256([]byte(r.ID)))
	if kept, err := l.has(ctx, r, sum); kept || err != nil {
		return err
	}
	dead.Time = time.Now()
	key := fmt.Sprintf("%016x%s", dead.Time.UnixNano(), sum)
	if err := l.table.Set(ctx, key, dead); err != nil {
		return fmt.Errorf("keep dead letter: %w", err)
	}
	l.added.Add(1)
	l.cfg.Log.Error("reply became a dead letter", "chat", r.To.Session(), "id", r.ID, "reason", dead.Reason)
	if err := l.trim(ctx); err != nil {
		l.cfg.Log.Error("old dead letters not deleted", "err", err)
	}
	return nil
}

// has reports whether r was kept before, as it may have been before a crash. The
// keys of replies with its ID end with sum.
func (l *Letters) has(ctx context.Context, r chat.Reply, sum string) (bool, error) {
	for key, err := range l.table.Keys(ctx, "") {
		if err != nil {
			return false, err
		}
		if !strings.HasSuffix(key, sum) {
			continue
		}
		kept, _, err := l.table.Get(ctx, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return false, err
		}
		if kept.Reply.ID == r.ID && kept.Reply.To == r.To {
			return true, nil
		}
	}
	return false, nil
}

// trim deletes the oldest dead letters if there are too many.
func (l *Letters) trim(ctx context.Context) error {
	var keys []string
	for key, err := range l.table.Keys(ctx, "") {
		if err != nil {
			return err
		}
		keys = append(keys, key)
	}
	surplus := max(0, len(keys)-maxLetters)
	for _, key := range keys[:surplus] {
		l.cfg.Log.Error("dead letter deleted, because there are too many", "key", key)
		if err := l.Dismiss(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// FromOutboxes makes dead letters of all that waits in the outboxes among queues,
// as when the store is a backup: what waited when it was made has been sent since
// (P20). Nobody else may be at work on the store.
func (l *Letters) FromOutboxes(ctx context.Context, queues []string, reason string) (n int, err error) {
	for _, name := range queues {
		channel, ok := strings.CutPrefix(name, store.OutboxPrefix)
		if !ok {
			continue
		}
		for item, err := range store.Waiting(ctx, l.cfg.Store.Queue(store.QueueOutbox(channel))) {
			if err != nil {
				return n, err
			}
			var r chat.Reply
			if json.Unmarshal(item.Body, &r) != nil {
				r = chat.Reply{ID: item.ID, To: chat.Address{Channel: channel}}
			}
			dead := Letter{Reply: r, Reason: reason, Tries: len(retryDelays)}
			if err := l.keep(ctx, dead); err != nil {
				return n, err
			}
			if err := item.Done(ctx); err != nil {
				return n, err
			}
			n++
		}
	}
	return n, nil
}
