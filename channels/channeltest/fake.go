// Package channeltest provides a chat network in memory, and the conformance test of
// channels.
package channeltest

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"parley/channels"
	"parley/chat"
)

// A Fake is a chat network in memory. Its fields are set before use. As makes it a
// channel with some of the optional interfaces.
type Fake struct {
	Limit int           // runes in one message
	Every time.Duration // least time between edits

	Files   map[string][]byte // by Ref; others do not exist
	Choices int               // maximum number of buttons of a question; 0: 8

	// Recognizes means that a reply whose ID a message of the chat has is not sent again but
	// changes that message, as with the nonces of Discord.
	Recognizes bool

	// Hook, if not nil, is called before each operation, concurrently. The operation
	// fails with its error: with ErrLost after it took effect, with others before.
	Hook func(Op) error

	mu    sync.Mutex
	chats map[chat.Address][]message
	marks map[string]channels.Mark // by message ID
	ops   []Op
	last  int
	heard chan said
	once  sync.Once
}

// ErrLost is returned by a Hook to lose the response of the network but not the request.
var ErrLost = errors.New("connection lost")

// An Op is a request to the network.
type Op struct {
	Kind    Kind
	Receipt channels.Receipt // for Edit and Delete
	Reply   chat.Reply       // for Typing, Delete and React, To only
	Message string           // for React and Fetch: its ID
	Mark    channels.Mark    // for React
	Step    chat.Step        // for Step
	Time    time.Time
}

// A Kind is the kind of an Op.
type Kind string

// The kinds.
const (
	Send   Kind = "send"
	Edit   Kind = "edit"
	Delete Kind = "delete"
	Typing Kind = "typing"
	Stream Kind = "stream"
	Menu   Kind = "menu"
	Fetch  Kind = "fetch"
	React  Kind = "react"
	Trace  Kind = "trace"
	Step   Kind = "step"
)

type message struct {
	receipt channels.Receipt
	text    string
	ask     *chat.Question // with its buttons
	reply   string         // ID of the reply that it was sent for
}

type said struct {
	m    chat.Message
	done chan error
}

// Say passes m to the channel, which must be running, and returns what deliver returned:
// the network considers m received if that is nil.
func (f *Fake) Say(ctx context.Context, m chat.Message) error {
	s := said{m, make(chan error, 1)}
	select {
	case f.intake() <- s:
		return <-s.done
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (f *Fake) intake() chan said {
	f.once.Do(func() { f.heard = make(chan said) })
	return f.heard
}

// Shown returns the texts of the messages at that address, oldest first.
func (f *Fake) Shown(at chat.Address) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var texts []string
	for _, m := range f.chats[at] {
		texts = append(texts, m.text)
	}
	return texts
}

// Mark returns the mark of the message with that ID.
func (f *Fake) Mark(id string) channels.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[id]
}

// Press presses a button of the question at that address for from, in a message with that
// ID, and returns what deliver returned, or false if no message there has that button.
func (f *Fake) Press(
	ctx context.Context, at chat.Address, id, question string, choice int, from chat.Sender,
) (bool, error) {
	rc, ok := f.button(at, question, choice)
	if !ok {
		return false, nil
	}
	return true, f.Say(ctx, chat.Message{ID: id, At: at, From: from, Time: time.Now(),
		Answer: &chat.Answer{Question: question, Choice: choice, Receipt: string(rc)}})
}

// button finds the message with that button.
func (f *Fake) button(at chat.Address, question string, choice int) (channels.Receipt, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.chats[at] {
		if m.ask != nil && m.ask.ID == question && choice >= 0 && choice < len(m.ask.Choices) {
			return m.receipt, true
		}
	}
	return "", false
}

// Forget deletes message i at that address, as a person may.
func (f *Fake) Forget(at chat.Address, i int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.chats[at] = slices.Delete(f.chats[at], i, i+1)
}

// Ops returns the requests so far, whether they took effect or not.
func (f *Fake) Ops(kinds ...Kind) []Op {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ops []Op
	for _, op := range f.ops {
		if len(kinds) == 0 || slices.Contains(kinds, op.Kind) {
			ops = append(ops, op)
		}
	}
	return ops
}

// do records op and lets it take effect, if the Hook and the context agree.
func (f *Fake) do(ctx context.Context, op Op, effect func() error) error {
	op.Time = time.Now()
	f.mu.Lock()
	f.ops = append(f.ops, op)
	f.mu.Unlock()
	var err error
	if f.Hook != nil {
		err = f.Hook(op)
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil && !errors.Is(err, ErrLost) {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.chats == nil {
		f.chats = map[chat.Address][]message{}
	}
	return errors.Join(effect(), err)
}

// find returns the message of rc at that address.
func (f *Fake) find(at chat.Address, rc channels.Receipt) (*message, error) {
	for i := range f.chats[at] {
		if f.chats[at][i].receipt == rc {
			return &f.chats[at][i], nil
		}
	}
	return nil, &channels.Error{Permanent: true, Err: errors.New("message not found")}
}
