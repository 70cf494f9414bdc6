package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"parley/chat"
)

// Aside returns the messages that were put aside, by their keys. Of one that
// cannot be read (P4), which is why, the zero Message is returned.
func (p *Pool) Aside(ctx context.Context) (map[string]chat.Message, error) {
	all := map[string]chat.Message{}
	for key, err := range p.parked.Keys(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list messages put aside: %w", err)
		}
		b, _, _ := p.parked.Get(ctx, key) // none if it is damaged
		var m chat.Message
		_ = json.Unmarshal(b, &m) // or it cannot be read
		all[key] = m
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
