package channels

import (
	"context"
	"maps"
	"sync"
	"time"

	"parley/chat"
)

const (
	markAfter = time.Second      // an answer quicker than this needs no marks
	markTime  = 10 * time.Minute // what is not answered by then may be forgotten
	maxMarks  = 1000
	reactions = 20 // in a second, at most
)

// marks are the messages of a channel that are being answered. Every one has
// one mark to come at most, the latest. They are best effort: lost by a
// restart, and not tried again.
type marks struct {
	mu   sync.Mutex
	all  map[spot]*marked
	news chan spot // messages that may have to be marked
}

// A spot is one message.
type spot struct {
	at chat.Address
	id string
}

type marked struct {
	want, shown Mark      // "" for none yet
	due         time.Time // not earlier
}

// newMarks returns nil, which knows no message, for a channel without marks.
func newMarks(c Channel) *marks {
	if _, ok := c.(Reactor); !ok {
		return nil
	}
	return &marks{all: map[spot]*marked{}, news: make(chan spot, maxMarks)}
}

// expect makes a message known that is to be marked, if there is room.
func (ms *marks) expect(s spot) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	if len(ms.all) >= maxMarks {
		maps.DeleteFunc(ms.all, func(_ spot, e *marked) bool { return time.Since(e.due) > markTime })
	}
	if ms.all[s] == nil && len(ms.all) < maxMarks {
		ms.all[s] = &marked{due: time.Now().Add(markAfter)}
	}
}

// set has a message that is known marked with m, unless it is further already.
func (ms *marks) set(s spot, m Mark) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	e := ms.all[s]
	switch {
	case e == nil, m == Seen && e.want != "":
		return
	case m == Done && e.shown == "": // quick
		delete(ms.all, s)
		return
	}
	e.want = m
	select {
	case ms.news <- s:
	default:
	}
}

// take returns the mark that the message is to have now, if any, and takes it
// for made; or how long to wait for it.
func (ms *marks) take(s spot) (m Mark, wait time.Duration) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	e := ms.all[s]
	if e == nil || e.want == e.shown {
		return "", 0
	}
	if wait := time.Until(e.due); wait > 0 {
		return "", wait
	}
	if e.shown = e.want; e.want == Done {
		delete(ms.all, s)
	}
	return e.want, 0
}

// forget marks the message no more.
func (ms *marks) forget(s spot) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.all, s)
}

// react marks messages until ctx ends.
func (l *line) react(ctx context.Context, c Reactor) {
	for ctx.Err() == nil {
		var s spot
		select {
		case s = <-l.marks.news:
		case <-ctx.Done():
			return
		}
		m, wait := l.marks.take(s)
		if wait > 0 && Sleep(ctx, wait) { // those that come after have to wait, too
			m, _ = l.marks.take(s)
		}
		if m == "" {
			continue
		}
		err := within(ctx, signTime, func(ctx context.Context) error { return c.React(ctx, s.at, s.id, m) })
		if err != nil {
			l.log.Debug("message not marked", "chat", s.at.Session(), "err", err, stack(err))
		}
		if permanent(err) { // as in a chat that takes no marks
			l.marks.forget(s)
		}
		Sleep(ctx, max(asked(err), time.Second/reactions))
	}
}
