package main

import (
	"context"
	"fmt"

	"parley/chat"
)

// checkIntake returns why m is not taken: store.ErrFull when the disk is nearly full,
// so that the network keeps m (P19), or a [*chat.Refusal] when its sender has
// sent enough for the day.
func (g *gateway) checkIntake(ctx context.Context, m chat.Message) error {
	if err := g.space.Check(); err != nil {
		return fmt.Errorf("take %s: %w", m.Key(), err)
	}
	counted := m.At.Channel == "web" || m.At.Channel == "api" // they keep what people send, and so ask before that
	if m.From.Role == chat.Owner || counted || chat.IsShortCommand(m.Text) {
		return nil
	}
	return g.pool.Budget().TakeMessage(ctx, m)
}

// takeBytes counts bytes that who sends, or returns why no more are taken.
func (g *gateway) takeBytes(ctx context.Context, who chat.Person, bytes int64) error {
	return g.pool.Budget().TakeBytes(ctx, who, bytes)
}

// maxStored is how many bytes of files a person may have in the workspace; -1 is
// no limit.
func (g *gateway) maxStored() int64 { return g.now.Load().Limits["person"].Stored }
