package audit

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// ErrBroken is returned by Verify: the records are not those that were appended.
var ErrBroken = errors.New("chain is broken")

// An Event is an action that the audit log records (R-S27).
type Event struct {
	Time time.Time `json:"time"`
	Kind string    `json:"kind"`
	Who  string    `json:"who,omitempty"`
	What string    `json:"what,omitempty"`
}

// A Chain is a log of events, each with the digest of the one before, so that none
// can be changed, removed, added or moved unnoticed, short of rewriting all later
// ones. Records removed by TrimTo and TrimBefore are named in a record too. The digest of the last
// record is in a bucket, which is written before and after an append: this
// distinguishes an append that a crash interrupted from a record that somebody
// removed or added.
//
// There may be one Chain per log at a time: of two that append at once, one gets
// store.ErrConflict. A broken chain stays broken, but can still be appended to. All
// methods may be called concurrently.
type Chain struct {
	log  store.Log
	head store.Table[end]
	mu   sync.Mutex // held by each operation
}

// A link is a record, as encoding/json writes it: with the fields in this order,
// and times in UTC.
type link struct {
	N       int    `json:"n"` // from 1
	Prev    string `json:"prev"`
	Removed *tip   `json:"removed,omitempty"` // the last of the records that were removed
	Event
}

// A tip identifies a record, and thereby all records before it.
type tip struct {
	N   int    `json:"n"`
	Sum string `json:"sum"`
}

// An end is the bucket's information about the last record.
type end struct {
	N    int    `json:"n"` // 0: there is no record
	Sum  string `json:"sum"`
	Seq  uint64 `json:"seq"`            // sequence number of the record in the log
	Next *end   `json:"next,omitempty"` // the end after an append that is in progress

	rev uint64 // of the bucket's information
}

const lost = "lost" // in place of the digest, when the bucket lost the end

// NewChain returns the Chain of log, whose end is stored in head.
func NewChain(log store.Log, head store.Bucket) *Chain {
	return &Chain{log: log, head: store.NewTable(head, store.Report[end])}
}

// Append adds e. After it has returned nil, e is on disk; after an error it may
// be.
func (c *Chain) Append(ctx context.Context, e Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.append(ctx, link{Event: e})
}

// append adds l at the end. The caller holds c.mu.
func (c *Chain) append(ctx context.Context, l link) error {
	last, err := store.LastNumber(ctx, c.log) // not that of the end if the chain is broken
	if err != nil {
		return fmt.Errorf("append to chain: %w", err)
	}
	at, err := c.end(ctx)
	if err != nil {
		return err
	}
	l.N = at.N + 1
	l.Prev = at.Sum
	l.Time = l.Time.UTC()
	body, err := json.Marshal(l)
	if err != nil {
		return fmt.Errorf("append to chain: %w", err)
	}
	next := end{N: l.N, Sum: digest(body)}
	at.Next = &next
	if at, err = c.mark(store.Deferred(ctx), at); err != nil {
		return fmt.Errorf("append to chain: %w", err)
	}
	if next.Seq, err = c.log.Append(ctx, last, body); err != nil {
		return fmt.Errorf("append to chain: %w", err)
	}
	next.rev = at.rev
	if _, err := c.mark(store.Deferred(ctx), next); err != nil {
		return fmt.Errorf("append to chain: %w", err)
	}
	return nil
}

// remove removes the records up to number seq of the log, the last of which is last.
// It appends a record that says so first. The caller holds c.mu.
func (c *Chain) remove(ctx context.Context, seq uint64, last tip, what string) error {
	err := c.append(ctx, link{Removed: &last, Event: Event{Time: time.Now(), Kind: "audit", What: what}})
	if err != nil {
		return fmt.Errorf("trim chain: %w", err)
	}
	if err := c.log.Trim(ctx, seq); err != nil {
		return fmt.Errorf("trim chain: %w", err)
	}
	return nil
}

// mark makes e the end, unless somebody else has changed that since e was read.
func (c *Chain) mark(ctx context.Context, e end) (end, error) {
	rev, err := c.head.Put(ctx, "head", e, e.rev)
	e.rev = rev
	return e, err
}

// end returns the end of the chain. It first resolves an append that was
// interrupted: if its record was written, that is the end. If the end was lost,
// its digest is set so that no record can continue the chain unnoticed.
func (c *Chain) end(ctx context.Context) (end, error) {
	at, rev, err := c.head.Get(ctx, "head")
	at.rev = rev
	none := errors.Is(err, store.ErrNotFound)
	if err != nil && !none && !errors.Is(err, store.ErrDamaged) {
		return end{}, fmt.Errorf("read chain: %w", err)
	}
	next := at.Next
	if at.Next = nil; err == nil && next == nil {
		return at, nil
	}
	come := at
	for rec, err := range c.log.Since(ctx, at.Seq) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return end{}, fmt.Errorf("read chain: %w", err)
		}
		come = end{N: come.N + 1, Sum: digest(rec.Body), Seq: rec.Seq, rev: rev}
	}
	switch {
	case next != nil && come.N == next.N && come.Sum == next.Sum:
		return c.mark(ctx, come)
	case next != nil:
		return c.mark(ctx, at)
	case !none || come.N > 0:
		come.Sum = lost
	}
	return come, nil
}

// Tail returns at most so many of the last events, the newest first. Damaged
// records are skipped.
func (c *Chain) Tail(ctx context.Context, most int) (events []Event, err error) {
	c.mu.Lock()
	at, err := c.end(ctx)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	for rec, err := range c.log.Since(ctx, max(at.Seq, uint64(most))-uint64(most)) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return nil, fmt.Errorf("read chain: %w", err)
		}
		var l link
		if err != nil || json.Unmarshal(rec.Body, &l) != nil {
			continue // damaged
		}
		events = append(events, l.Event)
	}
	slices.Reverse(events)
	return events[:min(most, len(events))], nil
}

// Verify reads all records. If one is not as it was written, the error is
// ErrBroken, and names the first such record and the reason. Appends wait in the
// meantime.
func (c *Chain) Verify(ctx context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, err := c.end(ctx)
	if err != nil {
		return err
	}
	n, sum := 0, ""
	var removed tip // what comes before the first record
	missing := false
	for rec, err := range c.log.Since(ctx, 0) {
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			return fmt.Errorf("verify chain: %w", err)
		}
		var l link
		if err != nil || json.Unmarshal(rec.Body, &l) != nil {
			return fmt.Errorf("%w: record %d is damaged", ErrBroken, n+1)
		}
		if n == 0 && l.N > 1 {
			n, sum = l.N-1, l.Prev
			removed, missing = tip{n, sum}, true
		}
		switch {
		case l.N != n+1:
			return fmt.Errorf("%w: record %d is in the place of %d; some were removed, added or moved",
				ErrBroken, l.N, n+1)
		case l.Prev != sum:
			return fmt.Errorf("%w: record %d was changed, or what %d says of it", ErrBroken, n, n+1)
		case n == at.N:
			return fmt.Errorf("%w: record %d was added behind the end", ErrBroken, n+1)
		}
		n, sum = n+1, digest(rec.Body)
		if l.Removed != nil && (l.Removed.N > removed.N || *l.Removed == removed) {
			missing = false
		}
	}
	switch {
	case missing:
		return fmt.Errorf("%w: the entries before number %d are missing", ErrBroken, removed.N+1)
	case at.Sum == lost:
		return fmt.Errorf("%w: the record of the end, after %d, is lost", ErrBroken, n)
	case at.N > n:
		return fmt.Errorf("%w: records %d to %d are missing at the end", ErrBroken, n+1, at.N)
	case at.Sum != sum:
		return fmt.Errorf("%w: record %d was changed", ErrBroken, n)
	}
	return nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}
