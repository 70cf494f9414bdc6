package telegram

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"strconv"
	"sync"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/panics"
)

// A parcel is an update as it came, and what is in it.
type parcel struct {
	raw    json.RawMessage
	update update
	err    error // it cannot be understood
}

var updateID = regexp.MustCompile(`"update_id"\s*:\s*([0-9]{1,18})\b`)

// open reads raw, or of what is no JSON at least the id.
func open(raw json.RawMessage) parcel {
	p := parcel{raw: raw}
	p.err = json.Unmarshal(raw, &p.update)
	if id := updateID.FindSubmatch(raw); p.err != nil && p.update.ID == 0 && id != nil {
		p.update.ID, _ = strconv.ParseInt(string(id[1]), 10, 64)
	}
	return p
}

// takeAll takes each of raws, in order within a chat and at the same time
// otherwise, and tries again for what could not be kept until all is, or ctx
// ends. All are from after that moment, unless it is 0. It returns the id of the
// last update, 0 if none has one.
func (c *Channel) takeAll(ctx context.Context, raws []json.RawMessage, after uint64, deliver chat.Deliver) (last int64) {
	lanes, before := map[int64][]parcel{}, map[int64]int64{}
	for _, raw := range raws {
		p := open(raw)
		last = cmp.Or(p.update.ID, last)
		c.noteMessage(p.update, after)
		var lane int64
		if m := p.update.any(); m != nil {
			if m.MovedFrom != 0 { // what was said before and what is said now is one chat's
				before[m.Chat.ID] = m.MovedFrom
			}
			lane = cmp.Or(before[m.Chat.ID], m.Chat.ID)
		}
		lanes[lane] = append(lanes[lane], p)
	}
	var all sync.WaitGroup
	for _, lane := range lanes {
		all.Go(func() { c.takeLane(ctx, lane, deliver) })
	}
	all.Wait()
	return last
}

// noteMessage notes the number of the message that u brings, which got it after
// that moment. The message of a button that was pressed is our own: it may be
// one that is in doubt.
func (c *Channel) noteMessage(u update, after uint64) {
	switch {
	case u.Message != nil:
		c.numbers.note(u.Message.Chat.ID, after, u.Message.ID)
	case u.Edited != nil: // which has had its number for long
		c.numbers.note(u.Edited.Chat.ID, 0, u.Edited.ID)
	}
}

func (c *Channel) takeLane(ctx context.Context, lane []parcel, deliver chat.Deliver) {
	wait := pauses
	for len(lane) > 0 && ctx.Err() == nil {
		err := c.take(ctx, lane[0], deliver)
		if err == nil {
			lane, wait = lane[1:], pauses
		} else if ctx.Err() == nil {
			c.SetHealth(err)
			c.log.Error("update not kept, telegram keeps it meanwhile", "update", lane[0].update.ID, "err", err)
			channels.Sleep(ctx, wait.Next(err))
		}
	}
}

// take delivers p, or keeps it in Dead if it cannot be understood (P4), or the
// house breaks down over it: it would again, at each start. An error means that
// p is not kept anywhere.
func (c *Channel) take(ctx context.Context, p parcel, deliver chat.Deliver) (err error) {
	if p.err == nil {
		p.err = panics.Try(func() error {
			err = c.pass(ctx, p.update, deliver)
			return nil
		})
	}
	switch {
	case p.err != nil:
		return c.keepDeadLetter(ctx, p)
	case err == nil && p.update.Press != nil:
		c.release(ctx, p.update.Press.ID)
	}
	return err
}

// pass delivers what u says, if it says anything to us.
func (c *Channel) pass(ctx context.Context, u update, deliver chat.Deliver) error {
	m, said, err := c.read(ctx, u)
	if err != nil || !said {
		return err
	}
	return deliver(ctx, m)
}

func (c *Channel) keepDeadLetter(ctx context.Context, p parcel) error {
	c.log.Error("update not understood, kept for inspection", "update", p.update.ID, "err", p.err)
	return network.KeepDeadLetter(ctx, c.cfg.Dead, p.raw)
}
