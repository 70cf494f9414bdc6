// Package channeltest has a chat network in memory, and the test that every channel passes.
package channeltest

import (
	"context"
	"errors"
	"fmt"
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

	// Hook, if any, is called before each operation, by many goroutines. The
	// operation fails with its error: ErrLost after it took effect, others before.
	Hook func(Op) error

	mu    sync.Mutex
	chats map[chat.Address][]message
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
	Reply   chat.Reply       // for Typing and Delete, To only
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
)

type message struct {
	receipt channels.Receipt
	text    string
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

// The powers. Streams and Menus go with no other.
const (
	Splits Power = 1 << iota
	Edits
	Types
	Streams
	Menus
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
		p.f.chats[r.To] = append(p.f.chats[r.To], message{rc, r.Text})
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
			m.text = r.Text
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
