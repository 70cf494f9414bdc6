package channels

import (
	"context"
	"log/slog"
	"maps"
	"time"

	"parley/chat"
	"parley/panics"
)

const (
	firstMarkDelay    = time.Second      // an answer quicker than this needs no marks
	forgetAfter       = 10 * time.Minute // a message that is not answered by then may be forgotten
	maxMarks          = 1000
	maxMarksPerSecond = 20
)

// A messageID names a message of a network.
type messageID struct {
	at chat.Address
	id string
}

// A markRequest asks to mark a message. With an empty mark it announces that the
// message may be marked soon.
type markRequest struct {
	message messageID
	mark    Mark
}

// A marker marks messages of a Reactor as seen, being answered, and done. Marks are
// best effort: they are lost at a restart, and not retried.
type marker struct {
	reactor  Reactor // nil for a channel without marks
	log      *slog.Logger
	requests chan markRequest
}

// newMarker returns the marker of c, which does nothing if c is no Reactor.
func newMarker(c Channel, log *slog.Logger) *marker {
	m := &marker{log: log}
	if reactor, ok := c.(Reactor); ok {
		m.reactor = reactor
		m.requests = make(chan markRequest, maxMarks)
	}
	return m
}

// expect announces that the message id may be marked soon.
func (m *marker) expect(id messageID) { m.mark(id, "") }

// mark has the message id marked, if that was announced and there is time.
func (m *marker) mark(id messageID, mark Mark) {
	select {
	case m.requests <- markRequest{id, mark}:
	default:
	}
}

// A markState is the state of a message that is being answered. Only the latest
// mark that is wanted will be shown.
type markState struct {
	wanted Mark // "" for none yet
	shown  Mark
	due    time.Time // not earlier
}

// markStates are the states of the messages that are being answered.
type markStates map[messageID]*markState

// apply applies r. It reports whether the message now waits to be marked, and did not
// before.
func (all markStates) apply(r markRequest) bool {
	state := all[r.message]
	switch {
	case r.mark == "":
		if len(all) >= maxMarks {
			isOld := func(_ messageID, s *markState) bool { return time.Since(s.due) > forgetAfter }
			maps.DeleteFunc(all, isOld)
		}
		if state == nil && len(all) < maxMarks {
			all[r.message] = &markState{due: time.Now().Add(firstMarkDelay)}
		}
		return false
	case state == nil, r.mark == Seen && state.wanted != "": // it is further already
		return false
	case r.mark == Done && state.shown == "": // answered quickly
		delete(all, r.message)
		return false
	}
	waits := state.wanted != state.shown
	state.wanted = r.mark
	return !waits
}

// run marks messages until ctx ends, in the order in which they were received.
func (m *marker) run(ctx context.Context) {
	states := markStates{}
	var queue []messageID
	apply := func(r markRequest) {
		if states.apply(r) {
			queue = append(queue, r.message)
		}
	}
	pauseUntil := time.Now()
	for {
		var turn <-chan time.Time
		if len(queue) > 0 {
			wait := time.Until(pauseUntil)
			if state := states[queue[0]]; state != nil {
				wait = max(wait, time.Until(state.due)) // those behind it have to wait, too
			}
			turn = time.After(wait)
		}
		select {
		case r := <-m.requests:
			apply(r)
		case <-turn:
			for len(m.requests) > 0 { // what is answered by now needs no mark
				apply(<-m.requests)
			}
			id := queue[0]
			queue = queue[1:]
			pauseUntil = time.Now().Add(m.show(ctx, id, states))
		case <-ctx.Done():
			return
		}
	}
}

// show marks the message id as wanted, and returns how long to leave the network
// alone.
func (m *marker) show(ctx context.Context, id messageID, states markStates) time.Duration {
	state := states[id]
	if state == nil {
		return 0
	}
	state.shown = state.wanted
	err := within(ctx, taskTimeout, func(ctx context.Context) error {
		return m.reactor.React(ctx, id.at, id.id, state.wanted)
	})
	if err != nil {
		m.log.Debug("message not marked", "chat", id.at.Session(), "err", err, panics.Stack(err))
	}
	if state.wanted == Done || IsPermanent(err) { // as in a chat that has no marks
		delete(states, id)
	}
	return max(requestedWait(err), time.Second/maxMarksPerSecond)
}
