package channels

import (
	"context"
	"errors"
	"time"

	"parley/chat"
)

// offered stores the question that r asks if its choices are buttons by which
// people say something. It is stored before they can be pressed.
func (l *line) offered(ctx context.Context, r chat.Reply) error {
	if r.Ask == nil || !r.Ask.Say || !l.buttons(r.Ask) {
		return nil
	}
	if !questionID.MatchString(r.Ask.ID) || len(r.Ask.Choices) == 0 {
		return errors.New("a question needs an id of letters and digits, and choices")
	}
	_, err := l.hub.open(ctx, r)
	return err
}

// heed has the house hear what was chosen of q by the press m, and then ends q.
// The choice was stored before, and the house knows the message by its ID: q is
// heard once, however often buttons are pressed.
func (l *line) heed(ctx context.Context, q question, m chat.Message, deliver chat.Deliver) error {
	m.ID, m.At, m.From, m.Text, m.Answer = "press:"+q.Reply.Ask.ID, q.Reply.To, q.Choice.By, q.Choice.Text, nil
	m.Quote = &chat.Quote{ID: q.Reply.ID, From: "you", Text: q.Reply.Text}
	if err := l.pass(ctx, m, deliver); err != nil {
		return err
	}
	_, err := l.hub.settle(ctx, func(now *question) bool {
		found := now.Reply.Ask.ID == q.Reply.Ask.ID
		if found && !now.over() {
			now.receipt, now.Ended = q.receipt, time.Now()
		}
		return found
	})
	return err
}
