package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"sync"

	"parley/chat"
	"parley/store"
)

// takeAll takes each of raws, in order within a chat and at the same time
// otherwise, and tries again for what could not be kept until all is, or ctx
// ends. It returns the highest update id.
func (c *Channel) takeAll(ctx context.Context, raws []json.RawMessage, deliver chat.Deliver) (last int64) {
	var order []int64
	lanes := map[int64][]parcel{}
	for _, raw := range raws {
		p := open(raw)
		last = max(last, p.id)
		if lanes[p.chat] == nil {
			order = append(order, p.chat)
		}
		lanes[p.chat] = append(lanes[p.chat], p)
	}
	var all sync.WaitGroup
	for _, id := range order {
		all.Go(func() {
			var wait backoff
			for lane := lanes[id]; len(lane) > 0 && ctx.Err() == nil; {
				err := c.take(ctx, lane[0], deliver)
				if err == nil {
					lane = lane[1:]
					wait.reset()
				} else if ctx.Err() == nil {
					d := wait.next(err)
					c.log.Error("update not kept, telegram keeps it meanwhile", "update", lane[0].id, "err", err, "again in", d)
					sleep(ctx, d)
				}
			}
		})
	}
	all.Wait()
	return last
}

// A parcel is an update as it came, and what is in it.
type parcel struct {
	id, chat int64
	raw      json.RawMessage
	update   update
	err      error // it cannot be understood
}

func open(raw json.RawMessage) parcel {
	p := parcel{raw: raw}
	if p.err = json.Unmarshal(raw, &p.update); p.err != nil {
		p.id = idIn(raw)
		return p
	}
	p.id = p.update.ID
	if m := p.update.any(); m != nil {
		p.chat = m.Chat.ID
	}
	return p
}

// take delivers p, or keeps it in Dead if it cannot be understood (P4). An
// error means that p is not kept anywhere.
func (c *Channel) take(ctx context.Context, p parcel, deliver chat.Deliver) error {
	var m chat.Message
	var said bool
	var err error
	if p.err == nil {
		p.err = guard(func() { m, said, err = c.read(ctx, p.update) })
	}
	if p.err != nil {
		c.log.Error("update not understood, kept for inspection", "update", p.id, "err", p.err)
		if _, err := c.cfg.Dead.Put(ctx, strconv.FormatInt(p.id, 10), p.raw, store.Any); err != nil {
			return fmt.Errorf("keep dead update: %w", err)
		}
		return nil
	}
	if err != nil || !said {
		return err
	}
	return deliver(ctx, m)
}

// guard makes a panic of f an error.
func guard(f func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	f()
	return nil
}
