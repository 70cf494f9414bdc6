package telegram

import (
	"context"
	"errors"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/chat"
)

const maxProbes = 64 // numbers that are looked at for one message

// Position implements [channels.Tracer].
func (c *Channel) Position(ctx context.Context, r chat.Reply) (channels.Position, error) {
	at, _, moved, err := c.place(ctx, r.To)
	if err != nil {
		return 0, err
	}
	last := c.numbers.last(at)
	if quoted, ok := messageNumber(r.Quote, moved); ok {
		last = max(last, quoted)
	}
	return channels.Position(last), nil
}

// Recall implements [channels.Tracer].
func (c *Channel) Recall(ctx context.Context, to chat.Address, p channels.Position) error {
	at, _, _, err := c.place(ctx, to)
	if err == nil {
		c.numbers.raise(at, int(p))
	}
	return err
}

// Trace implements [channels.Tracer]. Telegram cannot be asked what a chat
// shows, but its refusal to take away buttons that are not there tells whose
// message has a number.
func (c *Channel) Trace(ctx context.Context, r chat.Reply, after channels.Position) (channels.Receipt, error) {
	at, _, _, err := c.place(ctx, r.To)
	if err != nil {
		return "", err
	}
	s := c.numbers.search(at, int(after))
	for ; s.probes < maxProbes && c.numbers.candidate(at, s); s.probes++ {
		ours, err := c.isOurs(ctx, at, s.next, r.Ask)
		var album []int
		if err == nil && ours {
			album, err = c.albumAt(ctx, at, s.next, len(r.Files))
		}
		if err != nil {
			return "", c.refused("look for a message", err)
		}
		if ours {
			c.numbers.end(at)
			c.numbers.note(at, 0, album...)
			c.log.Info("the message had been sent already", "chat", at, "message", s.next)
			return receipt(at, album), nil
		}
		s.next++
	}
	c.numbers.end(at)
	c.log.Info("the message was not found and is sent", "chat", at, "after", after, "looked at", s.probes)
	return "", nil
}

// albumAt returns the numbers of an album of at most so many messages that
// begins with first.
func (c *Channel) albumAt(ctx context.Context, at int64, first, most int) ([]int, error) {
	album := []int{first}
	for len(album) < most {
		ours, err := c.isOurs(ctx, at, first+len(album), nil)
		if err != nil {
			return nil, err
		}
		if !ours {
			break
		}
		album = append(album, first+len(album))
	}
	return album, nil
}

// isOurs reports whether the message with that number in a chat is ours. It
// must have the buttons of ask: then nothing is changed.
func (c *Channel) isOurs(ctx context.Context, at int64, number int, ask *chat.Question) (bool, error) {
	if err := c.pace.waitToLook(ctx, at); err != nil {
		return false, err
	}
	_, err := c.api.EditMessageReplyMarkup(ctx, &bot.EditMessageReplyMarkupParams{ChatID: at, MessageID: number, ReplyMarkup: keyboard(ask)})
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		c.pace.hold(at, time.Duration(busy.RetryAfter)*time.Second)
	}
	switch {
	case err == nil:
		c.log.Warn("the buttons of another message were changed", "chat", at, "message", number)
		return false, nil
	case saidBad(err, "message is not modified"):
		return true, nil
	case errors.Is(err, bot.ErrorBadRequest): // somebody else's, or there is none
		return false, nil
	}
	return false, err
}
