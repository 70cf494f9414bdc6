package telegram

import (
	"context"
	"errors"
	"log/slog"
	"os"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/chat"
	"parley/texts"
)

// A sender sends messages and changes those that were sent, at the pace that
// Telegram allows.
type sender struct {
	api     *botAPI
	pace    *pace
	numbers *numbers
	groups  *groupMoves
	open    func(path string) (*os.File, error)
	texts   *texts.Channels
	log     *slog.Logger
}

// A target is where a message goes and what it answers.
type target struct {
	chat   int64
	thread int
	quote  *models.ReplyParameters // nil for none
}

// send sends r. If the chat turns out to be a supergroup by now, it goes there.
func (s *sender) send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	to, err := s.groups.locate(ctx, r.To)
	if err != nil {
		return "", err
	}
	rc, err := s.sendTo(ctx, to, r)
	migrated, ok := errors.AsType[*bot.MigrateError](err)
	if !ok {
		return rc, s.sendError(to, err)
	}
	if err := s.groups.remember(ctx, to.chat, int64(migrated.MigrateToChatID)); err != nil {
		return "", err
	}
	to, err = s.groups.locate(ctx, r.To)
	if err != nil {
		return "", err
	}
	rc, err = s.sendTo(ctx, to, r)
	return rc, s.sendError(to, err)
}

// sendTo sends r to that chat and notes the numbers that it got.
func (s *sender) sendTo(ctx context.Context, at destination, r chat.Reply) (channels.Receipt, error) {
	to := target{chat: at.chat, thread: at.thread}
	if number, ok := messageNumber(r.Quote, at.moved); ok && r.Group {
		to.quote = &models.ReplyParameters{MessageID: number, AllowSendingWithoutReply: true}
	}
	began := s.numbers.begin()
	var sent []int
	var err error
	if len(r.Files) > 0 {
		sent, err = s.sendFiles(ctx, to, r.Files, "")
	} else {
		sent, err = s.sendText(ctx, to, r.Text, r.Ask)
	}
	if err != nil {
		return "", err
	}
	s.numbers.note(at.chat, began, sent...)
	return newReceipt(at.chat, sent), nil
}

// sendError returns the error of sending to that chat, and notes it if a message
// may have been sent nevertheless.
func (s *sender) sendError(to destination, err error) error {
	err = s.api.channelError("send", err)
	if channels.MayBeSent(err) {
		s.numbers.markUncertain(to.chat)
	}
	return err
}

func (s *sender) sendText(ctx context.Context, to target, text string, ask *chat.Question) (sent []int, err error) {
	p := &bot.SendMessageParams{
		ChatID:             to.chat,
		MessageThreadID:    to.thread,
		ReplyParameters:    to.quote,
		LinkPreviewOptions: noPreview(),
		ReplyMarkup:        newKeyboard(ask),
	}
	err = s.sendFormatted(ctx, to.chat, text, func(text string, mode models.ParseMode) error {
		p.Text = text
		p.ParseMode = mode
		message, err := s.api.bot.SendMessage(ctx, p)
		sent = numbersOf(message)
		return err
	})
	return sent, err
}

// numbersOf returns the numbers of what was sent, as far as Telegram returned them.
func numbersOf(sent ...*models.Message) (numbers []int) {
	for _, m := range sent {
		if m != nil && m.ID > 0 {
			numbers = append(numbers, m.ID)
		}
	}
	return numbers
}

// edit makes the message of rc say r.
func (s *sender) edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	at, number, err := parseReceipt(rc)
	if err != nil {
		return err
	}
	p := &bot.EditMessageTextParams{
		ChatID:             at,
		MessageID:          number,
		LinkPreviewOptions: noPreview(),
		ReplyMarkup:        newKeyboard(r.Ask),
	}
	err = s.sendFormatted(ctx, at, r.Text, func(text string, mode models.ParseMode) error {
		p.Text = text
		p.ParseMode = mode
		_, err := s.api.bot.EditMessageText(ctx, p)
		return err
	})
	if isBadRequest(err, "message is not modified") {
		return nil
	}
	return s.api.channelError("edit", err)
}

func (s *sender) deleteMessage(ctx context.Context, rc channels.Receipt) error {
	at, number, err := parseReceipt(rc)
	if err != nil {
		return err
	}
	_, err = s.api.bot.DeleteMessage(ctx, &bot.DeleteMessageParams{ChatID: at, MessageID: number})
	if isBadRequest(err, "message to delete not found") {
		return nil
	}
	return s.api.channelError("delete", err)
}

func (s *sender) showTyping(ctx context.Context, at chat.Address) error {
	to, err := s.groups.locate(ctx, at)
	if err != nil || !s.pace.hasSpare() {
		return err
	}
	_, err = s.api.bot.SendChatAction(ctx, &bot.SendChatActionParams{
		ChatID: to.chat, MessageThreadID: to.thread, Action: models.ChatActionTyping,
	})
	return s.api.channelError("show typing", err)
}

// reactions are the emoji that show the marks. Done needs none: there is an answer.
var reactions = map[channels.Mark]string{channels.Seen: "👀", channels.Working: "✍"}

func (s *sender) react(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	if m != channels.Done && !s.pace.hasSpare() {
		return nil
	}
	to, err := s.groups.locate(ctx, at)
	if err != nil {
		return err
	}
	number, ok := messageNumber(message, to.moved)
	if !ok { // the press of a button, or from before the group moved
		return nil
	}
	p := &bot.SetMessageReactionParams{ChatID: to.chat, MessageID: number}
	if emoji := reactions[m]; emoji != "" {
		p.Reaction = []models.ReactionType{{
			Type:              models.ReactionTypeTypeEmoji,
			ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: emoji},
		}}
	}
	_, err = s.api.bot.SetMessageReaction(ctx, p)
	return s.api.channelError("react", err)
}

// sendFormatted makes one request with text in HTML. Text that Telegram cannot
// parse is sent once more as plain text (P10).
func (s *sender) sendFormatted(
	ctx context.Context, chat int64, html string, request func(text string, mode models.ParseMode) error,
) error {
	return s.paced(ctx, chat, func() error {
		err := request(html, models.ParseModeHTML)
		if !isBadRequest(err, "can't parse entities") {
			return err
		}
		s.log.Warn("telegram cannot parse a message, sending it as plain text",
			"chat", chat, "err", s.api.redactedError("send", err))
		return request(plainText(html), "")
	})
}

// paced makes one request about a chat as soon as Telegram's limits allow it.
func (s *sender) paced(ctx context.Context, chat int64, request func() error) error {
	if err := s.pace.wait(ctx, chat); err != nil {
		return err
	}
	err := request()
	if delay, ok := retryAfter(err); ok {
		s.pace.pause(chat, delay)
	}
	return err
}

// noPreview has Telegram fetch no page that a message links to (R-S13).
func noPreview() *models.LinkPreviewOptions {
	return &models.LinkPreviewOptions{IsDisabled: bot.True()}
}
