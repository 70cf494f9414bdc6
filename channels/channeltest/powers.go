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

// A Power is an optional interface of a channel.
type Power int

// The powers. Splits and Edits go together, and Streams and Steps.
const (
	Splits Power = 1 << iota
	Edits
	Streams
	Steps
	Menus
	Traces // goes together with Splits and Edits
	Forms
	All // but the five before
)

// As returns f as a channel with those optional interfaces.
func (f *Fake) As(powers Power) channels.Channel {
	n := network{f, &memory{}}
	switch powers {
	case 0:
		return struct{ channels.Channel }{n}
	case Splits:
		return struct {
			channels.Channel
			channels.Splitter
		}{n, n}
	case Edits:
		return struct {
			channels.Channel
			channels.Editor
		}{n, n}
	case Splits | Edits:
		return struct {
			channels.Channel
			channels.Splitter
			channels.Editor
		}{n, n, n}
	case Splits | Edits | Traces:
		return struct {
			channels.Channel
			channels.Splitter
			channels.Editor
			channels.Tracer
		}{n, n, n, n}
	case Streams:
		return struct {
			channels.Channel
			channels.Streamer
		}{n, n}
	case Streams | Steps:
		return struct {
			channels.Channel
			channels.Stepper
		}{n, n}
	case Menus:
		return struct {
			channels.Channel
			channels.CommandMenu
		}{n, n}
	case All:
		return struct {
			channels.Channel
			channels.Splitter
			channels.Editor
			channels.Typer
			channels.Fetcher
			channels.Reactor
			channels.DirectMessenger
			choices
		}{n, n, n, n, n, n, n, n}
	case Forms:
		return struct {
			channels.Channel
			channels.FormShower
		}{n, n}
	}
	panic(fmt.Sprintf("channeltest: no fake with the powers %b", powers))
}

// choices make an Editor a channels.Asker.
type choices interface{ MaxChoices() int }

// A network implements all the optional interfaces.
type network struct {
	f   *Fake
	own *memory
}

// A memory holds what one process knows of the numbers of messages.
type memory struct {
	mu    sync.Mutex
	last  int
	known map[int]bool
}

// note remembers a message, unless it only tells how far the numbers have come.
func (o *memory) note(number int, known bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.last = max(o.last, number); known {
		if o.known == nil {
			o.known = map[int]bool{}
		}
		o.known[number] = true
	}
}

// numberOf is the number in a receipt.
func numberOf(rc channels.Receipt) (number int) {
	_, _ = fmt.Sscanf(string(rc), "m%d", &number) // 0 for none
	return number
}

// Position implements [channels.Tracer].
func (n network) Position(context.Context, chat.Reply) (channels.Position, error) {
	n.own.mu.Lock()
	defer n.own.mu.Unlock()
	return channels.Position(n.own.last + 1), nil // never 0, which means unknown
}

// Recall implements [channels.Tracer].
func (n network) Recall(_ context.Context, _ chat.Address, p channels.Position) error {
	n.own.note(int(p)-1, false)
	return nil
}

// Trace implements [channels.Tracer]. As with a real network, any message in that place is
// taken for the wanted one.
func (n network) Trace(ctx context.Context, r chat.Reply, after channels.Position) (rc channels.Receipt, err error) {
	err = n.f.do(ctx, Op{Kind: Trace, Reply: r}, func() error {
		for at, ms := range n.f.chats {
			for _, m := range ms {
				number := numberOf(m.receipt)
				if at.Chat == r.To.Chat && number >= int(after) && !n.own.known[number] && (rc == "" || number < numberOf(rc)) {
					rc = m.receipt
				}
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	n.own.note(numberOf(rc), rc != "")
	return rc, nil
}

// Run implements [channels.Channel].
func (n network) Run(ctx context.Context, deliver chat.Deliver) error {
	var wg sync.WaitGroup
	defer wg.Wait()
	for {
		select {
		case s := <-n.f.intake():
			wg.Go(func() { s.done <- deliver(ctx, s.m) })
		case <-ctx.Done():
			return nil
		}
	}
}

// Send implements [channels.Channel].
func (n network) Send(ctx context.Context, r chat.Reply) (rc channels.Receipt, err error) {
	err = n.f.do(ctx, Op{Kind: Send, Reply: r}, func() error {
		for i, m := range n.f.chats[r.To] {
			if n.f.Recognizes && m.reply == r.ID {
				rc = m.receipt
				n.f.chats[r.To][i].text = r.Text
				return nil
			}
		}
		n.f.last++
		rc = channels.Receipt(fmt.Sprint("m", n.f.last))
		n.f.chats[r.To] = append(n.f.chats[r.To], message{rc, r.Text, r.Ask, r.ID})
		return nil
	})
	if err != nil {
		return "", err
	}
	n.own.note(numberOf(rc), true)
	return rc, nil
}

// Split cuts at the last blank before the limit.
func (n network) Split(text string) (parts []string) {
	for rest := text; rest != ""; {
		cut := len(rest)
		if n.f.Limit > 0 && utf8.RuneCountInString(rest) > n.f.Limit {
			cut = len(string([]rune(rest)[:n.f.Limit]))
			if blank := strings.LastIndexByte(rest[:cut], ' '); blank > 0 {
				cut = blank
			}
		}
		parts = append(parts, rest[:cut])
		rest = strings.TrimLeft(rest[cut:], " ")
	}
	return parts
}

// Group puts all files together.
func (network) Group(files []chat.File) (groups [][]chat.File) {
	if len(files) > 0 {
		groups = append(groups, files)
	}
	return groups
}

// Edit implements [channels.Editor].
func (n network) Edit(ctx context.Context, rc channels.Receipt, r chat.Reply) error {
	return n.f.do(ctx, Op{Kind: Edit, Receipt: rc, Reply: r}, func() error {
		m, err := n.f.find(r.To, rc)
		if err == nil {
			m.text, m.ask = r.Text, r.Ask
		}
		return err
	})
}

// EditEvery implements [channels.Editor].
func (n network) EditEvery(chat.Address) time.Duration { return max(n.f.Every, time.Millisecond) }

// Delete implements [channels.Editor].
func (n network) Delete(ctx context.Context, at chat.Address, rc channels.Receipt) error {
	return n.f.do(ctx, Op{Kind: Delete, Receipt: rc, Reply: chat.Reply{To: at}}, func() error {
		n.f.chats[at] = slices.DeleteFunc(n.f.chats[at], func(m message) bool { return m.receipt == rc })
		return nil
	})
}

// Typing implements [channels.Typer].
func (n network) Typing(ctx context.Context, at chat.Address) error {
	return n.f.do(ctx, Op{Kind: Typing, Reply: chat.Reply{To: at}}, func() error { return nil })
}

// Stream implements [channels.Streamer].
func (n network) Stream(r chat.Reply) {
	_ = n.f.do(context.Background(), Op{Kind: Stream, Reply: r}, func() error { return nil })
}

// SetCommands implements [channels.CommandMenu].
func (n network) SetCommands(ctx context.Context, cs []channels.Command) error {
	var names []string
	for _, command := range cs {
		names = append(names, command.Name)
	}
	r := chat.Reply{Text: strings.Join(names, " ")}
	return n.f.do(ctx, Op{Kind: Menu, Reply: r}, func() error { return nil })
}

// Step implements [channels.Stepper].
func (n network) Step(r chat.Reply, step chat.Step) {
	_ = n.f.do(context.Background(), Op{Kind: Step, Reply: r, Step: step}, func() error { return nil })
}

// Fetch implements [channels.Fetcher].
func (n network) Fetch(ctx context.Context, m chat.Message, file chat.File) (body io.ReadCloser, err error) {
	err = n.f.do(ctx, Op{Kind: Fetch, Reply: chat.Reply{To: m.At}, Message: m.ID}, func() error {
		data, ok := n.f.Files[file.Ref]
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

// MaxChoices implements [channels.Asker].
func (n network) MaxChoices() int { return cmp.Or(n.f.Choices, 8) }

// MaxFields implements [channels.FormShower].
func (network) MaxFields() int { return 3 }

// React implements [channels.Reactor].
func (n network) React(ctx context.Context, at chat.Address, id string, m channels.Mark) error {
	return n.f.do(ctx, Op{Kind: React, Reply: chat.Reply{To: at}, Message: id, Mark: m}, func() error {
		if n.f.marks == nil {
			n.f.marks = map[string]channels.Mark{}
		}
		n.f.marks[id] = m
		return nil
	})
}

// Direct implements [channels.DirectMessenger]: a person's chat has their ID.
func (n network) Direct(id string) chat.Address { return chat.Address{Chat: id} }
