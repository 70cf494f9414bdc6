package telegram

import (
	"context"
	"errors"
	"log/slog"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/chat"
)

const maxProbes = 64 // numbers that are tried for one message

// A tracer finds out whether a message was sent when the answer was lost.
// Telegram cannot be asked what a chat shows. But a request to remove buttons that are
// not there fails in a way that shows whose message has a number.
type tracer struct {
	api     *botAPI
	pace    *pace
	numbers *numbers
	groups  *groupMoves
	log     *slog.Logger
}

// position returns the highest number known in the chat of r.
func (t *tracer) position(ctx context.Context, r chat.Reply) (channels.Position, error) {
	to, err := t.groups.locate(ctx, r.To)
	if err != nil {
		return 0, err
	}
	last := t.numbers.last(to.chat)
	if quoted, ok := messageNumber(r.Quote, to.moved); ok {
		last = max(last, quoted)
	}
	return channels.Position(last), nil
}

// recall notes a position of an earlier process.
func (t *tracer) recall(ctx context.Context, at chat.Address, p channels.Position) error {
	to, err := t.groups.locate(ctx, at)
	if err != nil {
		return err
	}
	t.numbers.raise(to.chat, int(p))
	return nil
}

// trace looks for r among the numbers above after.
func (t *tracer) trace(ctx context.Context, r chat.Reply, after channels.Position) (channels.Receipt, error) {
	to, err := t.groups.locate(ctx, r.To)
	if err != nil {
		return "", err
	}
	s := t.numbers.search(to.chat, int(after))
	for ; s.probes < maxProbes && t.numbers.advance(to.chat, s); s.probes++ {
		found, err := t.probe(ctx, to.chat, s.next, r)
		if err != nil {
			return "", t.api.channelError("look for a message", err)
		}
		if found != nil {
			t.numbers.endSearch(to.chat)
			t.numbers.note(to.chat, 0, found...)
			t.log.Info("the message had been sent already", "chat", to.chat, "message", s.next)
			return newReceipt(to.chat, found), nil
		}
		s.next++
	}
	t.numbers.endSearch(to.chat)
	t.log.Info("the message was not found and is sent", "chat", to.chat, "after", after, "probes", s.probes)
	return "", nil
}

// probe returns the numbers of r's messages if the first one has that number, nil if
// it does not.
func (t *tracer) probe(ctx context.Context, chat int64, number int, r chat.Reply) ([]int, error) {
	ours, err := t.isOurs(ctx, chat, number, r.Ask)
	if err != nil || !ours {
		return nil, err
	}
	return t.albumFrom(ctx, chat, number, len(r.Files))
}

// albumFrom returns the numbers of an album that begins with first and has at most
// limit messages.
func (t *tracer) albumFrom(ctx context.Context, chat int64, first, limit int) ([]int, error) {
	album := []int{first}
	for len(album) < limit {
		next := first + len(album)
		ours, err := t.isOurs(ctx, chat, next, nil)
		if err != nil {
			return nil, err
		}
		if !ours {
			break
		}
		album = append(album, next)
	}
	return album, nil
}

// isOurs reports whether the message with that number in a chat is ours. ask must
// be the question that it asks: then the request changes nothing.
func (t *tracer) isOurs(ctx context.Context, chat int64, number int, ask *chat.Question) (bool, error) {
	if err := t.pace.waitForProbe(ctx, chat); err != nil {
		return false, err
	}
	_, err := t.api.bot.EditMessageReplyMarkup(ctx, &bot.EditMessageReplyMarkupParams{
		ChatID: chat, MessageID: number, ReplyMarkup: newKeyboard(ask),
	})
	if delay, ok := retryAfter(err); ok {
		t.pace.pause(chat, delay)
	}
	switch {
	case err == nil:
		t.log.Warn("the buttons of another message were changed", "chat", chat, "message", number)
		return false, nil
	case isBadRequest(err, "message is not modified"):
		return true, nil
	case errors.Is(err, bot.ErrorBadRequest): // another sender's message, or none
		return false, nil
	}
	return false, err
}
