package discord

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"parley/store"
)

const (
	positionKey = "session" // in Config.Seen, where all other keys are ids of chats
	floorMargin = time.Minute
)

// A position is what the store keeps of how far Discord's events were handled. It
// may lag behind: what is handled again is recognised. It is never ahead of what
// was delivered.
type position struct {
	Session  string  `json:"session,omitempty"` // to be resumed; empty: the next connection begins one
	Resume   string  `json:"resume,omitempty"`  // the URL for that
	Sequence int64   `json:"sequence,omitempty"`
	Handled  []int64 `json:"handled,omitempty"` // events after Sequence that must not be handled again
	Floor    string  `json:"floor"`             // id: all messages up to it were handled, in every chat
	Origin   string  `json:"origin"`            // id: chats where anybody wrote since are all in Config.Seen
}

func (p position) equal(q position) bool {
	return p.Session == q.Session && p.Resume == q.Resume && p.Sequence == q.Sequence &&
		slices.Equal(p.Handled, q.Handled) && p.Floor == q.Floor && p.Origin == q.Origin
}

// newTracker returns a tracker that continues from the stored position. It is not
// known if there is none, or none that can be read.
func newTracker(ctx context.Context, b store.Bucket) (t *tracker, known bool, err error) {
	t = &tracker{
		table:  store.NewTable(b, store.Report[position]),
		caught: make(chan struct{}, 1),
		open:   map[*event]struct{}{},
	}
	p, _, err := t.table.Get(ctx, positionKey)
	if errors.Is(err, store.ErrNotFound) || errors.Is(err, store.ErrDamaged) {
		return t, false, nil
	}
	if err != nil {
		return t, false, fmt.Errorf("read the position in discord's events: %w", err)
	}
	if !snowflake.MatchString(p.Floor) || !snowflake.MatchString(p.Origin) || p.Sequence < 0 {
		return t, false, nil
	}
	t.saved = p
	t.session = sessionState{id: p.Session, resumeURL: p.Resume, received: p.Sequence, handled: p.Handled}
	if p.Session == "" {
		t.session.ready = notReady
	}
	return t, true, nil
}

// write stores p. t.saving is held.
func (t *tracker) write(ctx context.Context, p position) error {
	t.mu.Lock()
	same := p.equal(t.saved)
	t.mu.Unlock()
	if same {
		return nil
	}
	if err := t.table.Set(ctx, positionKey, p); err != nil { // not deferred: what is not known to be missed is lost
		return fmt.Errorf("store the position in discord's events: %w", err)
	}
	t.mu.Lock()
	t.saved = p
	t.mu.Unlock()
	return nil
}

// save stores the current position, if it is known.
func (t *tracker) save(ctx context.Context) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	p, known := t.current()
	if !known {
		return nil
	}
	return t.write(ctx, p)
}

// current returns the position to store. It is not known while something that was
// missed before the session has not been read back.
func (t *tracker) current() (p position, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &t.session
	if s.id == "" || !t.caughtUp() {
		return position{}, false
	}
	p = position{Floor: t.saved.Floor, Origin: t.saved.Origin}
	sequence := t.handledUpTo()
	if sequence >= s.nextFloorAt {
		if n, _ := strconv.ParseInt(t.nextFloor, 10, 64); n > 0 {
			p.Floor = laterID(p.Floor, idBefore(timeOf(t.nextFloor).Add(-floorMargin)))
		}
		t.nextFloor = t.newest
		s.nextFloorAt = s.received
	}
	if sequence < s.acknowledged { // Discord may have forgotten what a restart would need
		return p, true
	}
	s.handled = slices.DeleteFunc(s.handled, func(n int64) bool { return n <= sequence })
	p.Session = s.id
	p.Resume = s.resumeURL
	p.Sequence = sequence
	p.Handled = slices.Clone(s.handled)
	return p, true
}

// saveRegularly stores the position at intervals until ctx ends.
func (t *tracker) saveRegularly(ctx context.Context, interval time.Duration, onError func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.caught:
		}
		if err := t.save(ctx); err != nil && ctx.Err() == nil {
			onError(err)
		}
	}
}

// resetOrigin is called when it is unknown how far some chat was read: chats that
// are not in Config.Seen are then read back from the floor only.
func (t *tracker) resetOrigin(ctx context.Context) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	p := t.saved
	t.mu.Unlock()
	p.Origin = p.Floor
	return t.write(ctx, p)
}

// bounds returns the ids after which something may have been missed in a chat that
// was never read: a private one, and one in a server. They are empty before the
// first session.
func (t *tracker) bounds() (private, server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved.Origin, t.saved.Floor
}
