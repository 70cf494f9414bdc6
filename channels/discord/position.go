package discord

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"time"

	"parley/store"
)

const (
	positionKey = "session" // in Config.Seen, where all other keys are ids of chats
	floorMargin = time.Minute
)

// A position is what the store keeps of how far Discord's events were handled.
// It may lag behind: what is handled again is recognised. It is never ahead of
// what was delivered.
type position struct {
	Session  string  `json:"session,omitempty"` // to be resumed; empty: the next connection begins one
	Resume   string  `json:"resume,omitempty"`  // where Discord wants that
	Sequence int64   `json:"sequence,omitempty"`
	Handled  []int64 `json:"handled,omitempty"` // events after Sequence that must not be handled again
	Floor    string  `json:"floor"`             // id: all messages up to it were handled, in every chat
	Origin   string  `json:"origin"`            // id: from it on, every chat that was ever heard is in Config.Seen
}

func (p position) equal(q position) bool {
	return p.Session == q.Session && p.Resume == q.Resume && p.Sequence == q.Sequence &&
		slices.Equal(p.Handled, q.Handled) && p.Floor == q.Floor && p.Origin == q.Origin
}

// noSession is the sequence number of a READY that has not come.
const noSession = math.MaxInt64

// A tracker knows which events have been handled, and keeps the position in the
// store. A session is stored only when all that was missed before it has been
// read back: whoever resumes it needs to look nowhere else.
type tracker struct {
	table  store.Table[position]
	caught chan struct{} // gets a value when a new session can be stored

	saving sync.Mutex // held while the position is written

	mu           sync.Mutex
	saved        position // as stored
	session      string   // of the connection; empty before READY
	resume       string
	ready        int64               // number of the session's READY
	guilds       map[string]bool     // announced by READY and not described yet
	open         map[*event]struct{} // being handled
	heard        int64               // number of the last event
	newest       string              // highest id of a message that was heard
	nextFloor    string              // newest, when nextFloorAt was heard
	nextFloorAt  int64
	acknowledged int64   // the highest number that a heartbeat told Discord
	handled      []int64 // as in position
}

// An event of the gateway is handled when nothing holds it any more.
type event struct {
	seq     int64
	session string
	barrier int64 // what is stored stays below it: seq, or an earlier number
	holders int
}

// newTracker returns a tracker that goes on where the stored position is. known
// is false if there is none, or none that can be read.
func newTracker(ctx context.Context, b store.Bucket) (t *tracker, known bool, err error) {
	t = &tracker{table: store.NewTable(b, store.Report[position]), caught: make(chan struct{}, 1), open: map[*event]struct{}{}}
	p, _, err := t.table.Get(ctx, positionKey)
	switch {
	case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged):
		return t, false, nil
	case err != nil:
		return t, false, fmt.Errorf("read the position in discord's events: %w", err)
	case !snowflake.MatchString(p.Floor) || !snowflake.MatchString(p.Origin) || p.Sequence < 0:
		return t, false, nil
	}
	t.saved, t.session, t.resume, t.heard, t.handled = p, p.Session, p.Resume, p.Sequence, p.Handled
	if p.Session == "" {
		t.ready = noSession
	}
	return t, true, nil
}

// later returns the younger of two ids.
func later(a, b string) string {
	if older(a, b) < 0 {
		return b
	}
	return a
}

// idAt returns the id that comes before those of messages written at that time.
func idAt(at time.Time) string {
	return before(strconv.FormatInt(max(at.UnixMilli()-discordEpoch, 1)<<22, 10))
}

// resumable returns the session that the first connection is to resume, if any.
func (t *tracker) resumable() (session, resume string, seq int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session, t.resume, t.heard
}

// startSession notes that the connection is about to begin a new session, so
// that what was not heard until then has to be read back. It must be on disk
// before Discord tells us anything. Messages written from now on have an id above
// that of now.
func (t *tracker) startSession(ctx context.Context, now string) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	t.session, t.resume, t.ready, t.guilds = "", "", noSession, nil
	t.heard, t.acknowledged, t.handled, t.nextFloorAt = 0, 0, nil, 0
	for e := range t.open { // of a former session: the new one is behind until they are handled
		e.barrier = 0
	}
	p := t.saved
	p.Session, p.Resume, p.Sequence, p.Handled = "", "", 0, nil
	if p.Origin == "" {
		p.Origin = now
		p.Floor = p.Origin
	}
	t.mu.Unlock()
	return t.write(ctx, p)
}

// write stores p. t.saving is held.
func (t *tracker) write(ctx context.Context, p position) error {
	t.mu.Lock()
	same := p.equal(t.saved)
	t.mu.Unlock()
	if same {
		return nil
	}
	if err := t.table.Set(ctx, positionKey, p); err != nil {
		return fmt.Errorf("store the position in discord's events: %w", err)
	}
	t.mu.Lock()
	t.saved = p
	t.mu.Unlock()
	return nil
}

// setSession notes the session of a READY, and the servers that it announces.
func (t *tracker) setSession(session, resume string, seq int64, guilds []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session, t.resume, t.ready, t.guilds = session, resume, seq, map[string]bool{}
	for _, id := range guilds {
		t.guilds[id] = true
	}
}

// beginEvent returns the event of that number, which the caller holds. id is that
// of the message it brings, if any.
func (t *tracker) beginEvent(seq int64, id string) *event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.heard, t.newest = max(t.heard, seq), later(t.newest, id)
	e := &event{seq: seq, session: t.session, barrier: seq, holders: 1}
	t.open[e] = struct{}{}
	return e
}

// hold adds a holder of e, which is not handled before each has released it.
func (t *tracker) hold(e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.holders++
}

// release says that one holder of e has done its part.
func (t *tracker) release(e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if e.holders--; e.holders == 0 {
		delete(t.open, e)
	}
	t.signalCaughtUp()
}

// signalCaughtUp wakes keep if a new session can be stored. t.mu is held.
func (t *tracker) signalCaughtUp() {
	if t.session != t.saved.Session && t.caughtUp() {
		select {
		case t.caught <- struct{}{}:
		default:
		}
	}
}

// noteDescribed notes that e described the server. If READY announced that, e
// becomes part of the READY, so that the session is not stored before what was
// said in the server has been read back.
func (t *tracker) noteDescribed(guild string, e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.guilds[guild] {
		e.barrier = min(e.barrier, t.ready)
		delete(t.guilds, guild)
	}
}

// noteLeft notes that the bot is no longer in that server.
func (t *tracker) noteLeft(guild string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.guilds, guild)
	t.signalCaughtUp()
}

// handledUpTo returns the number up to which all events were handled. t.mu is held.
func (t *tracker) handledUpTo() int64 {
	first := t.heard + 1
	for e := range t.open {
		first = min(first, e.barrier)
	}
	return first - 1
}

// caughtUp reports whether all that was missed before the session has been
// read back. t.mu is held.
func (t *tracker) caughtUp() bool { return len(t.guilds) == 0 && t.handledUpTo() >= t.ready }

// bounds returns the ids after which something may have been missed in a chat
// that was never heard: a private one, and one in a server. They are empty
// before the first session.
func (t *tracker) bounds() (private, server string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.saved.Origin, t.saved.Floor
}

// resetOrigin is called when it is lost how far some chat was read: chats that are
// not in Config.Seen are then read back from the floor only.
func (t *tracker) resetOrigin(ctx context.Context) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	p := t.saved
	t.mu.Unlock()
	p.Origin = p.Floor
	return t.write(ctx, p)
}

// acknowledge returns the number that a heartbeat may tell Discord: it need not
// keep the events up to it. Once there is a stored session, that is where a
// restart would resume it.
func (t *tracker) acknowledge() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session != "" && t.session == t.saved.Session {
		return t.saved.Sequence
	}
	t.acknowledged = t.heard
	return t.acknowledged
}

// wasHandled reports whether e was kept by markHandled, before a restart.
func (t *tracker) wasHandled(e *event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.handled, e.seq)
}

// markHandled keeps on disk that e was handled: it must not have its effect twice.
func (t *tracker) markHandled(ctx context.Context, e *event) error {
	t.mu.Lock()
	if e.session == t.session {
		t.handled = append(t.handled, e.seq)
	}
	t.mu.Unlock()
	return t.save(ctx)
}

// save stores the position as it is, if that is known.
func (t *tracker) save(ctx context.Context) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	if t.session == "" || !t.caughtUp() {
		t.mu.Unlock()
		return nil
	}
	p, mark := t.saved, t.handledUpTo()
	if mark >= t.nextFloorAt {
		if n, _ := strconv.ParseInt(t.nextFloor, 10, 64); n > 0 {
			p.Floor = later(p.Floor, idAt(madeAt(t.nextFloor).Add(-floorMargin)))
		}
		t.nextFloor, t.nextFloorAt = t.newest, t.heard
	}
	p.Session, p.Resume, p.Sequence, p.Handled = "", "", 0, nil
	if mark >= t.acknowledged { // else Discord may have forgotten what a restart would need
		t.handled = slices.DeleteFunc(t.handled, func(seq int64) bool { return seq <= mark })
		p.Session, p.Resume, p.Sequence, p.Handled = t.session, t.resume, mark, slices.Clone(t.handled)
	}
	t.mu.Unlock()
	return t.write(ctx, p)
}

// keep stores the position now and then, until ctx ends.
func (t *tracker) keep(ctx context.Context, every time.Duration, failed func(error)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-t.caught:
		}
		if err := t.save(ctx); err != nil && ctx.Err() == nil {
			failed(err)
		}
	}
}
