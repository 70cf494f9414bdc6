package network

import (
	"fmt"
	"strconv"

	"parley/channels"
	"parley/chat"
	"parley/lazyregexp"
)

// Button returns the data that the button of choice i of q carries.
func Button(q *chat.Question, i int) string { return fmt.Sprintf("q:%s:%d", q.ID, i) }

// buttonForm matches the data of a Button: group 1 is the ID of its question, 2
// the number of its choice.
var buttonForm = lazyregexp.New(`^q:([A-Za-z0-9]{1,32}):([0-9]{1,2})$`)

// Pressed returns the answer that a button press gives: data is what the button
// carries, and rc the message it belongs to. It returns nil for data in another
// form, since whoever sees a button can send anything as a press of it.
func Pressed(data string, rc channels.Receipt) *chat.Answer {
	form := buttonForm.FindStringSubmatch(data)
	if form == nil {
		return nil
	}
	choice, _ := strconv.Atoi(form[2]) // two digits
	return &chat.Answer{Question: form[1], Choice: choice, Receipt: string(rc)}
}
