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

// Split returns r as messages that Telegram takes: HTML of at most 4096 UTF-16
// units. Of files it tells the names.
func (c *Channel) Split(r chat.Reply) (parts []chat.Reply) {
	if r.Native {
		return []chat.Reply{r}
	}
	part := r
	part.Native, part.Files = true, nil
	for _, part.Text = range split(r.Text) {
		parts = append(parts, part)
	}
	if len(r.Files) > 0 {
		part.Text, part.Files = fileNames(r.Files), r.Files
		parts = append(parts, part)
	}
	return parts
}

// Send says r, which Split made. Of another r it says all parts, and says them
// all again if one of them failed and it is called again.
func (c *Channel) Send(ctx context.Context, r chat.Reply) (first channels.Receipt, err error) {
	to, thread, err := place(r.To)
	if err != nil {
		return "", err
	}
	parts := c.Split(r)
	if len(parts) == 0 {
		return "", forGood("send: there is nothing to say")
	}
	for i, part := range parts {
		rc, err := c.say(ctx, to, thread, part)
		if err != nil {
			return first, err
		}
		if i == 0 {
			first = rc
		}
	}
	return first, nil
}

// say sends one message, following the group if it has moved.
func (c *Channel) say(ctx context.Context, chat int64, thread int, r chat.Reply) (channels.Receipt, error) {
	for again := false; ; again = true {
		to, moved, err := c.alias(ctx, today, chat)
		if err != nil {
			return "", err
		}
		p := &bot.SendMessageParams{ChatID: to, MessageThreadID: thread, LinkPreviewOptions: noPreview()}
		if id, ok := messageNumber(r.Quote, moved); ok && r.Group {
			p.ReplyParameters = &models.ReplyParameters{MessageID: id, AllowSendingWithoutReply: true}
		}
		var sent *models.Message
		err = c.write(ctx, to, r.Text, func(text string, mode models.ParseMode) (err error) {
			p.Text, p.ParseMode = text, mode
			sent, err = c.api.SendMessage(ctx, p)
			return err
		})
		if err == nil {
			return channels.Receipt(fmt.Sprintf("%d/%d", to, sent.ID)), nil // the chat, too, since it may move
		}
		gone, ok := errors.AsType[*bot.MigrateError](err)
		if !ok || again {
			return "", c.refused("send", err)
		}
		if err := c.moved(ctx, chat, int64(gone.MigrateToChatID)); err != nil {
			return "", err
		}
	}
}

// Edit makes the message of rc say r, or the first part of it.
func (c *Channel) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	chat, id, err := sentAs(rc)
	if err != nil {
		return err
	}
	parts := c.Split(r)
	if len(parts) == 0 {
		return forGood("edit: there is nothing to say")
	}
	p := &bot.EditMessageTextParams{ChatID: chat, MessageID: id, LinkPreviewOptions: noPreview()}
	err = c.write(ctx, chat, parts[0].Text, func(text string, mode models.ParseMode) error {
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

// write waits for chat's turn and does one request. Text that Telegram cannot
// parse goes once more as plain text (P10).
func (c *Channel) write(ctx context.Context, chat int64, html string, do func(string, models.ParseMode) error) error {
	if err := c.pace.wait(ctx, chat); err != nil {
		return err
	}
	err := do(html, models.ParseModeHTML)
	if saidBad(err, "can't parse entities") {
		c.log.Warn("telegram cannot parse a message, which goes as plain text", "chat", chat, "err", c.plainly("send", err))
		err = do(plain(html), "")
	}
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		c.pace.hold(chat, time.Duration(busy.RetryAfter)*time.Second)
	}
	return err
}

// Typing shows "typing" for five seconds, unless messages need the room.
func (c *Channel) Typing(ctx context.Context, at chat.Address) error {
	chat, thread, err := place(at)
	if err != nil || !c.pace.spare() {
		return err
	}
	if chat, _, err = c.alias(ctx, today, chat); err != nil {
		return err
	}
	_, err = c.api.SendChatAction(ctx, &bot.SendChatActionParams{ChatID: chat, MessageThreadID: thread, Action: models.ChatActionTyping})
	return c.refused("show typing", err)
}

// saidBad reports whether err is Telegram calling the request bad because of what.
func saidBad(err error, what string) bool {
	return errors.Is(err, bot.ErrorBadRequest) && strings.Contains(err.Error(), what)
}

func forGood(text string) error {
	return &channels.Error{Permanent: true, Err: errors.New(text)}
}

func noPreview() *models.LinkPreviewOptions { // R-S13
	return &models.LinkPreviewOptions{IsDisabled: bot.True()}
}

// place returns the chat and the thread to name when sending to a. The thread
// of the General topic, 1, must not be named.
func place(a chat.Address) (chat int64, thread int, err error) {
	chat, err = strconv.ParseInt(a.Chat, 10, 64)
	if err == nil && a.Thread != "" && a.Thread != "1" {
		thread, err = strconv.Atoi(a.Thread)
	}
	if err != nil {
		return 0, 0, forGood(fmt.Sprintf("%q is no chat of telegram", a.Session()))
	}
	return chat, thread, nil
}

func sentAs(rc channels.Receipt) (chat int64, id int, err error) {
	if _, err := fmt.Sscanf(string(rc), "%d/%d", &chat, &id); err != nil {
		return 0, 0, forGood(fmt.Sprintf("%q is no receipt of telegram", rc))
	}
	return chat, id, nil
}
