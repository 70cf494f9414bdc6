package telegram

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/chat"
)

// A target is where a message goes.
type target struct {
	chat   int64
	thread int
	quote  *models.ReplyParameters // the message it answers; nil for none
}

// Send sends one message, following the group if it has moved.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	for again := false; ; again = true {
		chat, thread, moved, err := c.place(ctx, r.To)
		if err != nil {
			return "", err
		}
		to := target{chat: chat, thread: thread}
		if id, ok := messageNumber(r.Quote, moved); ok && r.Group {
			to.quote = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
		}
		began := c.numbers.begin()
		var ids []int
		if len(r.Files) > 0 {
			ids, err = c.sendFiles(ctx, to, r.Files, "")
		} else {
			ids, err = c.sendText(ctx, to, r.Text, r.Ask)
		}
		if err == nil {
			c.numbers.note(chat, began, ids...)
			return receipt(chat, ids), nil
		}
		gone, ok := errors.AsType[*bot.MigrateError](err)
		if !ok || again {
			err = c.refused("send", err)
			if channels.MayBeSent(err) {
				c.numbers.doubt(chat)
			}
			return "", err
		}
		if err := c.moved(ctx, chat, int64(gone.MigrateToChatID)); err != nil {
			return "", err
		}
	}
}

func (c *Channel) sendText(ctx context.Context, to target, text string, ask *chat.Question) (ids []int, err error) {
	p := &bot.SendMessageParams{
		ChatID: to.chat, MessageThreadID: to.thread, ReplyParameters: to.quote,
		LinkPreviewOptions: noPreview(), ReplyMarkup: keyboard(ask),
	}
	err = c.write(ctx, to.chat, text, func(text string, mode models.ParseMode) error {
		p.Text, p.ParseMode = text, mode
		sent, err := c.api.SendMessage(ctx, p)
		ids = idsOf(sent)
		return err
	})
	return ids, err
}

// idsOf returns the ids of what was sent, as far as Telegram told them.
func idsOf(sent ...*models.Message) (ids []int) {
	for _, m := range sent {
		if m != nil && m.ID > 0 {
			ids = append(ids, m.ID)
		}
	}
	return ids
}

// Edit makes the message of rc say r. Its buttons go unless r asks.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	chat, id, err := sentAs(rc)
	if err != nil {
		return err
	}
	p := &bot.EditMessageTextParams{ChatID: chat, MessageID: id, LinkPreviewOptions: noPreview(), ReplyMarkup: keyboard(r.Ask)}
	err = c.write(ctx, chat, r.Text, func(text string, mode models.ParseMode) error {
		p.Text, p.ParseMode = text, mode
		_, err := c.api.EditMessageText(ctx, p)
		return err
	})
	if saidBad(err, "message is not modified") {
		return nil
	}
	return c.refused("edit", err)
}

// Delete takes the message of rc back. Telegram lets a bot do that for 48 hours.
func (c *Channel) Delete(ctx context.Context, _ chat.Address, rc channels.Receipt) error {
	chat, id, err := sentAs(rc)
	if err != nil {
		return err
	}
	_, err = c.api.DeleteMessage(ctx, &bot.DeleteMessageParams{ChatID: chat, MessageID: id})
	if saidBad(err, "message to delete not found") {
		return nil
	}
	return c.refused("delete", err)
}

// write does one request with text. Text that Telegram cannot parse goes once
// more as plain text (P10).
func (c *Channel) write(ctx context.Context, chat int64, html string, do func(string, models.ParseMode) error) error {
	return c.inTurn(ctx, chat, func() error {
		err := do(html, models.ParseModeHTML)
		if saidBad(err, "can't parse entities") {
			c.log.Warn("telegram cannot parse a message, which goes as plain text", "chat", chat, "err", c.plainly("send", err))
			err = do(plain(html), "")
		}
		return err
	})
}

// inTurn waits for chat's turn and does one request.
func (c *Channel) inTurn(ctx context.Context, chat int64, do func() error) error {
	if err := c.pace.wait(ctx, chat); err != nil {
		return err
	}
	err := do()
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		c.pace.hold(chat, time.Duration(busy.RetryAfter)*time.Second)
	}
	return err
}

// Typing shows "typing" for five seconds, unless messages need the room.
func (c *Channel) Typing(ctx context.Context, at chat.Address) error {
	chat, thread, _, err := c.place(ctx, at)
	if err != nil || !c.pace.spare() {
		return err
	}
	_, err = c.api.SendChatAction(ctx, &bot.SendChatActionParams{ChatID: chat, MessageThreadID: thread, Action: models.ChatActionTyping})
	return c.refused("show typing", err)
}

// saidBad reports whether err is Telegram calling the request bad because of what.
func saidBad(err error, what string) bool {
	return errors.Is(err, bot.ErrorBadRequest) && strings.Contains(err.Error(), what)
}

func noPreview() *models.LinkPreviewOptions { // R-S13
	return &models.LinkPreviewOptions{IsDisabled: bot.True()}
}

// place returns the chat and the thread to name today when sending to a, and
// whether that chat has moved. The thread of the General topic, 1, must not be named.
func (c *Channel) place(ctx context.Context, a chat.Address) (chat int64, thread int, moved bool, err error) {
	chat, err = strconv.ParseInt(a.Chat, 10, 64)
	if err == nil && a.Thread != "" && a.Thread != "1" {
		thread, err = strconv.Atoi(a.Thread)
	}
	if err != nil {
		return 0, 0, false, channels.ForGood("%q is no chat of telegram", a.Session())
	}
	chat, moved, err = c.alias(ctx, today, chat)
	return chat, thread, moved, err
}

// receipt names what was sent by the first of its messages, and by the chat,
// too, since that may move. It is empty if Telegram did not tell the id.
func receipt(chat int64, ids []int) channels.Receipt {
	if len(ids) == 0 {
		return ""
	}
	return channels.Receipt(fmt.Sprintf("%d/%d", chat, ids[0]))
}

func sentAs(rc channels.Receipt) (chat int64, id int, err error) {
	if _, err := fmt.Sscanf(string(rc), "%d/%d", &chat, &id); err != nil {
		return 0, 0, channels.ForGood("%q is no receipt of telegram", rc)
	}
	return chat, id, nil
}
