package main

import (
	"context"
	"errors"
	"fmt"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// admit returns why m is not taken: store.ErrFull when the disk is nearly full,
// so that the network keeps m (P19), or a [*chat.Refusal] when its sender has
// sent enough for the day.
func (h *house) admit(ctx context.Context, m chat.Message) error {
	if err := h.space.room(); err != nil {
		return fmt.Errorf("take %s: %w", m.Key(), err)
	}
	counted := m.At.Channel == "web" || m.At.Channel == "api" // they keep what people send, and so ask before that
	if m.From.Role == chat.Owner || counted || chat.IsShortCommand(m.Text) {
		return nil
	}
	bytes := len(m.Text)
	if m.Quote != nil {
		bytes += len(m.Quote.Text)
	}
	return h.takeBytes(ctx, chat.Whose(m.At, m.From, m.Group), int64(bytes))
}

// takeBytes counts bytes that who sends, or returns why no more are taken.
func (h *house) takeBytes(ctx context.Context, who chat.Person, bytes int64) error {
	return h.pool.TakeBytes(ctx, who, bytes)
}

// maxStored is how many bytes of files a person may have in the workspace; -1 is
// no limit.
func (h *house) maxStored() int64 { return h.now.Load().Limits["person"].Stored }

// countWritten counts what a person has written into files: the arguments of
// calls that change some.
func (h *house) countWritten(s tools.Scope) tools.Middleware {
	who := chat.Whose(s.At, s.From, s.Group)
	return func(t tools.Tool) tools.Tool {
		if t.ReadOnly || t.Category != "files" {
			return t
		}
		run := t.Run
		t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
			err := h.takeBytes(ctx, who, int64(len(c.Args)))
			if refusal, ok := errors.AsType[*chat.Refusal](err); ok {
				return tools.Result{Text: "Nothing was changed. " + refusal.Text, Failed: true}, nil
			} else if err != nil {
				return tools.Result{}, err
			}
			return run(ctx, c)
		}
		return t
	}
}

const (
	minReserve = 64 << 20 // bytes of the disk that are kept free, …
	maxReserve = 1 << 30
)

// reserve is how much of a disk of so many bytes is kept free for what is taken
// already: a hundredth within the bounds above, a quarter of a very small one.
func reserve(total uint64) uint64 {
	return min(max(minReserve, min(total/100, maxReserve)), total/4)
}

// A space watches the disks on which the data and the workspace are.
type space struct {
	folders []string
	look    func(folder string) (free, total uint64, known bool) // freeSpace
}

// room returns store.ErrFull when what is free is less than the reserve. A
// disk that cannot be looked at has room: writing to it will tell.
func (s space) room() error {
	for _, folder := range s.folders {
		if err := s.roomFor(folder, 0); err != nil {
			return err
		}
	}
	return nil
}

// roomFor returns store.ErrFull when folder has less room than the reserve and
// so many bytes more.
func (s space) roomFor(folder string, bytes uint64) error {
	free, total, known := s.look(folder)
	if known && free < reserve(total)+bytes {
		return fmt.Errorf("%w: %d MB are free at %s, %d MB are needed, and %d MB are kept for what was accepted before",
			store.ErrFull, free>>20, folder, bytes>>20, reserve(total)>>20)
	}
	return nil
}
