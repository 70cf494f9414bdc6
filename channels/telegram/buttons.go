package telegram

import (
	"cmp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/go-telegram/bot/models"

	"parley/channels/network"
	"parley/chat"
)

const (
	maxChoices  = 10
	maxLabel    = 60 // runes of a button; a phone shows fewer
	maxRow      = 5  // buttons side by side
	maxRowWidth = 24 // runes of all of these
)

// newKeyboard returns the buttons of q, nil for none: side by side if they are
// short, four of them also in two rows. Each carries the question and its index among the choices.
func newKeyboard(q *chat.Question) models.ReplyMarkup {
	if q == nil || len(q.Choices) == 0 || len(q.Choices) > maxChoices {
		return nil
	}
	fit := func(choices []string) bool {
		return len(choices) <= maxRow && utf8.RuneCountInString(strings.Join(choices, "")) <= maxRowWidth
	}
	inRow := 1
	switch {
	case fit(q.Choices):
		inRow = len(q.Choices)
	case len(q.Choices) == 4 && fit(q.Choices[:2]) && fit(q.Choices[2:]):
		inRow = 2
	}
	var rows [][]models.InlineKeyboardButton
	for i, choice := range q.Choices {
		label := cmp.Or(chat.Shorten(chat.OneLine(choice), maxLabel), strconv.Itoa(i+1))
		button := models.InlineKeyboardButton{Text: label, CallbackData: network.Button(q, i)}
		if i%inRow == 0 {
			rows = append(rows, nil)
		}
		last := len(rows) - 1
		rows[last] = append(rows[last], button)
	}
	return models.InlineKeyboardMarkup{InlineKeyboard: rows}
}
