package api

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strings"
	"time"

	"parley/channels/network"
	"parley/chat"
	"parley/response"
)

// A Question is a message that this program asks for somebody, without a request to the endpoint.
type Question struct {
	Text    string
	Session string // name of the conversation; "": a new one
	Key     string // the same question under the same key is asked once (P3); "": it is asked anew

	Stop <-chan struct{} // closed when the turn is to be stopped; nil: never
	Step func(chat.Step) // is told of tools at work, and must not block; may be nil
}

// An Answer is what the agent said to a [Question].
type Answer struct {
	Text    string
	Session string // under which the conversation goes on
	Tokens  chat.Tokens
}

// stopPrefix begins the IDs of messages that stop the turn of a question.
const stopPrefix = "stop:"

// Ask asks q for who and waits for the answer, as a request with a key that has prefix does. If ctx ends, the
// turn goes on, and asking again under the same key waits for its answer. The error is a [response.Problem],
// ctx's or ErrStopped.
func (c *Channel) Ask(ctx context.Context, who chat.Sender, prefix string, q Question) (Answer, error) {
	if strings.TrimSpace(q.Text) == "" {
		return Answer{}, invalid("message", "The message must not be empty.")
	}
	r := &request{
		Model:    Name,
		Messages: messages{{Role: "user", Content: content{{Type: "text", Text: q.Text}}}},
		name:     safeName(q.Session),
		newTurns: []textMessage{{Role: "user", Text: q.Text}},
		at:       chat.Address{Channel: c.cfg.Name, Chat: who.ID, Thread: prefix},
	}
	w := &waiter{
		id:      r.messageID(cmp.Or(q.Key, rand.Text())),
		model:   Name,
		prefix:  prefix,
		step:    q.Step,
		changed: make(chan struct{}, 1),
	}
	w.leave = c.addWaiter(w.id, w)
	defer w.leave()
	if err := c.startRequest(context.WithoutCancel(ctx), r, w.id, who, w); err != nil {
		c.cfg.Log.Warn("question not accepted", "session", r.at.Session(), "err", err)
		return Answer{}, problemOf(err)
	}
	return c.waitForAnswer(ctx, w, who, q.Stop)
}

// ErrStopped is returned by [Channel.Ask] when whoever asked wants no answer any more.
var ErrStopped = errors.New("stopped")

// waitForAnswer returns the answer that w gets.
func (c *Channel) waitForAnswer(
	ctx context.Context, w *waiter, who chat.Sender, stop <-chan struct{},
) (Answer, error) {
	timeout := time.NewTimer(maxAnswerWait)
	defer timeout.Stop()
	for {
		select {
		case <-w.changed:
		case <-stop:
			c.stopTurn(w, who)
			return Answer{}, ErrStopped
		case <-ctx.Done():
			return Answer{}, ctx.Err()
		case <-c.openCtx.Done():
			return Answer{}, problemOf(network.ErrShut)
		case <-timeout.C:
			return Answer{}, response.Problem{Text: "The answer takes too long. It will be in the session."}
		}
		c.mu.Lock()
		a := Answer{Text: w.text, Session: strings.TrimPrefix(strings.TrimPrefix(w.at.Thread, w.prefix), nameSeparator)}
		done := w.done
		fault := w.fault
		if w.outcome.tokens != nil {
			a.Tokens = *w.outcome.tokens
		}
		c.mu.Unlock()
		if fault != "" {
			return Answer{}, response.Problem{Text: fault}
		}
		if done {
			return a, nil
		}
	}
}

// stopTurn stops the turn that answers w. What it has said so far becomes the answer.
func (c *Channel) stopTurn(w *waiter, who chat.Sender) {
	c.mu.Lock()
	at := w.at
	c.mu.Unlock()
	stop := chat.Message{ID: stopPrefix + w.id, At: at, From: who, Text: "/stop", Time: time.Now()}
	if err := c.intake.Deliver(stop); err != nil {
		c.cfg.Log.Warn("turn not stopped", "session", at.Session(), "err", err)
	}
}

// Step implements [channels.Stepper].
func (c *Channel) Step(r chat.Reply, s chat.Step) {
	c.mu.Lock()
	waiting := slices.Clone(c.waiting[r.Quote])
	c.mu.Unlock()
	for _, w := range waiting {
		if w.step != nil {
			w.step(s)
		}
	}
}
