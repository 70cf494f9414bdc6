package channels_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"parley/channels"
	"parley/chat"
)

// Lines is a whole driver: a chat in which each line is a message.
type Lines struct{ In io.Reader }

func (l Lines) Run(ctx context.Context, deliver chat.Deliver) error {
	in := bufio.NewScanner(l.In)
	for n := 1; in.Scan() && ctx.Err() == nil; n++ {
		m := chat.Message{ID: fmt.Sprint(n), Time: time.Now(), Text: in.Text()}
		m.At.Chat, m.From.ID = "tty", "you"
		if err := deliver(ctx, m); err != nil {
			return err
		}
	}
	return in.Err()
}

func (l Lines) Send(_ context.Context, r chat.Reply) (channels.Receipt, error) {
	_, err := fmt.Println(r.Text)
	return "", err
}

func ExampleChannel() {
	var c channels.Channel = Lines{strings.NewReader("hello\n")}
	_ = c.Run(context.Background(), func(ctx context.Context, m chat.Message) error {
		r := m.Reply()
		r.Text = "You said " + m.Text
		_, err := c.Send(ctx, r)
		return err
	})
	// Output: You said hello
}
