// Package message is the tool by which the agent speaks before its turn ends, or in another chat.
package message

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/chat"
	"parley/tools"
)

type args struct {
	Text    string `json:"text" jsonschema:"what to say, in Markdown" limit:"min=1"`
	Channel string `json:"channel,omitempty" jsonschema:"the channel of another chat, such as telegram; leave out for this one"`
	Chat    string `json:"chat,omitempty" jsonschema:"another chat, as its id or as channel:id; leave out for this one"`
}

const description = "Say something in the chat now, before your work is done, or in another chat of the same person. " +
	"Your final answer is sent without it: do not say the same thing twice."

// What the model reads (D-087).
var (
	errNoTarget = errors.New("No target channel/chat specified") //nolint:staticcheck // a sentence
	errNoSend   = errors.New("Message sending not configured")   //nolint:staticcheck // a sentence
)

// New returns the tool. Owners may have the agent speak anywhere, others only
// where they are (R-S23). send may be nil: then the tool says that it is not
// configured.
func New(send chat.Send) tools.Tool {
	t := tools.New("message", description, func(ctx context.Context, c tools.Call, in args) (tools.Result, error) {
		to, err := target(c.At, in)
		if err != nil {
			return tools.Result{}, err
		}
		if to != c.At {
			if err := ownersOnly(c.From, to); err != nil {
				return tools.Failf(tools.CodeDenied, "%v", err), nil
			}
		}
		if send == nil {
			return tools.Result{}, errNoSend
		}
		r := chat.Reply{ID: "tool:" + c.Key(), To: to, Text: in.Text, Group: c.Group && to == c.At}
		if err := send(ctx, r); err != nil {
			return tools.Result{}, fmt.Errorf("send to %s: %w", to.Session(), err)
		}
		return tools.Result{Text: fmt.Sprintf("Message sent to %s", to.Session())}, nil
	})
	t.Category = "message"
	t.Aliases = map[string]string{"content": "text", "message": "text", "chat_id": "chat", "to": "chat"}
	return t
}

func ownersOnly(from chat.Sender, to chat.Address) error {
	if from.Role == chat.Owner {
		return nil
	}
	return fmt.Errorf("only an owner may send to %s: leave out channel and chat to send to this chat", to.Session())
}

// target returns where to speak: here, or as in says. A chat may be written
// as a session is: "telegram:42", "telegram:-100/7".
func target(here chat.Address, in args) (chat.Address, error) {
	channel, id := in.Channel, in.Chat
	if i := strings.LastIndexByte(id, ':'); i >= 0 && (channel == "" || channel == id[:i]) {
		channel, id = id[:i], id[i+1:]
	}
	to := chat.Address{Channel: cmp.Or(channel, here.Channel)}
	to.Chat, to.Thread, _ = strings.Cut(id, "/")
	if to.Channel == here.Channel && (in.Chat == "" || to.Chat == here.Chat && to.Thread == "") {
		to = here
	}
	if to.Channel == "" || to.Chat == "" {
		return to, errNoTarget
	}
	return to, nil
}
