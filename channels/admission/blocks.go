package admission

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

// A Block keeps a sender, or a group, from being heard, whatever allow lists and pairing say.
type Block struct {
	Channel string    `json:"channel"`
	ID      string    `json:"id"`           // of the sender or of the group, on that channel
	By      string    `json:"by,omitempty"` // ID of the owner who did it
	Time    time.Time `json:"time,omitzero"`
}

// ErrOwner is returned for the block of an owner: the config says who that is.
var ErrOwner = errors.New("owners cannot be blocked")

// keepBlocked is what becomes of a Block that cannot be read: it stays one.
func keepBlocked(key string, _ error) (Block, error) {
	channel, id, _ := strings.Cut(key, "\x00")
	return Block{Channel: channel, ID: id}, nil
}

func blockKey(channel, id string) string { return channel + "\x00" + id }

// Block has nobody hear the sender, or the group, with that ID on channel any more, from the next message on. They are
// told nothing. The error is ErrOwner for an owner. Blocking twice is harmless.
func (c *Control) Block(ctx context.Context, channel, id, by string) error {
	if c.Rules().Role(channel, id) == chat.Owner {
		return ErrOwner
	}
	b := Block{Channel: channel, ID: id, By: by, Time: time.Now()}
	if err := c.blocked.Set(ctx, blockKey(channel, id), b); err != nil {
		return fmt.Errorf("block: %w", err)
	}
	c.requesting.Lock()
	defer c.requesting.Unlock()
	keep := func(_ string, p Pairing) bool { return p.At.Channel != channel || p.Sender != id || p.Granted }
	if err := c.requests.Retain(ctx, keep); err != nil { // nobody may approve what asked before
		return fmt.Errorf("block: %w", err)
	}
	c.cfg.Log.Info("blocked", "channel", channel, "id", id)
	return nil
}

// Unblock undoes Block. It reports whether there was anything to undo.
func (c *Control) Unblock(ctx context.Context, channel, id string) (found bool, err error) {
	found, err = c.IsBlocked(ctx, channel, id)
	if err != nil || !found {
		return false, err
	}
	if err := c.blocked.Delete(ctx, blockKey(channel, id)); err != nil {
		return false, fmt.Errorf("unblock: %w", err)
	}
	c.cfg.Log.Info("unblocked", "channel", channel, "id", id)
	return true, nil
}

// Blocked returns who is blocked.
func (c *Control) Blocked(ctx context.Context) (all []Block, err error) {
	for e, err := range c.blocked.Each(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("read who is blocked: %w", err)
		}
		all = append(all, e.Value)
	}
	return all, nil
}

// IsBlocked reports whether the sender, or the group, with that ID on channel is blocked.
func (c *Control) IsBlocked(ctx context.Context, channel, id string) (bool, error) {
	_, _, err := c.blocked.Get(ctx, blockKey(channel, id))
	switch {
	case errors.Is(err, store.ErrNotFound):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("look up who is blocked: %w", err)
	}
	return true, nil
}

// isBlockedAt reports whether the sender with that ID is blocked, or the group at a.
func (c *Control) isBlockedAt(ctx context.Context, a chat.Address, id string) (bool, error) {
	blocked, err := c.IsBlocked(ctx, a.Channel, id)
	if err != nil || blocked || a.Chat == id {
		return blocked, err
	}
	return c.IsBlocked(ctx, a.Channel, a.Chat)
}
