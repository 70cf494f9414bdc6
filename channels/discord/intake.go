package discord

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/panics"
	"parley/store"
)

const (
	pageSize   = 100  // messages in one answer, the most there can be
	asideMax   = 50   // messages not said to us that are passed over again after a crash
	maxSeen    = 1000 // chats that are looked into at once after a gap; the others when somebody writes there
	lookAtOne  = 4    // of them at a time
	maxWaiting = 100  // jobs of one chat
)

// An intake takes what people say to deliver: in order within a chat, and side
// by side otherwise. Discord has no acknowledgement: what deliver does not take
// waits here, and is asked for again if it is too much, or after a restart.
//
// In each new session, something may have been missed in every chat. It is read
// back before anything later of that chat is delivered.
type intake struct {
	c       *Channel
	ctx     context.Context // Run's
	deliver chat.Deliver
	tracker *tracker
	live    sync.WaitGroup
	looking chan struct{} // holds a value for each chat that is looked into

	mu      sync.Mutex
	lanes   map[string][]job // by chat; present while its goroutine lives
	full    map[string]bool  // by chat: its lane ends in a job that asks for the rest
	seen    map[string]*seen // by chat
	session string
	asked   map[string]string // by chat: the session in which it was read back, or needed no reading
	denied  map[string]bool   // by chat: it is not shown to us
	joined  map[string]string // by server: an id of when we came
	began   time.Time         // the session, or its being resumed by this process
	back    map[string]bool   // by id: messages that were read back, and may come as events, too
}

// A job is done again until it returns nil. Then its event is released.
type job struct {
	do func(context.Context) error
	of *event
}

// A seen says how far a chat was read, and where it is.
type seen struct {
	Last    string `json:"last"` // id of the last message that was delivered or not said to us
	Guild   string `json:"guild,omitempty"`
	Session string `json:"session,omitempty"` // all events of the chat up to Seq of that session were handled
	Seq     int64  `json:"seq,omitempty"`
	aside   int    // messages passed over since it was stored
}

// newIntake returns an intake that knows what was read before.
func (c *Channel) newIntake(ctx context.Context, deliver chat.Deliver) (*intake, error) {
	in := &intake{
		c: c, ctx: ctx, deliver: deliver, looking: make(chan struct{}, lookAtOne),
		lanes: map[string][]job{}, full: map[string]bool{}, seen: map[string]*seen{},
		asked: map[string]string{}, denied: map[string]bool{}, joined: map[string]string{}, back: map[string]bool{}, began: time.Now(),
	}
	var known bool
	var err error
	if in.tracker, known, err = newTracker(ctx, c.cfg.Seen); err != nil {
		return in, err
	}
	in.session, _, _ = in.tracker.resumable()
	for e, err := range c.seen.Each(ctx, "") {
		id := e.Key
		switch {
		case id == positionKey:
		case err != nil && !errors.Is(err, store.ErrDamaged):
			return in, fmt.Errorf("read what was seen: %w", err)
		case err != nil || !snowflake.MatchString(e.Value.Last): // what is said from now on counts (P21)
			c.log.Error("how far a chat was read is damaged", "chat", id)
			if known {
				if err := in.tracker.resetOrigin(ctx); err != nil {
					return in, err
				}
			}
			if err := c.seen.Delete(ctx, id); err != nil {
				return in, fmt.Errorf("forget how far a chat was read: %w", err)
			}
		default:
			in.seen[id] = &e.Value
		}
	}
	c.in.Store(in)
	return in, nil
}

// beginSession is called when a new session begins, before any of its events.
func (in *intake) beginSession(session, resume string, seq int64, guilds []string) {
	if in.c.cfg.Groups == "none" {
		guilds = nil
	}
	in.tracker.setSession(session, resume, seq, guilds)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.session, in.asked = session, map[string]string{}
	in.began, in.back = time.Now(), map[string]bool{}
}

// older compares the ids of messages.
func older(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// before returns the id that comes before the one of a message.
func before(id string) string {
	n, _ := strconv.ParseUint(id, 10, 64)
	return strconv.FormatUint(max(n, 1)-1, 10)
}

// hear takes an event of the gateway. It returns at once.
func (in *intake) hear(kind string, seq int64, data json.RawMessage) {
	var w message
	var bad error
	said, edited := kind == "MESSAGE_CREATE", kind == "MESSAGE_UPDATE"
	if said || edited {
		if w, bad = messageIn(data); bad != nil {
			w = message{}
		}
	}
	e := in.tracker.beginEvent(seq, w.ID)
	defer in.tracker.release(e)
	switch {
	case kind == "READY":
		in.c.log.Info("connected to discord")
		in.catchUp(e)
	case kind == "RESUMED":
		in.c.log.Info("connected to discord again")
	case kind == "GUILD_CREATE":
		in.catchUpGuild(e, data)
	case kind == "GUILD_DELETE":
		var g guild
		if json.Unmarshal(data, &g) == nil && !g.Unavailable {
			in.tracker.noteLeft(g.ID)
		}
	case bad != nil:
		in.addDead(e, data, bad)
	case edited: // which cannot be asked for
		in.add(w.Channel, e, func(ctx context.Context) error { return in.takeEvent(ctx, w, e, true) }, nil)
	case said:
		in.add(w.Channel, e, func(ctx context.Context) error { return in.takeEvent(ctx, w, e, false) }, func(ctx context.Context) error {
			return in.ask(ctx, w.Channel, w.Guild, before(w.ID), "")
		})
	case kind == "INTERACTION_CREATE":
		in.hearInteraction(e, data)
	}
}

func (in *intake) hearInteraction(e *event, data json.RawMessage) {
	var i interaction
	if err := json.Unmarshal(data, &i); err != nil {
		in.addDead(e, data, err)
		return
	}
	if in.tracker.wasHandled(e) {
		return
	}
	if snowflake.MatchString(i.Channel) { // somebody is there: was anything said before?
		in.addReadBack(i.Channel, i.Guild, e)
	}
	since := time.Now()
	in.mu.Lock()
	defer in.mu.Unlock()
	in.tracker.hold(e)
	if in.ctx.Err() != nil { // it is held for ever: it is not handled
		return
	}
	in.live.Go(func() {
		if in.interact(i, since, e) {
			in.tracker.release(e)
		}
	})
}

// end returns when everything has ended. in.ctx has, and nothing more is heard.
func (in *intake) end() {
	in.mu.Lock() // whoever saw in.ctx still on has been counted
	wait := in.live.Wait
	in.mu.Unlock()
	wait()
	if err := in.tracker.save(context.WithoutCancel(in.ctx)); err != nil {
		in.c.log.Warn("the next start may hear again what was heard", "err", err)
	}
}

// add puts do at the end of the chat's lane. It holds e until it is done.
// In a lane that is full, again stands for do and all that follow: it asks for
// them. Where it is nil, do is dropped if there is no room.
func (in *intake) add(id string, e *event, do, again func(context.Context) error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	jobs, running := in.lanes[id]
	switch full := len(jobs) >= maxWaiting; {
	case in.ctx.Err() != nil:
		in.tracker.hold(e) // for ever: it is not handled
		return
	case in.full[id] && again != nil:
		return
	case full && again == nil:
		in.c.log.Error("event dropped, there are too many that wait", "chat", id)
		return
	case full:
		in.full[id] = true
		do = func(ctx context.Context) error {
			in.mu.Lock()
			delete(in.full, id)
			in.mu.Unlock()
			return again(ctx)
		}
	}
	in.tracker.hold(e)
	in.lanes[id] = append(jobs, job{do, e})
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
		err := jobs[0].do(in.ctx)
		for ; err != nil && in.ctx.Err() == nil; err = jobs[0].do(in.ctx) {
			in.c.log.Error("message not kept yet", "chat", id, "err", in.c.plainly(err))
			channels.Sleep(in.ctx, wait.Next(in.c.refused("", err)))
		}
		if err == nil {
			in.tracker.release(jobs[0].of)
		}
	}
}

// takeEvent takes the message of an event, after what was missed before it.
func (in *intake) takeEvent(ctx context.Context, w message, e *event, edited bool) error {
	in.mu.Lock()
	s := in.seen[w.Channel]
	handled := s != nil && s.Session == e.session && e.seq <= s.Seq // before a restart
	if in.back[w.ID] && !edited {
		delete(in.back, w.ID)
		handled = true
	}
	in.mu.Unlock()
	if handled {
		return nil
	}
	until := w.ID
	if edited { // the message itself may have been missed
		until = ""
	}
	if err := in.readBack(ctx, w.Channel, w.Guild, e, until); err != nil {
		return err
	}
	return in.take(ctx, w, e, edited)
}

// take delivers w if it is said to us, and notes that the chat was read so far.
// One over which the house breaks down goes to Dead: it would again (P4). e is
// nil for what was read back.
func (in *intake) take(ctx context.Context, w message, e *event, edited bool) (err error) {
	var said bool
	crash := panics.Try(func() error {
		var m chat.Message
		m, said, err = in.c.read(ctx, w, edited)
		if err == nil && said { // a crash after the delivery must not leave a chat of which nothing is known
			err = in.storeIfUnknown(ctx, w.Channel, seen{Last: before(w.ID), Guild: w.Guild})
		}
		if err == nil && said {
			err = in.deliver(ctx, m)
		}
		return nil
	})
	if crash != nil {
		err = in.keepDeadLetter(ctx, w.raw, crash)
	}
	if err == nil && !edited {
		in.note(ctx, w, e, said)
	}
	return err
}

// storeIfUnknown stores that a chat is read from s on, if nothing is known of it yet.
func (in *intake) storeIfUnknown(ctx context.Context, id string, s seen) error {
	in.mu.Lock()
	known := in.seen[id] != nil
	in.mu.Unlock()
	if known {
		return nil
	}
	if err := in.c.seen.Set(ctx, id, s); err != nil {
		return fmt.Errorf("store how far a chat was read: %w", err)
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.seen[id] == nil {
		in.seen[id] = &s
	}
	return nil
}

// notePrivateChat notes that we began a private chat, so that what is answered
// there while we are away is read back.
func (in *intake) notePrivateChat(ctx context.Context, id string) {
	private, _ := in.tracker.bounds()
	if private == "" { // there was no session yet
		return
	}
	if err := in.storeIfUnknown(ctx, id, seen{Last: private}); err != nil {
		in.c.log.Warn("private chat not noted", "chat", id, "err", err)
	}
}

// addDead keeps an event that cannot be understood.
func (in *intake) addDead(e *event, raw json.RawMessage, why error) {
	in.add("", e, func(ctx context.Context) error { return in.keepDeadLetter(ctx, raw, why) }, nil)
}

// keepDeadLetter keeps raw for inspection (P4).
func (in *intake) keepDeadLetter(ctx context.Context, raw json.RawMessage, why error) error {
	in.c.log.Error("event not understood, kept for inspection", "err", why)
	return network.KeepDeadLetter(ctx, in.c.cfg.Dead, raw)
}

// note stores how far the chat was read. Of what is not said to us it does so now and then.
func (in *intake) note(ctx context.Context, w message, e *event, said bool) {
	in.mu.Lock()
	s := in.seen[w.Channel]
	if s == nil {
		in.mu.Unlock()
		return
	}
	s.Last, s.Guild = later(s.Last, w.ID), w.Guild
	if e != nil && e.seq > 0 {
		s.Session, s.Seq = e.session, e.seq
	}
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
	// Should the write fail, what was read is only delivered once more (P2).
	if err := in.c.seen.Set(context.WithoutCancel(ctx), w.Channel, now); err != nil {
		in.c.log.Warn("how far a chat was read is not kept", "chat", w.Channel, "err", err)
	}
}

// forget is for chats that are gone.
func (in *intake) forget(id string) {
	in.mu.Lock()
	delete(in.seen, id)
	in.mu.Unlock()
	if err := in.c.seen.Delete(in.ctx, id); err != nil {
		in.c.log.Warn("could not clear the chat's position", "chat", id, "err", err)
	}
}
