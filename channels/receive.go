package channels

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"parley/chat"
	"parley/store"
)

// receive runs the channel until ctx ends or it cannot go on. A channel that
// panics is run again.
func (l *line) receive(ctx context.Context, deliver chat.Deliver) {
	var p pace
	for {
		err := safely(func() error {
			return l.Run(ctx, func(ctx context.Context, m chat.Message) error { return l.hear(ctx, m, deliver) })
		})
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = fmt.Errorf("channel %s: %w", l.name, err)
			l.log.Error("channel does not receive", "err", err, stack(err))
		}
		l.fail(err)
		var crash *panicError
		if !errors.As(err, &crash) || !sleep(ctx, p.wait(err)) {
			return
		}
		l.fail(nil)
	}
}

// hear is the one way in for everything a channel reports (R-S8).
func (l *line) hear(ctx context.Context, m chat.Message, deliver chat.Deliver) error {
	m.At.Channel = l.name
	m.Origin = chat.FromPerson
	role, err := l.hub.authorise(ctx, m)
	if err != nil {
		return err
	}
	m.From.Role = role
	if role == chat.Stranger {
		return l.stranger(ctx, m)
	}
	if reply, args, ok := l.hub.own(m); ok {
		return reply(ctx, m, args)
	}
	return deliver(ctx, m)
}

// authorise says what the sender of m may do, whatever kind of message it is.
func (h *Hub) authorise(ctx context.Context, m chat.Message) (chat.Role, error) {
	role := h.access.Load().Role(m.At.Channel, m.From.ID)
	if role != chat.Stranger || m.From.ID == "" {
		return role, nil
	}
	_, _, err := h.store.Bucket("paired").Get(ctx, person(m.At.Channel, m.Account, m.From.ID))
	switch {
	case err == nil:
		return chat.User, nil
	case errors.Is(err, store.ErrNotFound):
		return chat.Stranger, nil
	case errors.Is(err, store.ErrDamaged):
		h.log.Error("pairing is damaged, the person has to pair again", "channel", m.At.Channel, "sender", m.From.ID)
		return chat.Stranger, nil
	}
	return chat.Stranger, fmt.Errorf("authorise: %w", err)
}

// offer sets the command menu of the channel, however often it takes.
func (l *line) offer(ctx context.Context, c Commander) {
	var p pace
	for {
		err := safely(func() error { return c.SetCommands(ctx, l.hub.commands) })
		if err == nil || ctx.Err() != nil {
			return
		}
		if permanent(err) {
			l.log.Warn("command menu not set", "err", err)
			return
		}
		l.log.Debug("command menu not set yet", "err", err)
		if !sleep(ctx, p.wait(err)) {
			return
		}
	}
}

// A pace is how one thing is tried again and again (P10).
type pace struct {
	tries int
	since time.Time // of the first failure
}

const (
	firstWait = time.Second
	longWait  = 5 * time.Minute
	giveUp    = 24 * time.Hour
)

// wait returns how long to wait after err.
func (p *pace) wait(err error) time.Duration {
	if p.tries == 0 {
		p.since = time.Now()
	}
	d := min(firstWait<<min(p.tries, 20), longWait)
	p.tries++
	var e *Error
	if errors.As(err, &e) && e.After > 0 {
		return e.After
	}
	return jitter(d)
}

// over says that err has come for so long that it will not pass.
func (p *pace) over() bool { return p.tries > 0 && time.Since(p.since) >= giveUp }

func permanent(err error) bool {
	var e *Error
	return errors.As(err, &e) && e.Permanent
}

// safely calls f and makes its panic an error.
func safely(f func() error) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicError{v, debug.Stack()}
		}
	}()
	return f()
}

// A panicError is a bug in a channel.
type panicError struct {
	val   any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.val) }
