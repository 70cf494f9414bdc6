package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"parley/scheduler/jobs"
	"parley/store"
)

type waitInput struct {
	Session string   `json:"session,omitempty" jsonschema:"name of your coding session; default: code"`
	Seconds int      `json:"timeout_seconds,omitempty" jsonschema:"how long to wait, at most 600; default 30"`
	Known   []string `json:"known,omitempty" jsonschema:"IDs of messages that you have and did not acknowledge yet"`
}

type codingMessage struct {
	ID   string    `json:"id"`
	From string    `json:"from"`
	Chat string    `json:"chat"`
	Time time.Time `json:"time"`
	Text string    `json:"text"`
}

type codingMessages struct {
	Messages []codingMessage `json:"messages" jsonschema:"the oldest first; none if nobody wrote"`
}

type ackInput struct {
	IDs []string `json:"message_ids"`
}

type replyInput struct {
	ID   string `json:"message_id" jsonschema:"the message that you answer; it is acknowledged"`
	Text string `json:"text" jsonschema:"what to say, in Markdown"`
	Key  string `json:"key,omitempty" jsonschema:"for a further reply with the same text"`
}

const (
	usualWait = 30  // seconds
	maxWait   = 600 // seconds
)

// waitForMessage implements wait_for_message.
func (a *api) waitForMessage(ctx context.Context, _ request, in waitInput) (out codingMessages, err error) {
	own, err := a.own()
	if err != nil {
		return out, err
	}
	if in.Session != "" && !sessionForm.MatchString(in.Session) {
		return out, errSessionForm
	}
	seconds := min(max(cmp.Or(in.Seconds, usualWait), 0), maxWait)
	ctx, stop := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	var watching sync.WaitGroup
	defer watching.Wait()
	defer stop()
	watching.Go(func() {
		select {
		case <-a.closing:
			stop()
		case <-ctx.Done():
		}
	})
	messages, err := a.inbox.wait(ctx, inboxPrefix(own.Whose(), in.Session), in.Known)
	if err != nil {
		return out, a.inboxFault(err)
	}
	out.Messages = []codingMessage{}
	for _, m := range messages {
		out.Messages = append(out.Messages, codingMessage{
			ID: m.ID, From: cmp.Or(m.From.Name, m.From.ID), Chat: string(m.Chat.Session()), Time: m.Time, Text: m.Text,
		})
	}
	return out, nil
}

// inboxFault returns what to tell a caller of err.
func (a *api) inboxFault(err error) error {
	a.cfg.Log.Error("messages to a coding session could not be read or changed", "err", err)
	return errors.New("the messages are out of reach at present: try again")
}

// message returns a message to the caller's coding sessions, and its key.
func (a *api) message(ctx context.Context, id string) (m message, key string, err error) {
	own, err := a.own()
	if err != nil {
		return message{}, "", err
	}
	m, key, err = a.inbox.find(ctx, own.Whose(), id)
	if errors.Is(err, store.ErrNotFound) {
		return message{}, "", fmt.Errorf("there is no message %q", id)
	}
	if err != nil {
		return message{}, "", a.inboxFault(err)
	}
	return m, key, nil
}

// reply implements reply. The reply is in the outbox before the message is acknowledged.
func (a *api) reply(ctx context.Context, r request, in replyInput) (sendOutput, error) {
	m, key, err := a.message(ctx, in.ID)
	if err != nil {
		return sendOutput{}, err
	}
	args := map[string]any{"text": a.cfg.Texts.Reply.With(m.Session, in.Text)}
	at := jobs.Asker{At: m.Chat, From: m.From}
	if _, err := a.run(ctx, r, at, "reply:"+in.ID+in.Key, "message", args); err != nil {
		return sendOutput{}, err
	}
	if err := a.inbox.acknowledge(ctx, key); err != nil {
		return sendOutput{}, a.inboxFault(err)
	}
	return sendOutput{Chat: string(m.Chat.Session())}, nil
}

// acknowledge implements acknowledge.
func (a *api) acknowledge(ctx context.Context, _ request, in ackInput) (done, error) {
	for _, id := range in.IDs {
		_, key, err := a.message(ctx, id)
		if err != nil {
			return done{}, err
		}
		if err := a.inbox.acknowledge(ctx, key); err != nil {
			return done{}, a.inboxFault(err)
		}
	}
	return done{Text: fmt.Sprintf("acknowledged: %d", len(in.IDs))}, nil
}
