package discord

import (
	"context"
	"math"
	"slices"
	"sync"

	"parley/store"
)

// notReady is the sequence number of a READY that has not arrived.
const notReady = math.MaxInt64

// A tracker knows which events have been handled, and keeps the position in the
// store. A session is stored only after everything that was missed before it has
// been read back: after resuming it, nothing else needs to be read back.
type tracker struct {
	table  store.Table[position]
	caught chan struct{} // gets a value when a new session can be stored

	saving sync.Mutex // held while the position is written

	mu        sync.Mutex
	saved     position // as stored
	session   sessionState
	open      map[*event]struct{} // being handled
	newest    string              // highest id of a message that was received
	nextFloor string              // the newest when event session.nextFloorAt was received
}

// A sessionState is how far the events of one session are received and handled.
type sessionState struct {
	id           string // empty before READY
	resumeURL    string
	ready        int64           // sequence number of READY
	guilds       map[string]bool // announced by READY and not described yet
	received     int64           // number of the last event
	acknowledged int64           // the highest number that a heartbeat sent to Discord
	handled      []int64         // as in position
	nextFloorAt  int64
}

// An event of the gateway is handled when all its holders have released it.
type event struct {
	sequence int64
	session  string
	barrier  int64 // the stored sequence number stays below it: its own, or an earlier one
	holders  int
}

// resumable returns the session that the first connection is to resume, if any.
func (t *tracker) resumable() (session, resumeURL string, sequence int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.session.id, t.session.resumeURL, t.session.received
}

// startSession notes that the connection is about to begin a new session, so that
// messages that were not received until then must be read back. That must be on
// disk before Discord sends anything. Messages written from now on have an id
// above now.
func (t *tracker) startSession(ctx context.Context, now string) error {
	t.saving.Lock()
	defer t.saving.Unlock()
	t.mu.Lock()
	t.session = sessionState{ready: notReady}
	for e := range t.open { // of an earlier session: the new one is behind until they are handled
		e.barrier = 0
	}
	p := position{Floor: t.saved.Floor, Origin: t.saved.Origin}
	t.mu.Unlock()
	if p.Origin == "" {
		p.Origin = now
		p.Floor = now
	}
	return t.write(ctx, p)
}

// setSession notes the session of a READY, and the servers that it announces.
func (t *tracker) setSession(id, resumeURL string, sequence int64, guilds []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session.id = id
	t.session.resumeURL = resumeURL
	t.session.ready = sequence
	t.session.guilds = map[string]bool{}
	for _, guild := range guilds {
		t.session.guilds[guild] = true
	}
}

// beginEvent returns the event of that number, which the caller holds. id is that
// of the message in it, if any.
func (t *tracker) beginEvent(sequence int64, id string) *event {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.session.received = max(t.session.received, sequence)
	t.newest = laterID(t.newest, id)
	e := &event{sequence: sequence, session: t.session.id, barrier: sequence, holders: 1}
	t.open[e] = struct{}{}
	return e
}

// hold adds a holder of e.
func (t *tracker) hold(e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.holders++
}

// release removes a holder of e, which has done its part.
func (t *tracker) release(e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	e.holders--
	if e.holders == 0 {
		delete(t.open, e)
	}
	t.signalCaughtUp()
}

// signalCaughtUp wakes saveRegularly if a new session can be stored. t.mu is held.
func (t *tracker) signalCaughtUp() {
	if t.session.id == t.saved.Session || !t.caughtUp() {
		return
	}
	select {
	case t.caught <- struct{}{}:
	default:
	}
}

// noteDescribed notes that e described the server. If READY announced the server,
// e becomes part of the READY, so that the session is not stored before what was
// missed in the server has been read back.
func (t *tracker) noteDescribed(guild string, e *event) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session.guilds[guild] {
		e.barrier = min(e.barrier, t.session.ready)
		delete(t.session.guilds, guild)
	}
}

// noteLeft notes that the bot is no longer in that server.
func (t *tracker) noteLeft(guild string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.session.guilds, guild)
	t.signalCaughtUp()
}

// handledUpTo returns the number up to which all events were handled. t.mu is held.
func (t *tracker) handledUpTo() int64 {
	first := t.session.received + 1
	for e := range t.open {
		first = min(first, e.barrier)
	}
	return first - 1
}

// caughtUp reports whether everything that was missed before the session has been
// read back. t.mu is held.
func (t *tracker) caughtUp() bool {
	return len(t.session.guilds) == 0 && t.handledUpTo() >= t.session.ready
}

// acknowledge returns the number for a heartbeat: Discord need not keep the events
// up to it. Once the session is stored, it is where a restart would resume.
func (t *tracker) acknowledge() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.session.id != "" && t.session.id == t.saved.Session {
		return t.saved.Sequence
	}
	t.session.acknowledged = t.session.received
	return t.session.acknowledged
}

// wasHandled reports whether markHandled was called for e before a restart.
func (t *tracker) wasHandled(e *event) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Contains(t.session.handled, e.sequence)
}

// markHandled stores that e was handled: it must not have its effect twice.
func (t *tracker) markHandled(ctx context.Context, e *event) error {
	t.mu.Lock()
	if e.session == t.session.id {
		t.session.handled = append(t.session.handled, e.sequence)
	}
	t.mu.Unlock()
	return t.save(ctx)
}
