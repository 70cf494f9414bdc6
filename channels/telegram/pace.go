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

const (
	defaultRate   = 30.0 // messages per second in all
	maxChatLimits = 1024 // limits of chats that are kept before idle ones are dropped

	privateEvery = time.Second // between two messages to a person
	privateBurst = 3
	groupEvery   = 4 * time.Second // 4 at once and 15 more within the minute
	groupBurst   = 4
)

// A pace keeps to what Telegram allows: so many messages per second in all, one
// per second in a chat, 20 per minute in a group.
type pace struct {
	total     *rate.Limiter
	unlimited bool

	mu    sync.Mutex
	chats map[int64]*chatLimit
}

type chatLimit struct {
	messages    *rate.Limiter
	pausedUntil time.Time // as Telegram asked
}

// newPace returns a pace of perSecond messages in all; below 0 it allows everything.
func newPace(perSecond float64) *pace {
	perSecond = cmp.Or(perSecond, defaultRate)
	burst := max(1, perSecond/10) // and the rest within the second
	return &pace{
		total:     rate.NewLimiter(rate.Limit(perSecond*0.8), int(burst)),
		unlimited: perSecond < 0,
		chats:     map[int64]*chatLimit{},
	}
}

// wait returns when a message may be sent to chat, which is soon: while Telegram
// wants a pause it returns an error at once. A short burst is allowed, so that
// short answers are not delayed.
func (p *pace) wait(ctx context.Context, chat int64) error {
	limit, err := p.openChat(chat)
	if err != nil {
		return err
	}
	return p.waitFor(ctx, limit.messages, p.total)
}

// waitForProbe is wait for a request about chat that shows nothing there: only the
// total is limited.
func (p *pace) waitForProbe(ctx context.Context, chat int64) error {
	if _, err := p.openChat(chat); err != nil {
		return err
	}
	return p.waitFor(ctx, p.total)
}

func (p *pace) waitFor(ctx context.Context, limits ...*rate.Limiter) error {
	if p.unlimited {
		return nil
	}
	for _, limit := range limits {
		if err := limit.Wait(ctx); err != nil {
			return unsentError{fmt.Errorf("wait for telegram's limit: %w", err)}
		}
	}
	return nil
}

// openChat returns the limit of chat, or an error while Telegram wants a pause.
func (p *pace) openChat(chat int64) (*chatLimit, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	limit := p.chatLimit(chat)
	if left := time.Until(limit.pausedUntil); left > 0 && !p.unlimited {
		return nil, &channels.Error{After: left, Err: errors.New("telegram wants a pause in this chat")}
	}
	return limit, nil
}

// pause lets nothing go to chat for d.
func (p *pace) pause(chat int64, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chatLimit(chat).pausedUntil = time.Now().Add(d)
}

// hasSpare reports whether there is capacity for what need not be sent.
func (p *pace) hasSpare() bool { return p.unlimited || p.total.Tokens() >= 1 }

// chatLimit returns the limit of chat. p.mu is held.
func (p *pace) chatLimit(chat int64) *chatLimit {
	if limit := p.chats[chat]; limit != nil {
		return limit
	}
	if len(p.chats) >= maxChatLimits {
		maps.DeleteFunc(p.chats, func(_ int64, limit *chatLimit) bool { return limit.isIdle() })
	}
	limit := &chatLimit{messages: rate.NewLimiter(rate.Every(privateEvery), privateBurst)}
	if chat < 0 {
		limit.messages = rate.NewLimiter(rate.Every(groupEvery), groupBurst)
	}
	p.chats[chat] = limit
	return limit
}

func (l *chatLimit) isIdle() bool {
	return l.messages.Tokens() >= float64(l.messages.Burst()) && time.Now().After(l.pausedUntil)
}
