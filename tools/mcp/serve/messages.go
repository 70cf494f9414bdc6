package serve

import (
	"cmp"
	"context"
	"errors"
)

type sendInput struct {
	Text string `json:"text" jsonschema:"what to say, in Markdown"`
	Chat string `json:"chat,omitempty" jsonschema:"default: the person's own; owners may name one, such as telegram:42"`
	Key  string `json:"key,omitempty" jsonschema:"your own; the same message is sent once under it"`
}

type sendOutput struct {
	Chat string `json:"chat" jsonschema:"to which the message is sent, also after a restart"`
}

// send implements send_message.
func (a *api) send(ctx context.Context, r request, in sendInput) (sendOutput, error) {
	own, err := a.own()
	if err != nil {
		return sendOutput{}, err
	}
	args := map[string]any{"text": in.Text}
	to := cmp.Or(in.Chat, string(own.At.Session()))
	if in.Chat != "" {
		args["chat"] = in.Chat
	} else if own.At.Channel == "api" {
		return sendOutput{}, errors.New("no owner can be written to: name a chat, such as telegram:42")
	}
	_, err = a.run(ctx, r, own, in.Key, "message", args)
	return sendOutput{Chat: to}, err
}
