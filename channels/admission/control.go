package admission

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"parley/chat"
	"parley/store"
)

// A Config is what a Control works with.
type Config struct {
	Store store.Store
	Log   *slog.Logger
	// Welcome tells the sender of p that they may talk now. It may be called twice
	// for the same pairing.
	Welcome func(ctx context.Context, p Pairing) error
}

// A Control decides who may talk. Its methods may be called concurrently.
type Control struct {
	cfg        Config
	rules      atomic.Pointer[Rules]
	requests   store.Table[Pairing] // by code
	paired     store.Table[Pairing] // by personKey
	blocked    store.Table[Block]   // by blockKey
	requesting sync.Mutex           // held while a request is made
}

// NewControl returns a Control with the zero Rules: it admits only people who are
// paired.
func NewControl(cfg Config) *Control {
	requests := cfg.Store.Bucket(store.BucketPairing)
	paired := cfg.Store.Bucket(store.BucketPaired)
	c := &Control{
		cfg:      cfg,
		requests: store.NewTable(requests, store.Forget[Pairing](cfg.Log, "pairing request")),
		paired:   store.NewTable(paired, store.Forget[Pairing](cfg.Log, "pairing")),
		blocked:  store.NewTable(cfg.Store.Bucket(store.BucketBlocked), keepBlocked),
	}
	c.SetRules(Rules{})
	return c
}

// SetRules replaces the rules. They hold from the next message on.
func (c *Control) SetRules(r Rules) { c.rules.Store(&r) }

// Rules returns the rules that hold now.
func (c *Control) Rules() Rules { return *c.rules.Load() }

// RoleOf returns the role of the sender of m, whatever kind of message it is.
func (c *Control) RoleOf(ctx context.Context, m chat.Message) (chat.Role, error) {
	role := c.Rules().Role(m.At.Channel, m.From.ID)
	if role == chat.Owner || m.From.ID == "" {
		return role, nil
	}
	if blocked, err := c.isBlockedAt(ctx, m.At, m.From.ID); err != nil || blocked {
		return chat.Unknown, err
	}
	if role != chat.Unknown {
		return role, nil
	}
	_, _, err := c.paired.Get(ctx, personKey(m.At.Channel, m.Account, m.From.ID))
	switch {
	case err == nil:
		return chat.User, nil
	case errors.Is(err, store.ErrNotFound):
		return chat.Unknown, nil
	}
	return chat.Unknown, fmt.Errorf("authorise: %w", err)
}

// Role returns the role at a of the sender with that ID, through whichever of our
// accounts they are paired. What somebody scheduled is run with the role they have
// at that time (R-S24). Without a.Chat it is their role on the channel as a whole.
func (c *Control) Role(ctx context.Context, a chat.Address, id string) (chat.Role, error) {
	role := c.Rules().Role(a.Channel, id)
	if role == chat.Owner || id == "" {
		return role, nil
	}
	if blocked, err := c.isBlockedAt(ctx, a, id); err != nil || blocked {
		return chat.Unknown, err
	}
	if role != chat.Unknown {
		return role, nil
	}
	for key, err := range c.paired.Keys(ctx, a.Channel+"\x00") {
		if err != nil {
			return chat.Unknown, fmt.Errorf("look up role: %w", err)
		}
		if strings.HasSuffix(key, "\x00"+id) {
			return chat.User, nil
		}
	}
	return chat.Unknown, nil
}
