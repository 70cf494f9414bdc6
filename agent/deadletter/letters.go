// Package deadletter keeps the messages that could not be answered, so that none
// is lost and none keeps others waiting. The Guard finds out over which message
// the process dies. Suspended messages are tried again by themselves, once the
// process has proved healthy or their model is back. Letters are those that only
// an owner can have answered or dismissed.
package deadletter

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/store"
)

// reason is what owners read. No record says which of these it was.
const reason = "the process ended over it, or it comes from a backup"

// Letters are the messages of a store that could not be answered: the process
// crashed over them again and again (P8), they cannot be read (P4), or they come
// from a backup (P20). Messages that are suspended because the process died over
// them are among them; these are tried again once the process has been up for five
// minutes. Letters implements [chat.DeadLetters].
type Letters struct {
	bucket    store.Bucket
	readable  store.Table[chat.Message]
	suspended *Suspended
	deliver   chat.Deliver
}

// NewLetters returns the dead letters of s. Those to be tried again go to deliver.
func NewLetters(s store.Store, suspended *Suspended, deliver chat.Deliver) *Letters {
	bucket := s.Bucket(store.BucketDeadMessages)
	readable := store.NewTable(bucket, store.Report[chat.Message])
	return &Letters{bucket: bucket, readable: readable, suspended: suspended, deliver: deliver}
}

// Put makes the message key, encoded as body, a dead letter.
func (l *Letters) Put(ctx context.Context, key string, body []byte) error {
	_, err := l.bucket.Put(ctx, key, body, store.Any)
	return err
}

// List returns the dead letters in the order of their keys, and then the
// messages that are suspended because the process died over them.
func (l *Letters) List(ctx context.Context) (all []chat.DeadLetter, err error) {
	for e, err := range l.readable.Each(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, fmt.Errorf("list dead letters: %w", err)
		}
		all = append(all, newLetter(e.Key, e.Value, false))
	}
	for _, m := range l.suspended.all() {
		if m.Model != "" || m.released {
			continue
		}
		var suspended chat.Message
		if m.item != nil {
			_ = json.Unmarshal(m.item.Body, &suspended) // it could be read when it was suspended
		}
		all = append(all, newLetter(m.Key, suspended, true))
	}
	return all, nil
}

func newLetter(key string, m chat.Message, retried bool) chat.DeadLetter {
	return chat.DeadLetter{Key: key, Message: m, Reason: reason, Time: m.Time, Retried: retried}
}

// Dismiss removes the dead letter key, which may be gone already. A message that
// is suspended becomes a dead letter.
func (l *Letters) Dismiss(ctx context.Context, key string) error {
	if l.suspended.release(true, diedOver(key)) > 0 {
		return nil
	}
	return l.bucket.Delete(ctx, key)
}

// Retry has the message key answered as if it were said now. A dead letter gets
// a key of its own, because the old one was answered. store.ErrNotFound says that
// there is no such message.
func (l *Letters) Retry(ctx context.Context, key string) error {
	if l.suspended.release(false, diedOver(key)) > 0 {
		return nil
	}
	m, _, err := l.readable.Get(ctx, key)
	if err != nil {
		return fmt.Errorf("try %s again: %w", key, err)
	}
	m.Account += "+"
	m.Time = time.Now()
	if err := l.deliver(ctx, m); err != nil {
		return fmt.Errorf("try %s again: %w", key, err)
	}
	if err := l.bucket.Delete(ctx, key); err != nil {
		return fmt.Errorf("try %s again: %w", key, err)
	}
	return nil
}

// diedOver selects the message key if it is suspended because the process died over it.
func diedOver(key string) func(message) bool {
	return func(m message) bool { return m.Key == key && m.Model == "" }
}

// FromInbox makes dead letters of all that waits in the inbox of s, as when s is
// a backup: what waited when it was made has been answered since (P20). Nobody
// else may be at work on s.
func FromInbox(ctx context.Context, s store.Store) (n int, err error) {
	inbox := s.Queue(store.QueueInbox)
	letters := NewLetters(s, nil, nil)
	for item, err := range store.Waiting(ctx, inbox) {
		if err != nil {
			return n, err
		}
		if err := letters.Put(ctx, item.ID, item.Body); err != nil {
			return n, fmt.Errorf("make %s a dead letter: %w", item.ID, err)
		}
		if err := item.Done(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
