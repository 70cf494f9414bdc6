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

// An Aside is a message that was put aside because the process crashed over it
// again and again (P8), or because it cannot be read (P4).
type Aside struct {
	Key     string
	Message chat.Message // the zero Message if it cannot be read
}

// Aside returns the messages that were put aside.
func (p *Pool) Aside(ctx context.Context) (all []Aside, err error) {
	for key, err := range p.parked.Keys(ctx, "") {
		a := Aside{Key: key}
		var b []byte
		if err == nil {
			b, _, err = p.parked.Get(ctx, key)
		}
		switch {
		case err == nil:
			_ = json.Unmarshal(b, &a.Message) // or it cannot be read
		case errors.Is(err, store.ErrNotFound):
			continue
		case !errors.Is(err, store.ErrDamaged):
			return nil, fmt.Errorf("list messages put aside: %w", err)
		}
		all = append(all, a)
	}
	return all, nil
}

// Again gives the message put aside under key another try. It is answered as
// if it were said now, under a key of its own: the old one was answered.
// store.ErrNotFound says that there is none.
func (p *Pool) Again(ctx context.Context, key string) error {
	b, _, err := p.parked.Get(ctx, key)
	var m chat.Message
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
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

// Dismiss forgets the message put aside under key. store.ErrNotFound says that
// there is none.
func (p *Pool) Dismiss(ctx context.Context, key string) error {
	if _, _, err := p.parked.Get(ctx, key); errors.Is(err, store.ErrNotFound) {
		return err
	}
	return p.parked.Delete(ctx, key)
}
