package telegram

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"parley/channels"
)

// A pace keeps to what Telegram allows: so much per second in all, one message
// per second in a chat, 20 per minute in a group.
type pace struct {
	all  *rate.Limiter
	free bool // nothing is kept

	mu    sync.Mutex
	lanes map[int64]*lane
}

type lane struct {
	*rate.Limiter
	closed time.Time // until then Telegram wants nothing for this chat
}

// newPace returns a pace of perSecond messages in all; below 0 it allows everything.
func newPace(perSecond float64) *pace {
	perSecond = cmp.Or(perSecond, 30)
	atOnce := max(1, perSecond/10) // and the rest within the second
	all := rate.NewLimiter(rate.Limit(perSecond*0.8), int(atOnce))
	return &pace{all: all, free: perSecond < 0, lanes: map[int64]*lane{}}
}

// wait returns when a message may be sent to chat, which is soon: where
// Telegram wants to be left alone it returns an error at once. A few at once
// may be sent, so that short answers are not held up.
func (p *pace) wait(ctx context.Context, chat int64) error {
	l, err := p.open(chat)
	if err != nil {
		return err
	}
	return p.within(ctx, l.Limiter, p.all)
}

// waitToLook is wait for a request about chat that shows nothing there: only
// what is asked in all is limited.
func (p *pace) waitToLook(ctx context.Context, chat int64) error {
	if _, err := p.open(chat); err != nil {
		return err
	}
	return p.within(ctx, p.all)
}

func (p *pace) within(ctx context.Context, limits ...*rate.Limiter) error {
	if p.free {
		return nil
	}
	for _, limit := range limits {
		if err := limit.Wait(ctx); err != nil {
			return unsent{fmt.Errorf("wait for telegram's limit: %w", err)}
		}
	}
	return nil
}

// open returns the lane of chat, or an error where Telegram wants to be left alone.
func (p *pace) open(chat int64) (*lane, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lane(chat)
	if closed := time.Until(l.closed); closed > 0 && !p.free {
		return l, &channels.Error{After: closed, Err: errors.New("telegram wants this chat left alone")}
	}
	return l, nil
}

// hold lets nothing go to chat for d.
func (p *pace) hold(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lane(chat).closed = time.Now().Add(d)
}

// spare reports whether there is room for what need not be sent.
func (p *pace) spare() bool { return p.free || p.all.Tokens() >= 1 }

// lane returns the lane of chat. p.mu is held.
func (p *pace) lane(chat int64) *lane {
	const many = 1024
	if l := p.lanes[chat]; l != nil {
		return l
	}
	if len(p.lanes) >= many {
		maps.DeleteFunc(p.lanes, func(_ int64, l *lane) bool {
			return l.Tokens() >= float64(l.Burst()) && time.Now().After(l.closed)
		})
	}
	l := &lane{Limiter: rate.NewLimiter(1, 3)}
	if chat < 0 { // 4 at once and 15 more within the minute
		l.Limiter = rate.NewLimiter(rate.Every(4*time.Second), 4)
	}
	p.lanes[chat] = l
	return l
}
