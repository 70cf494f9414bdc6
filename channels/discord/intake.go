package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/channels"
	"parley/chat"
	"parley/store"
)

const (
	pageSize   = 100  // messages in one answer, the most there can be
	asideMax   = 50   // messages not said to us that are passed over again after a crash
	maxSeen    = 1000 // chats that are looked into after a gap
	lookAtOne  = 4    // of them at a time
	maxWaiting = 100  // jobs of one chat
)

// An intake takes what people say to deliver: in order within a chat, and side
// by side otherwise. Discord has no acknowledgement: what deliver does not take
// waits here, and is asked for again if it is too much, or after a restart.
type intake struct {
	c       *Channel
	ctx     context.Context // Run's
	deliver chat.Deliver
	live    sync.WaitGroup
	looking chan struct{} // holds a value for each chat that is looked into

	mu    sync.Mutex
	lanes map[string][]job // by chat; present while its goroutine lives
	full  map[string]bool  // by chat: its lane ends in a job that asks for the rest
	seen  map[string]*seen // by chat
}

// A job is done again until it returns nil.
type job func(context.Context) error

// A seen says how far a chat was read, and where it is.
type seen struct {
	Last  string `json:"last"` // id of the last message that was delivered or not said to us
	Guild string `json:"guild,omitempty"`
	aside int    // messages passed over since it was stored
}

// newIntake returns an intake that knows what was read before.
func (c *Channel) newIntake(ctx context.Context, deliver chat.Deliver) (*intake, error) {
	in := &intake{c: c, ctx: ctx, deliver: deliver, lanes: map[string][]job{}, full: map[string]bool{}, seen: map[string]*seen{}, looking: make(chan struct{}, lookAtOne)}
	err := channels.Sift(ctx, c.cfg.Seen, c.log, func(id string, s seen) bool { // a damaged one is read from now on (P21)
		ok := snowflake.MatchString(s.Last)
		if ok {
			in.seen[id] = &s
		}
		return ok
	})
	if err != nil {
		return in, fmt.Errorf("read what was seen: %w", err)
	}
	return in, nil
}

// older compares the ids of messages.
func older(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// before returns the id that comes before the one of a message.
func before(id string) string {
	n, _ := strconv.ParseUint(id, 10, 64)
	return strconv.FormatUint(max(n, 1)-1, 10)
}

// hear takes an event of the gateway. It returns at once.
func (in *intake) hear(kind string, data json.RawMessage) {
	switch kind {
	case "READY":
		in.c.log.Info("connected to discord")
		in.catchUp()
	case "MESSAGE_CREATE", "MESSAGE_UPDATE":
		w, err := messageIn(data)
		edited := kind == "MESSAGE_UPDATE"
		again := func(ctx context.Context) error { return in.ask(ctx, w.Channel, w.Guild, before(w.ID)) }
		switch {
		case err != nil:
			in.addDead(data, err)
		case edited: // which cannot be asked for
			in.add(w.Channel, func(ctx context.Context) error { return in.take(ctx, w, true) }, nil)
		default:
			in.add(w.Channel, func(ctx context.Context) error { return in.take(ctx, w, false) }, again)
		}
	case "INTERACTION_CREATE":
		var i interaction
		if err := json.Unmarshal(data, &i); err != nil {
			in.addDead(data, err)
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

// add puts j at the end of the chat's lane. In a lane that is full, again stands
// for j and all that follow: it asks for them. Where it is nil, j is dropped.
func (in *intake) add(id string, j, again job) {
	in.mu.Lock()
	defer in.mu.Unlock()
	jobs, running := in.lanes[id]
	switch full := len(jobs) >= maxWaiting; {
	case in.ctx.Err() != nil, in.full[id]:
		return
	case full && again == nil:
		in.c.log.Error("event dropped, there are too many that wait", "chat", id)
		return
	case full:
		in.full[id] = true
		j = func(ctx context.Context) error {
			in.mu.Lock()
			delete(in.full, id)
			in.mu.Unlock()
			return again(ctx)
		}
	}
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
		wait := in.c.pauses()
		for err := jobs[0](in.ctx); err != nil && in.ctx.Err() == nil; err = jobs[0](in.ctx) {
			in.c.log.Error("message not kept yet", "chat", id, "err", in.c.plainly(err))
			channels.Sleep(in.ctx, wait.Next(in.c.refused("", err)))
		}
	}
}

// take delivers w if it is said to us, and notes that the chat was read so far.
// One over which the house breaks down goes to Dead: it would again (P4).
func (in *intake) take(ctx context.Context, w message, edited bool) (err error) {
	var said bool
	crash := channels.Safely(func() error {
		var m chat.Message
		if m, said, err = in.c.read(ctx, w, edited); err == nil && said {
			err = in.deliver(ctx, m)
		}
		return nil
	})
	if crash != nil {
		err = in.bury(ctx, w.raw, crash)
	}
	if err == nil && !edited {
		in.note(ctx, w, said)
	}
	return err
}

// addDead keeps an event that cannot be understood.
func (in *intake) addDead(raw json.RawMessage, why error) {
	in.add("", func(ctx context.Context) error { return in.bury(ctx, raw, why) }, nil)
}

// bury keeps raw for inspection (P4).
func (in *intake) bury(ctx context.Context, raw json.RawMessage, why error) error {
	in.c.log.Error("event not understood, kept for inspection", "err", why)
	return channels.Bury(ctx, in.c.cfg.Dead, raw)
}

// note stores how far the chat was read. Of what is not said to us it does so now and then.
func (in *intake) note(ctx context.Context, w message, said bool) {
	in.mu.Lock()
	s := in.seen[w.Channel]
	if s == nil && said {
		s = &seen{Last: w.ID, Guild: w.Guild}
		in.seen[w.Channel] = s
	}
	if s == nil || older(w.ID, s.Last) < 0 {
		in.mu.Unlock()
		return
	}
	s.Last = w.ID
	s.aside++
	keep := said || s.aside >= asideMax
	if keep {
		s.aside = 0
	}
	now := *s
	in.mu.Unlock()
	if !keep {
		return
	}
	if _, err := store.Save(context.WithoutCancel(ctx), in.c.cfg.Seen, w.Channel, now, store.Any); err != nil { // it only would be delivered twice (P2)
		in.c.log.Warn("how far a chat was read is not kept", "chat", w.Channel, "err", err)
	}
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
// last read (P3), of very many only in those where somebody spoke last. What is
// said from now on waits behind it.
func (in *intake) catchUp() {
	in.mu.Lock()
	var ids []string
	for id := range in.seen {
		ids = append(ids, id)
	}
	slices.SortFunc(ids, func(a, b string) int { return older(in.seen[b].Last, in.seen[a].Last) })
	in.mu.Unlock()
	for _, id := range ids[:min(len(ids), maxSeen)] {
		ask := func(ctx context.Context) error {
			in.mu.Lock()
			var at seen
			if s := in.seen[id]; s != nil {
				at = *s
			}
			in.mu.Unlock()
			if at.Last == "" { // forgotten meanwhile
				return nil
			}
			return in.ask(ctx, id, at.Guild, at.Last)
		}
		in.add(id, ask, ask)
	}
}

// ask takes what was said in the chat after that message.
func (in *intake) ask(ctx context.Context, id, guild, after string) error {
	in.looking <- struct{}{}
	defer func() { <-in.looking }()
	for last := ""; after != last; {
		var page []json.RawMessage
		err := in.c.call(ctx, "GET", fmt.Sprintf("/channels/%s/messages?limit=%d&after=%s", id, pageSize, after), nil, &page)
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
		last = after
		ms, err := in.inOrder(ctx, page)
		for _, w := range ms {
			if w.Guild = guild; err == nil {
				err, after = in.take(ctx, w, false), w.ID
			}
		}
		if err != nil || len(page) < pageSize {
			return err
		}
	}
	return nil
}

// inOrder reads the messages of page, oldest first. What is none is kept in Dead (P4).
func (in *intake) inOrder(ctx context.Context, page []json.RawMessage) (ms []message, err error) {
	for _, raw := range page {
		w, bad := messageIn(raw)
		if bad == nil {
			ms = append(ms, w)
		} else if err = in.bury(ctx, raw, bad); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(ms, func(a, b message) int { return older(a.ID, b.ID) })
	return ms, nil
}
