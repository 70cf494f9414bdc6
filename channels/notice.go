package channels

import (
	"context"
	"errors"

	"parley/chat"
	"parley/store"
)

// notice tells the chat of m that m waits, if err says that the disk is full
// (P19), once until a message of the chat is taken. It goes past the outbox,
// which is on the same disk, and is tried once.
func (l *line) notice(m chat.Message, err error) {
	if err == nil {
		l.noticed.Delete(m.At)
	}
	if !errors.Is(err, store.ErrFull) {
		return
	}
	if _, told := l.noticed.LoadOrStore(m.At, true); told {
		return
	}
	r := chat.Reply{ID: "full:" + m.Key(), To: m.At, // no Quote: what waits is not answered
		Text: "My disk is full, so your message has to wait. I take it as soon as there is space again."}
	l.errand("tell the chat that the disk is full", func(ctx context.Context) error {
		if _, waits := l.noticed.Load(m.At); !waits {
			return nil
		}
		parts, err := l.parts(r)
		for _, part := range parts {
			_, err = l.Send(ctx, part)
		}
		return err
	})
}
