package channels

import (
	"context"
	"errors"
	"time"

	"parley/chat"
	"parley/store"
)

// An errand is something small to do at the network, tried once, that nobody
// waits for.
type errand struct {
	what string
	do   func(context.Context) error
}

const (
	maxErrands = 100
	signTime   = 10 * time.Second // the most one may take, or another sign
)

// errand has do done by Work, unless too much waits already.
func (l *line) errand(what string, do func(context.Context) error) {
	select {
	case l.errands <- errand{what, do}:
	default:
		l.log.Warn("left undone: the network is too slow", "what", what)
	}
}

// run does errands until ctx ends.
func (l *line) run(ctx context.Context) {
	for {
		select {
		case e := <-l.errands:
			if err := within(ctx, signTime, e.do); err != nil {
				l.log.Warn("left undone", "what", e.what, "err", err, stack(err))
			}
		case <-ctx.Done():
			return
		}
	}
}

// notice tells the chat of m that m waits, if err says that the disk is full
// (P19), once until a message of the chat is taken. It goes past the outbox,
// which is on the same disk, and is tried once.
func (l *line) notice(m chat.Message, err error) {
	if err == nil {
		l.noticed.Delete(m.At)
	}
	if !errors.Is(err, store.ErrFull) {
		return
	}
	if _, told := l.noticed.LoadOrStore(m.At, true); told {
		return
	}
	r := chat.Reply{ID: "full:" + m.Key(), To: m.At, // no Quote: what waits is not answered
		Text: "My disk is full, so your message has to wait. I take it as soon as there is space again."}
	l.errand("tell the chat that the disk is full", func(ctx context.Context) error {
		if _, waits := l.noticed.Load(m.At); !waits {
			return nil
		}
		parts, err := l.parts(r)
		for _, part := range parts {
			_, err = l.Send(ctx, part)
		}
		return err
	})
}
