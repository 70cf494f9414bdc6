// Package channeltest has a chat network in memory, and the test that every channel passes.
package channeltest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"parley/channels"
	"parley/chat"
)

// A Fake is a chat network in memory. Its fields are set before use. As makes
// it a channel with some of the optional powers.
type Fake struct {
	Limit int           // runes in one message, for Splits
	Every time.Duration // least time between edits, for Edits

	Files   map[string][]byte // by Ref, for Fetches; others are gone
	Choices int               // most buttons of a question, for Asks; 0 for 8

	// Hook, if any, is called before each operation, by many goroutines. The
	// operation fails with its error: ErrLost after it took effect, others before.
	Hook func(Op) error

	mu    sync.Mutex
	chats map[chat.Address][]message
	marks map[string]channels.Mark // message ID -> what it is marked with
	ops   []Op
	last  int
	heard chan said
	once  sync.Once
}

// ErrLost is what a Hook returns to lose the answer of the network but not the request.
var ErrLost = errors.New("connection lost")

// An Op is something that was asked of the network.
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
	Step   Kind = "step"
)

type message struct {
	receipt channels.Receipt
	text    string
	ask     *chat.Question // with its buttons
}

type said struct {
	m    chat.Message
	done chan error
}

// Say has m said to the channel, which must be running, and returns what
// deliver returned for it: the network considers m received if that is nil.
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

// Shown returns what the messages at that address say, oldest first.
func (f *Fake) Shown(at chat.Address) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var texts []string
	for _, m := range f.chats[at] {
		texts = append(texts, m.text)
	}
	return texts
}

// Mark returns what the message with that ID is marked with.
func (f *Fake) Mark(id string) channels.Mark {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.marks[id]
}

// Press has from press a button of the question at that address, as the message
// with that ID, and returns what deliver returned, or false if no message there
// has that button.
func (f *Fake) Press(ctx context.Context, at chat.Address, id, question string, choice int, from chat.Sender) (bool, error) {
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

// Ops returns what was asked so far, whether it took effect or not.
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

// A Power is an optional power of a channel.
type Power int

// The powers. Menus goes with no other, Streams with Steps only.
const (
	Splits Power = 1 << iota
	Edits
	Types
	Streams
	Menus
	Fetches
	Asks
	Reacts
	Steps
	Directs

	All = Splits | Edits | Types | Fetches | Asks | Reacts | Directs
)

// As returns f as a channel with those powers. Edits can delete, too.
func (f *Fake) As(powers Power) channels.Channel {
	switch powers {
	case 0:
		return plain{f}
	case Splits:
		return struct {
			plain
			splitter
		}{plain{f}, splitter{f}}
	case Edits:
		return struct {
			plain
			editor
		}{plain{f}, editor{f}}
	case Types:
		return struct {
			plain
			typer
		}{plain{f}, typer{f}}
	case Splits | Edits:
		return struct {
			plain
			splitter
			editor
		}{plain{f}, splitter{f}, editor{f}}
	case Splits | Edits | Types:
		return struct {
			plain
			splitter
			editor
			typer
		}{plain{f}, splitter{f}, editor{f}, typer{f}}
	case Streams:
		return struct {
			plain
			streamer
		}{plain{f}, streamer{f}}
	case Menus:
		return struct {
			plain
			commander
		}{plain{f}, commander{f}}
	case Streams | Steps:
		return struct {
			plain
			streamer
			stepper
		}{plain{f}, streamer{f}, stepper{f}}
	case Fetches:
		return struct {
			plain
			fetcher
		}{plain{f}, fetcher{f}}
	case Splits | Edits | Asks:
		return struct {
			plain
			splitter
			editor
			asker
		}{plain{f}, splitter{f}, editor{f}, asker{f}}
	case Reacts:
		return struct {
			plain
			reactor
		}{plain{f}, reactor{f}}
	case Directs:
		return struct {
			plain
			director
		}{plain{f}, director{f}}
	case All:
		return struct {
			plain
			splitter
			editor
			typer
			fetcher
			asker
			reactor
			director
		}{plain{f}, splitter{f}, editor{f}, typer{f}, fetcher{f}, asker{f}, reactor{f}, director{f}}
	}
	panic(fmt.Sprintf("channeltest: no fake with the powers %b", powers))
}

type plain struct{ f *Fake }

// Run implements [channels.Channel].
func (p plain) Run(ctx context.Context, deliver chat.Deliver) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case s := <-p.f.intake():
			wg.Go(func() { s.done <- deliver(ctx, s.m) })
		case <-ctx.Done():
			return nil
		}
	}
}

// Send implements [channels.Channel].
func (p plain) Send(ctx context.Context, r chat.Reply) (rc channels.Receipt, err error) {
	err = p.f.do(ctx, Op{Kind: Send, Reply: r}, func() error {
		p.f.last++
		rc = channels.Receipt(fmt.Sprint("m", p.f.last))
		p.f.chats[r.To] = append(p.f.chats[r.To], message{rc, r.Text, r.Ask})
		return nil
	})
	if err != nil {
		return "", err
	}
	return rc, nil
}

type splitter struct{ f *Fake }

// Split cuts at the last blank before the limit.
func (s splitter) Split(r chat.Reply) []chat.Reply {
	var parts []chat.Reply
	for rest := r.Text; rest != ""; {
		cut := len(rest)
		if s.f.Limit > 0 && utf8.RuneCountInString(rest) > s.f.Limit {
			cut = len(string([]rune(rest)[:s.f.Limit]))
			if blank := strings.LastIndexByte(rest[:cut], ' '); blank > 0 {
				cut = blank
			}
		}
		part := r
		part.Text, part.Files, part.Native = rest[:cut], nil, true
		parts = append(parts, part)
		rest = strings.TrimLeft(rest[cut:], " ")
	}
	if len(r.Files) > 0 {
		part := r
		part.Text, part.Native = "", true
		parts = append(parts, part)
	}
	return parts
}

type editor struct{ f *Fake }

// Edit implements [channels.Editor].
func (e editor) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	return e.f.do(ctx, Op{Kind: Edit, Receipt: rc, Reply: r}, func() error {
		m, err := e.f.find(r.To, rc)
		if err == nil {
			m.text, m.ask = r.Text, r.Ask
		}
		return err
	})
}

// EditEvery implements [channels.Editor].
func (e editor) EditEvery(chat.Address) time.Duration { return max(e.f.Every, time.Millisecond) }

// Delete implements [channels.Deleter].
func (e editor) Delete(ctx context.Context, at chat.Address, rc channels.Receipt) error {
	return e.f.do(ctx, Op{Kind: Delete, Receipt: rc, Reply: chat.Reply{To: at}}, func() error {
		e.f.chats[at] = slices.DeleteFunc(e.f.chats[at], func(m message) bool { return m.receipt == rc })
		return nil
	})
}

type typer struct{ f *Fake }

// Typing implements [channels.Typer].
func (t typer) Typing(ctx context.Context, at chat.Address) error {
	return t.f.do(ctx, Op{Kind: Typing, Reply: chat.Reply{To: at}}, func() error { return nil })
}

type streamer struct{ f *Fake }

// Stream implements [channels.Streamer].
func (s streamer) Stream(r chat.Reply) {
	_ = s.f.do(context.Background(), Op{Kind: Stream, Reply: r}, func() error { return nil })
}

type commander struct{ f *Fake }

// SetCommands implements [channels.Commander].
func (c commander) SetCommands(ctx context.Context, cs []channels.Command) error {
	var names []string
	for _, command := range cs {
		names = append(names, command.Name)
	}
	r := chat.Reply{Text: strings.Join(names, " ")}
	return c.f.do(ctx, Op{Kind: Menu, Reply: r}, func() error { return nil })
}

type stepper struct{ f *Fake }

// Step implements [channels.Stepper].
func (s stepper) Step(r chat.Reply, step chat.Step) {
	_ = s.f.do(context.Background(), Op{Kind: Step, Reply: r, Step: step}, func() error { return nil })
}

type fetcher struct{ f *Fake }

// Fetch implements [channels.Fetcher].
func (f fetcher) Fetch(ctx context.Context, m chat.Message, file chat.File) (body io.ReadCloser, err error) {
	err = f.f.do(ctx, Op{Kind: Fetch, Reply: chat.Reply{To: m.At}, Message: m.ID}, func() error {
		data, ok := f.f.Files[file.Ref]
		if !ok {
			return &channels.Error{Permanent: true, Err: errors.New("file not found")}
		}
		body = io.NopCloser(bytes.NewReader(data))
		return nil
	})
	if err != nil {
		return nil, err
	}
	return body, nil
}

type asker struct{ f *Fake }

// MaxChoices implements [channels.Asker].
func (a asker) MaxChoices() int { return cmp.Or(a.f.Choices, 8) }

type reactor struct{ f *Fake }

// React implements [channels.Reactor].
func (r reactor) React(ctx context.Context, at chat.Address, id string, m channels.Mark) error {
	return r.f.do(ctx, Op{Kind: React, Reply: chat.Reply{To: at}, Message: id, Mark: m}, func() error {
		if r.f.marks == nil {
			r.f.marks = map[string]channels.Mark{}
		}
		r.f.marks[id] = m
		return nil
	})
}

type director struct{ f *Fake }

// Direct implements [channels.Director]: a person's chat has their ID.
func (d director) Direct(id string) chat.Address { return chat.Address{Chat: id} }
