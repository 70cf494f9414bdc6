package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	pageSize  = 100  // messages in one answer, the most there can be
	asideMax  = 50   // messages not said to us that are passed over again after a crash
	maxSeen   = 1000 // chats that are looked into after a gap
	lookAtOne = 4    // of them at a time
)

// An intake takes what people say to deliver: in order within a chat, and side
// by side otherwise. Discord has no acknowledgement: what deliver does not take
// waits here, and is asked for again after a restart.
type intake struct {
	c       *Channel
	ctx     context.Context // Run's
	deliver chat.Deliver
	live    sync.WaitGroup
	looking chan struct{} // holds a value for each chat that is looked into

	mu    sync.Mutex
	lanes map[string][]job // by chat; present while its goroutine lives
	seen  map[string]*seen // by chat
}

// A job is done again until it returns nil.
type job func(context.Context) error

// A seen says how far a chat was read, and where it is.
type seen struct {
	Last   string `json:"last"` // id of the last message that was delivered or not said to us
	Guild  string `json:"guild,omitempty"`
	Parent string `json:"parent,omitempty"` // of a thread
	aside  int    // messages passed over since it was stored
}

// newIntake returns an intake that knows what was read before. Of very many
// chats it forgets those that are silent for the longest.
func (c *Channel) newIntake(ctx context.Context, deliver chat.Deliver) (*intake, error) {
	in := &intake{c: c, ctx: ctx, deliver: deliver, lanes: map[string][]job{}, seen: map[string]*seen{}, looking: make(chan struct{}, lookAtOne)}
	for id, err := range c.cfg.Seen.Keys(ctx, "") {
		if err != nil {
			return in, fmt.Errorf("read what was seen: %w", err)
		}
		val, _, err := c.cfg.Seen.Get(ctx, id)
		var s seen
		switch {
		case err == nil && json.Unmarshal(val, &s) == nil && snowflake.MatchString(s.Last):
			in.seen[id] = &s
		case err == nil, errors.Is(err, store.ErrDamaged): // P21
			c.log.Error("how far a chat was read is damaged, it is read from now on", "chat", id)
			err = c.cfg.Seen.Delete(ctx, id)
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return in, fmt.Errorf("read what was seen: %w", err)
		}
	}
	for _, id := range in.recent()[min(maxSeen, len(in.seen)):] {
		in.forget(id)
	}
	return in, nil
}

// recent returns the chats that were read, those first where somebody spoke last.
func (in *intake) recent() []string {
	var ids []string
	for id := range in.seen {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return older(in.seen[b].Last, in.seen[a].Last) })
	return ids
}

// older compares the ids of messages.
func older(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// hear takes an event of the gateway. It returns at once.
func (in *intake) hear(kind string, data json.RawMessage) {
	switch kind {
	case "READY":
		in.c.log.Info("connected to discord")
		in.catchUp()
	case "message_create", "message_update":
		var w message
		if err := json.Unmarshal(data, &w); err != nil || !snowflake.MatchString(w.Channel) || !snowflake.MatchString(w.ID) {
			in.c.log.Error("message not understood", "err", err) // P4
			return
		}
		in.add(w.Channel, func(ctx context.Context) error { return in.take(ctx, w, kind == "message_update") })
	case "interaction_create":
		var i interaction
		if err := json.Unmarshal(data, &i); err != nil {
			in.c.log.Error("interaction not understood", "err", err)
			return
		}
		since := time.Now()
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.ctx.Err() == nil {
			in.live.Go(func() { in.interact(i, since) })
		}
	}
}

// end returns when everything has ended. in.ctx has, and nothing more is heard.
func (in *intake) end() {
	in.mu.Lock() // whoever saw in.ctx still on has been counted
	defer in.live.Wait()
	in.mu.Unlock()
}

// add puts j at the end of the chat's lane.
func (in *intake) add(id string, j job) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.ctx.Err() != nil {
		return
	}
	jobs, running := in.lanes[id]
	in.lanes[id] = append(jobs, j)
	if !running {
		in.live.Go(func() { in.work(id) })
	}
}

// work does the jobs of a lane until there are none.
func (in *intake) work(id string) {
	for {
		in.mu.Lock()
		jobs := in.lanes[id]
		if len(jobs) == 0 || in.ctx.Err() != nil {
			delete(in.lanes, id)
			in.mu.Unlock()
			return
		}
		in.lanes[id] = jobs[1:]
		in.mu.Unlock()
		wait := backoff{least: in.c.haste}
		for in.ctx.Err() == nil {
			err := jobs[0](in.ctx)
			if err == nil {
				break
			}
			if in.ctx.Err() == nil {
				in.c.log.Error("message not kept yet", "chat", id, "err", in.c.plainly(err))
				sleep(in.ctx, min(wait.next(err), 30*time.Second))
			}
		}
	}
}

// take delivers w if it is said to us, and notes that the chat was read so far.
// One over which the house breaks down is passed over: it would again (P4).
func (in *intake) take(ctx context.Context, w message, edited bool) (err error) {
	var said bool
	crash := guard(func() {
		var m chat.Message
		if m, said, err = in.c.read(ctx, w, edited); err == nil && said {
			err = in.deliver(ctx, m)
		}
	})
	if crash != nil {
		in.c.log.Error("message passed over", "chat", w.Channel, "message", w.ID, "err", crash)
	} else if err != nil {
		return err
	}
	if !edited {
		in.note(ctx, w, said)
	}
	return nil
}

// note stores how far the chat was read. Of what is not said to us it does so now and then.
func (in *intake) note(ctx context.Context, w message, said bool) {
	in.mu.Lock()
	s := in.seen[w.Channel]
	if s == nil && said {
		s = &seen{Last: w.ID, Guild: w.Guild, Parent: in.c.parent(w.Channel)}
		in.seen[w.Channel] = s
	}
	if s == nil || !said && older(w.ID, s.Last) <= 0 {
		in.mu.Unlock()
		return
	}
	if older(w.ID, s.Last) > 0 {
		s.Last = w.ID
	}
	s.aside++
	store := said || s.aside >= asideMax
	if store {
		s.aside = 0
	}
	val, err := json.Marshal(s)
	in.mu.Unlock()
	if store && err == nil {
		if err = in.c.keep(ctx, w.Channel, val); err != nil { // it only would be delivered twice (P2)
			in.c.log.Warn("how far a chat was read is not kept", "chat", w.Channel, "err", err)
		}
	}
}

func (c *Channel) keep(ctx context.Context, id string, val []byte) error {
	_, err := c.cfg.Seen.Put(context.WithoutCancel(ctx), id, val, store.Any)
	return err
}

// forget is for chats that are gone.
func (in *intake) forget(id string) {
	in.mu.Lock()
	delete(in.seen, id)
	in.mu.Unlock()
	if err := in.c.cfg.Seen.Delete(in.ctx, id); err != nil {
		in.c.log.Warn("chat not forgotten", "chat", id, "err", err)
	}
}

// catchUp asks what was said in the chats that have a session since they were
// last read (P3). What is said from now on waits behind it.
func (in *intake) catchUp() {
	in.mu.Lock()
	ids := in.recent()
	in.mu.Unlock()
	for _, id := range ids {
		in.add(id, func(ctx context.Context) error { return in.lookInto(ctx, id) })
	}
}

func (in *intake) lookInto(ctx context.Context, id string) error {
	select {
	case in.looking <- struct{}{}:
		defer func() { <-in.looking }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		in.mu.Lock()
		s := in.seen[id]
		if s == nil {
			in.mu.Unlock()
			return nil
		}
		at := *s
		in.mu.Unlock()
		in.c.learn(id, at.Guild, at.Parent)
		var page []json.RawMessage
		err := in.c.call(ctx, "GET", fmt.Sprintf("/channels/%s/messages?limit=%d&after=%s", id, pageSize, at.Last), nil, &page)
		switch {
		case said(err, 404):
			in.forget(id)
			return nil
		case said(err, 403):
			in.c.log.Warn("discord does not show what was said meanwhile", "chat", id)
			return nil
		case err != nil:
			return fmt.Errorf("ask what was said meanwhile: %w", err)
		}
		last := at.Last
		for _, w := range in.c.inOrder(page) {
			w.Channel, w.Guild, last = id, at.Guild, w.ID
			if err := in.take(ctx, w, false); err != nil {
				return err
			}
		}
		if len(page) < pageSize || older(last, at.Last) <= 0 {
			return nil
		}
	}
}

// inOrder reads the messages of page, oldest first. What is none is left out (P4).
func (c *Channel) inOrder(page []json.RawMessage) (ms []message) {
	for _, raw := range page {
		var w message
		if err := json.Unmarshal(raw, &w); err != nil || !snowflake.MatchString(w.ID) {
			c.log.Error("message not understood", "err", err)
			continue
		}
		ms = append(ms, w)
	}
	slices.SortFunc(ms, func(a, b message) int { return older(a.ID, b.ID) })
	return ms
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
