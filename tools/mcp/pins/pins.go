// Package pins keeps what MCP servers offered when they were first used, and withholds what is
// different later until an owner approves it (R-S22).
//
// The descriptions of tools are read by models. A server that shows harmless ones at first could
// change them once it is trusted: so each tool, resource and prompt is kept word for word, and a
// change is shown as a difference of texts. The whole first listing of a server is approved by the
// first turn that needs it: an owner has just put the server into the config.
package pins

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/store"
	"parley/tools/mcp"
)

// Errors of Approve.
var (
	ErrNothing = errors.New("nothing of this server waits for approval")
	ErrStale   = errors.New("this is not the code of what waits now: look at it anew, as it may have changed again")
	ErrNumber  = errors.New("there is no change of that number")
)

const (
	// maxItem is how long one tool, resource or prompt may be, in bytes. A longer one is left out.
	maxItem = 128 << 10

	// maxPinned is how long all that is kept of a server may be. What is beyond is left out.
	maxPinned = 4 << 20

	// noticeDelay is the least time between two notices about one server.
	noticeDelay = time.Hour
)

// A Config is what a Book is made with.
type Config struct {
	Store store.Store
	Log   *slog.Logger

	// Redact removes secrets from what the config says about a server. It may be nil.
	Redact func(text string) string

	// Tell tells owners that something of a server waits for them. The same id is told once. It may
	// be nil: then they are told later, by another process.
	Tell func(ctx context.Context, id, server string, changes int) error
}

// A Book has the pins of all servers.
type Book struct {
	config Config
	table  store.Table[record]
}

// A record is what is known about one server.
type record struct {
	// Approved and Waiting are what the server offers, as canonical JSON by kind and name. Approved
	// keeps what the server does not offer any more: it may come back unchanged.
	Approved map[string]string `json:"approved"`
	Waiting  map[string]string `json:"waiting,omitempty"`

	Code    string    `json:"code,omitempty"`   // names this state of Waiting; not to be guessed
	Done    string    `json:"done,omitempty"`   // the Code that was approved last
	Unused  bool      `json:"unused,omitempty"` // no turn needed the server so far: one will approve Approved
	Since   time.Time `json:"since,omitzero"`   // when the first of Waiting was seen
	Told    bool      `json:"told,omitempty"`   // owners know of Waiting
	ToldAt  time.Time `json:"toldAt,omitzero"`
	Damaged bool      `json:"damaged,omitempty"` // what was approved could not be read

	Command string    `json:"command"`           // what the config says about the server
	Before  string    `json:"before,omitempty"`  // what it said before that
	By      string    `json:"by,omitempty"`      // who approved last; "" is the first use
	Time    time.Time `json:"time,omitzero"`     // when that was
	Removed []string  `json:"removed,omitempty"` // of Approved, what was not in the last listing
}

// New returns the Book that is kept in the store.
func New(c Config) *Book {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Redact == nil {
		c.Redact = func(text string) string { return text }
	}
	damaged := func(server string, err error) (record, error) {
		c.Log.Error("what was approved of an MCP server cannot be read: all of it waits for approval",
			"server", server, "err", err)
		return record{Approved: map[string]string{}, Damaged: true}, nil
	}
	return &Book{config: c, table: store.NewTable(c.Store.Bucket(store.BucketMCPPins), damaged)}
}

// Review returns the part of l that may be used, as [mcp.Config] wants it: what was there when the server
// was listed first, and what owners have approved since. The rest waits for them.
func (b *Book) Review(
	ctx context.Context, server string, s mcp.Server, l mcp.Listing, inUse bool,
) (mcp.Listing, error) {
	seen, tooLong := itemsOf(&l)
	if len(tooLong) > 0 {
		b.config.Log.Warn("left out of what an MCP server offers: too long to be kept for comparison",
			"server", server, "what", tooLong)
	}
	command := b.commandOf(s)
	first := false
	r, _, err := b.table.Upsert(ctx, server, func(r *record) error {
		first = inUse && (r.Approved == nil || r.Unused)
		return r.review(seen, command, inUse)
	})
	if err != nil {
		return mcp.Listing{}, fmt.Errorf("compare with what was approved of the MCP server %s: %w", server, err)
	}
	if first && len(r.Approved) > 0 {
		b.config.Log.Info("MCP server is used for the first time: what it offers is approved", "server", server,
			"items", len(r.Approved))
	}
	b.tell(ctx, server, r)
	keep(&l, func(key string) bool {
		known, approved := r.Approved[key]
		return approved && known == seen[key]
	})
	return l, nil
}

// Known returns what of a server was approved and there when it was connected last, as [mcp.Config] wants
// it. It is nothing if another program or address is used by now.
func (b *Book) Known(ctx context.Context, server string, s mcp.Server) (l mcp.Listing, err error) {
	r, _, err := b.table.Get(ctx, server)
	if errors.Is(err, store.ErrNotFound) {
		return l, nil
	}
	if err != nil {
		return l, fmt.Errorf("read what was approved of the MCP server %s: %w", server, err)
	}
	if r.Command != b.commandOf(s) {
		return l, nil
	}
	for _, key := range slices.Sorted(maps.Keys(r.Approved)) {
		if _, changed := r.Waiting[key]; changed || slices.Contains(r.Removed, key) {
			continue
		}
		if err := add(&l, key, r.Approved[key]); err != nil {
			return mcp.Listing{}, fmt.Errorf("read %s, which was approved of the MCP server %s: %w", key, server, err)
		}
	}
	return l, nil
}

// review compares what a server offers, and what the config says about it, with r.
func (r *record) review(seen map[string]string, command string, inUse bool) error {
	if r.Approved == nil || r.Unused && command != r.Command {
		if len(seen) == 0 { // not even instructions: there is nothing yet to be approved
			return store.ErrUnchanged
		}
		*r = record{Approved: seen, Command: command, Time: time.Now().UTC()}
		if !inUse {
			r.Unused = true
			r.Code = newCode()
		}
		return nil
	}
	begins := inUse && r.Unused
	waiting := map[string]string{}
	for key, text := range seen {
		if known, approved := r.Approved[key]; !approved || known != text {
			waiting[key] = text
		}
	}
	var removed []string
	for _, key := range slices.Sorted(maps.Keys(r.Approved)) {
		if _, there := seen[key]; !there {
			removed = append(removed, key)
		}
	}
	if maps.Equal(waiting, r.Waiting) && command == r.Command && slices.Equal(removed, r.Removed) && !begins {
		return store.ErrUnchanged
	}
	if begins {
		r.Unused = false
		r.Time = time.Now().UTC()
	}
	r.Removed = removed
	if command != r.Command { // an owner has edited the config
		r.Before = r.Command
		r.Command = command
	}
	if maps.Equal(waiting, r.Waiting) {
		return nil
	}
	if len(r.Waiting) == 0 {
		r.Since = time.Now().UTC()
		r.Told = false
	}
	r.Waiting = waiting
	r.Code = ""
	if len(waiting) > 0 || r.Unused {
		r.Code = newCode()
	}
	return nil
}

// isFirst reports whether the first listing of the server still waits for its first use, and nothing has changed since.
func (r *record) isFirst() bool { return r.Unused && len(r.Waiting) == 0 }

// hold has all that the first use would approve wait for an owner.
func (r *record) hold() {
	r.Waiting = r.Approved
	for _, key := range r.Removed {
		delete(r.Waiting, key)
	}
	r.Approved = map[string]string{}
	r.Unused = false
	r.Removed = nil
}

// newCode returns a name for a state of what waits. It is made by chance, so that a server cannot make
// two states of the same name, as it could with a short digest.
func newCode() string { return strings.ToLower(rand.Text()[:8]) }

// tell tells owners once that something waits for them.
func (b *Book) tell(ctx context.Context, server string, r record) {
	if len(r.Waiting) == 0 || r.Told {
		return
	}
	b.config.Log.Warn("an MCP server offers something that was not approved: it is withheld", "server", server,
		"changes", len(r.Waiting))
	if b.config.Tell == nil || time.Since(r.ToldAt) < noticeDelay {
		return
	}
	if err := b.config.Tell(ctx, "mcp:"+server+":"+r.Code, server, len(r.Waiting)); err != nil {
		b.config.Log.Error("owners were not told of a change of an MCP server", "server", server, "err", err)
		return
	}
	_, _, err := b.table.Update(ctx, server, func(r *record) error {
		r.Told = true
		r.ToldAt = time.Now().UTC()
		return nil
	})
	if err != nil {
		b.config.Log.Error("it was not noted that owners were told of an MCP server", "server", server, "err", err)
	}
}

// Approve approves what waits of a server, if it is still what code names (see [Pending]), and returns
// it. by is who does so. To repeat it does nothing. If numbers are given, only those of Pending.Changes are
// approved, of which 1 is the first; the others wait under another code.
func (b *Book) Approve(ctx context.Context, server, code, by string, numbers ...int) ([]Change, error) {
	var approved []Change
	_, _, err := b.table.Update(ctx, server, func(r *record) error {
		if r.isFirst() {
			r.hold()
		}
		switch {
		case len(r.Waiting) == 0 && code != "" && code == r.Done: // it is repeated
			return store.ErrUnchanged
		case len(r.Waiting) == 0:
			return ErrNothing
		case code != r.Code:
			return ErrStale
		}
		keys, err := pick(slices.Sorted(maps.Keys(r.Waiting)), numbers)
		if err != nil {
			return err
		}
		approved = nil
		for _, key := range keys {
			approved = append(approved, r.change(key))
		}
		size := 0
		for _, key := range keys {
			r.Approved[key] = r.Waiting[key]
			size += len(r.Waiting[key])
			delete(r.Waiting, key)
		}
		for _, key := range r.Removed { // there is room for it, as long as it is little
			if size += len(r.Approved[key]); size > maxPinned {
				delete(r.Approved, key)
			}
		}
		r.By = by
		r.Time = time.Now().UTC()
		if len(r.Waiting) > 0 {
			r.Code = newCode()
			return nil
		}
		*r = record{
			Approved: r.Approved,
			Removed:  r.Removed,
			Done:     code,
			ToldAt:   r.ToldAt,
			Command:  r.Command,
			By:       r.By,
			Time:     r.Time,
		}
		return nil
	})
	if errors.Is(err, store.ErrNotFound) {
		err = ErrNothing
	}
	return approved, err
}

// pick returns those of all that numbers name, or all if there are none.
func pick(all []string, numbers []int) (picked []string, err error) {
	if len(numbers) == 0 {
		return all, nil
	}
	for _, n := range numbers {
		if n < 1 || n > len(all) {
			return nil, fmt.Errorf("%w: %d of %d", ErrNumber, n, len(all))
		}
		picked = append(picked, all[n-1])
	}
	slices.Sort(picked)
	return slices.Compact(picked), nil
}

// Pending is what of a server waits for an owner.
type Pending struct {
	Code    string    `json:"code"`    // names this state, for Approve
	Since   time.Time `json:"since"`   // when the first of it was seen
	First   bool      `json:"first"`   // no turn needed the server so far: the first that does approves this
	Damaged bool      `json:"damaged"` // what was approved before could not be read
	Changes []Change  `json:"changes"`

	// Command and Before are what the config says about the server, and said before, if an owner has
	// changed that since the last approval.
	Command string `json:"command,omitempty"`
	Before  string `json:"before,omitempty"`
}

// Pending returns what of a server waits for an owner; its Changes are none if nothing does.
func (b *Book) Pending(ctx context.Context, server string) (Pending, error) {
	r, _, err := b.table.Get(ctx, server)
	if errors.Is(err, store.ErrNotFound) {
		return Pending{}, nil
	}
	first := r.isFirst()
	if first {
		r.hold()
	}
	p := Pending{Code: r.Code, Since: r.Since, First: first, Damaged: r.Damaged, Changes: r.changes()}
	if r.Before != "" {
		p.Command = readable(r.Command)
		p.Before = readable(r.Before)
	}
	return p, err
}
