package policy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/store"
	"parley/tools"
)

// A Book keeps the policy of the owner. Changes take effect from the next turn on.
type Book struct {
	configs store.Table[Config]  // by Target.key
	choices store.Table[toggles] // by person
	memory  memory               // of both
	log     *slog.Logger
	offer   atomic.Pointer[Offer]
}

// An Offer is what a policy chooses from: what the config and the tools themselves
// allow.
type Offer struct {
	Sources []tools.Source
	Models  []string // names of the models of the config
}

// NewBook returns the Book in s.
func NewBook(s store.Store, log *slog.Logger) *Book {
	b := &Book{
		configs: store.NewTable(s.Bucket(store.BucketPolicy), store.Report[Config]),
		choices: store.NewTable(
			s.Bucket(store.BucketToolChoices), store.Forget[toggles](log, "choice of tools")),
		log: log,
	}
	b.offer.Store(&Offer{})
	return b
}

// Configure sets what there is to choose from.
func (b *Book) Configure(o Offer) { b.offer.Store(&o) }

// A Policy is all that the owner decided, by Target (B-071).
type Policy struct {
	Global   Config            `json:"global"`
	Roles    map[string]Config `json:"roles"`
	Invites  map[string]Config `json:"invites"`
	Users    map[string]Config `json:"users"`
	Channels map[string]Config `json:"channels"`
	// Damaged lists the targets whose Configs cannot be read. Until they are saved
	// again, all tools are off for these targets.
	Damaged   []Target  `json:"damaged,omitempty"`
	UpdatedAt time.Time `json:"updated_at,omitzero"`
}

// All returns the whole policy.
func (b *Book) All(ctx context.Context) (Policy, error) {
	all := Policy{
		Global:   Config{}.filled(),
		Roles:    map[string]Config{},
		Invites:  map[string]Config{},
		Users:    map[string]Config{},
		Channels: map[string]Config{},
	}
	by := map[TargetType]map[string]Config{
		Role: all.Roles, Invite: all.Invites, User: all.Users, Channel: all.Channels,
	}
	for e, err := range b.configs.Each(ctx, "") {
		t := targetOf(e.Key)
		switch {
		case errors.Is(err, store.ErrDamaged):
			all.Damaged = append(all.Damaged, t)
			continue
		case err != nil:
			return Policy{}, fmt.Errorf("read the policy: %w", err)
		case t.Type == Global:
			all.Global = e.Value.filled()
		case by[t.Type] != nil:
			by[t.Type][t.Value] = e.Value.filled()
		}
		if e.Value.UpdatedAt.After(all.UpdatedAt) {
			all.UpdatedAt = e.Value.UpdatedAt
		}
	}
	return all, nil
}

// Of returns what the policy says for t, and store.ErrDamaged if that cannot be read.
func (b *Book) Of(ctx context.Context, t Target) (Config, error) {
	t, err := t.check()
	if err != nil {
		return Config{}, err
	}
	c, _, err := b.configs.Get(ctx, t.key())
	if errors.Is(err, store.ErrNotFound) {
		err = nil
	}
	return c.filled(), err
}

// Set makes c what the policy says for t, and returns both as they are stored. An
// empty c removes what it said. If c.UpdatedAt is set and is not that of the stored
// Config, the error is ErrConflict.
func (b *Book) Set(ctx context.Context, t Target, c Config) (Target, Config, error) {
	t, err := t.check()
	if err != nil {
		return t, c, err
	}
	base := c.UpdatedAt
	if c, err = c.check(); err != nil {
		return t, c, err
	}
	old, rev, err := b.configs.Get(ctx, t.key())
	damaged := errors.Is(err, store.ErrDamaged)
	switch {
	case err != nil && !damaged && !errors.Is(err, store.ErrNotFound):
		return t, c, fmt.Errorf("read the policy for %s: %w", t, err)
	case damaged:
		rev = store.Any
	case !base.IsZero() && !base.Equal(old.UpdatedAt):
		return t, c, ErrConflict
	}
	defer b.memory.forget()
	c.UpdatedAt = time.Now().UTC()
	if c.empty() {
		c.UpdatedAt = time.Time{}
		err = b.configs.Delete(ctx, t.key())
	} else {
		_, err = b.configs.Put(ctx, t.key(), c, rev)
	}
	if errors.Is(err, store.ErrConflict) {
		return t, c, ErrConflict
	}
	if err != nil {
		return t, c, fmt.Errorf("store the policy for %s: %w", t, err)
	}
	return t, c, nil
}

// targets returns whom a turn in s concerns, in the order of merging (B-072).
func targets(s tools.Scope) []Target {
	all := []Target{{Type: Global}}
	if s.From.Role != chat.Unknown {
		all = append(all, Target{Role, string(s.From.Role)})
	}
	// Only the page and the API admit people by the name under which they were invited.
	if s.From.Role == chat.User && (s.At.Channel == "web" || s.At.Channel == "api") {
		all = append(all, Target{Invite, s.From.ID})
	}
	users := []string{string(s.Whose()), s.At.Channel + ":" + s.From.ID}
	for _, id := range slices.Compact(users) {
		all = append(all, Target{User, id})
	}
	return append(all, Target{Channel, s.At.Channel})
}

// rules returns what the policy says for a turn in s.
func (b *Book) rules(ctx context.Context, s tools.Scope) (rules, error) {
	d, err := b.decisions(ctx)
	if err != nil {
		return rules{}, err
	}
	merged := rules{config: Config{}.filled(), chosen: d.choices[string(s.Whose())].Groups}
	for _, t := range targets(s) {
		if err := d.damaged[t.key()]; err != nil {
			b.log.Error("the policy cannot be read; all tools are off until it is saved again", "target", t, "err", err)
			merged.damaged = true
		}
		if c, decided := d.configs[t.key()]; decided {
			merged.config = merged.config.merge(c)
		}
	}
	merged.assign()
	return merged, nil
}

// PageScope is that of somebody at the web page.
func PageScope(who chat.Sender) tools.Scope {
	return tools.Scope{At: chat.Address{Channel: "web", Chat: who.ID}, From: who}
}

// Blocked reports whether a part of the chat page, one of UIBlockKeys, is blocked for
// who. If the policy cannot be read, all are.
func (b *Book) Blocked(ctx context.Context, who chat.Sender, part string) bool {
	r, err := b.rules(ctx, PageScope(who))
	if err != nil {
		b.log.Error("the policy cannot be read", "err", err)
	}
	return err != nil || r.damaged || r.config.UIBlocks[part]
}

// ModelsOff returns the names of the models that the person of s may not use there.
func (b *Book) ModelsOff(ctx context.Context, s tools.Scope) ([]string, error) {
	r, err := b.rules(ctx, s)
	return r.config.DisabledModels, err
}

// Forget removes a tool that is gone from all that the policy says, so that a later
// one of that name is not moved (B-067).
func (b *Book) Forget(ctx context.Context, tool string) error {
	defer b.memory.forget()
	for e, err := range b.configs.Each(ctx, "") {
		if errors.Is(err, store.ErrDamaged) {
			continue
		}
		if err != nil {
			return fmt.Errorf("read the policy: %w", err)
		}
		named := func(o Override) bool { return slices.Contains(o.Tools, tool) }
		if !slices.ContainsFunc(slices.Collect(maps.Values(e.Value.CategoryOverrides)), named) {
			continue
		}
		_, _, err = b.configs.Update(ctx, e.Key, func(c *Config) error {
			for category, o := range c.CategoryOverrides {
				o.Tools = slices.DeleteFunc(slices.Clone(o.Tools), func(name string) bool { return name == tool })
				c.CategoryOverrides[category] = o
			}
			maps.DeleteFunc(c.CategoryOverrides, func(_ string, o Override) bool { return o.Empty() })
			c.UpdatedAt = time.Now().UTC()
			return nil
		})
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("remove %s from the policy: %w", tool, err)
		}
	}
	return nil
}
