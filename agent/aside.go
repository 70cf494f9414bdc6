package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"parley/chat"
	"parley/store"
)

// An Aside is a message that was put aside: the process crashed over it again
// and again (P8), it cannot be read (P4), or it comes from a backup (P20).
type Aside struct {
	Key     string
	Message chat.Message // the zero Message if it cannot be read
	ForNow  bool         // it is tried again by itself, once the process has been up for five minutes
}

// Aside returns the messages that were put aside, in the order of their keys,
// and then those that are only put aside for now.
func (p *Pool) Aside(ctx context.Context) (all []Aside, err error) {
	for e, err := range p.deadMessages.Each(ctx, "") {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, fmt.Errorf("list messages put aside: %w", err)
		}
		all = append(all, Aside{Key: e.Key, Message: e.Value})
	}
	for _, is := range p.holds.all() {
		if is.Model != "" || is.free {
			continue
		}
		a := Aside{Key: is.Key, ForNow: true}
		if is.item != nil {
			_ = json.Unmarshal(is.item.Body, &a.Message) // it was read when it was put aside
		}
		all = append(all, a)
	}
	return all, nil
}

// Dismiss lets go the message put aside under key, which may be gone already.
// One that is put aside for now is given up.
func (p *Pool) Dismiss(ctx context.Context, key string) error {
	if p.holds.release(true, func(is held) bool { return is.Key == key && is.Model == "" }) > 0 {
		return nil
	}
	return p.parked.Delete(ctx, key)
}

// Again gives the message put aside under key another try. It is answered as
// if it were said now, under a key of its own: the old one was answered.
// store.ErrNotFound says that there is none.
func (p *Pool) Again(ctx context.Context, key string) error {
	if p.holds.release(false, func(is held) bool { return is.Key == key && is.Model == "" }) > 0 {
		return nil
	}
	m, _, err := p.deadMessages.Get(ctx, key)
	if err == nil {
		m.Account, m.Time = m.Account+"+", time.Now()
		err = p.Deliver(ctx, m)
	}
	if err == nil {
		err = p.parked.Delete(ctx, key)
	}
	if err != nil {
		return fmt.Errorf("try %s again: %w", key, err)
	}
	return nil
}

// Shelve puts aside all that waits in the inbox of s, as when s is a backup:
// what waited when it was made has been answered since (P20). No Pool may be
// at work on s.
func Shelve(ctx context.Context, s store.Store) (n int, err error) {
	inbox, aside := s.Queue(store.QueueInbox), s.Bucket(store.BucketDeadMessages)
	for item, err := range store.Waiting(ctx, inbox) {
		if err != nil {
			return n, err
		}
		if _, err := aside.Put(ctx, item.ID, item.Body, store.Any); err != nil {
			return n, fmt.Errorf("put aside %s: %w", item.ID, err)
		}
		if err := item.Done(ctx); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}
