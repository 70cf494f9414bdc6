package telegram

import (
	"cmp"
	"context"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-telegram/bot"
	"github.com/go-telegram/bot/models"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
)

const (
	maxChoices  = 10
	maxLabel    = 60              // runes of a button; a phone shows fewer
	maxRow      = 5               // buttons side by side
	oneRow      = 24              // runes of these in all
	releaseTime = 5 * time.Second // for a button to look pressed no more
)

// MaxChoices implements [channels.Asker].
func (c *Channel) MaxChoices() int { return maxChoices }

// keyboard returns the buttons of q, nil for none: side by side if they are
// short. Each carries the question and its place among the choices.
func keyboard(q *chat.Question) models.ReplyMarkup {
	if q == nil || len(q.Choices) == 0 || len(q.Choices) > maxChoices {
		return nil
	}
	short := len(q.Choices) <= maxRow && utf8.RuneCountInString(strings.Join(q.Choices, "")) <= oneRow
	var rows [][]models.InlineKeyboardButton
	for i, choice := range q.Choices {
		label := cmp.Or(channels.Line(choice, maxLabel), strconv.Itoa(i+1))
		if i == 0 || !short {
			rows = append(rows, nil)
		}
		last := &rows[len(rows)-1]
		*last = append(*last, models.InlineKeyboardButton{Text: label, CallbackData: network.Button(q, i)})
	}
	return models.InlineKeyboardMarkup{InlineKeyboard: rows}
}

// pressed turns the press of a button into a message. said is false for one that
// is none of ours.
func (c *Channel) pressed(ctx context.Context, p *press) (m chat.Message, said bool, err error) {
	answer := network.Pressed(p.Data, receipt(p.Message.Chat.ID, []int{p.Message.ID}))
	if answer == nil || p.ID == "" || p.From.ID == 0 || p.From.IsBot {
		return m, false, nil
	}
	at, _, err := c.at(ctx, p.Message)
	if err != nil {
		return m, false, err
	}
	return chat.Message{
		ID: "cb" + p.ID, Account: c.id, At: at, Group: inGroup(p.Message), Time: time.Now(),
		From: chat.Sender{ID: strconv.FormatInt(p.From.ID, 10), Name: userName(&p.From)}, Answer: answer,
	}, true, nil
}

// release lets a button look pressed no more. It is best effort: a press that
// comes again after a restart may have been released before.
func (c *Channel) release(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	if _, err := c.api.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: id}); err != nil {
		c.log.Debug("button not released", "err", c.plainly("answer callback query", err))
	}
}

// marks are the reactions that show them. What is done needs none: there is an answer.
var marks = map[channels.Mark]string{channels.Seen: "👀", channels.Working: "✍"}

// React implements [channels.Reactor]. A mark is not set when messages need the
// room, but one that was is always taken away.
func (c *Channel) React(ctx context.Context, at chat.Address, message string, m channels.Mark) error {
	if !c.cfg.Reactions || m != channels.Done && !c.pace.spare() {
		return nil
	}
	chat, _, moved, err := c.place(ctx, at)
	id, ok := messageNumber(message, moved)
	if err != nil || !ok { // not ok: the press of a button, or from before the group moved
		return err
	}
	p := &bot.SetMessageReactionParams{ChatID: chat, MessageID: id}
	if emoji := marks[m]; emoji != "" {
		p.Reaction = []models.ReactionType{{Type: models.ReactionTypeTypeEmoji, ReactionTypeEmoji: &models.ReactionTypeEmoji{Emoji: emoji}}}
	}
	_, err = c.api.SetMessageReaction(ctx, p)
	return c.refused("react", err)
}
