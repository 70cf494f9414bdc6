package channels

import (
	"context"
	"sync"
	"time"

	"parley/chat"
)

const (
	coming Mark = "coming" // known, and not to be marked yet

	markAfter = time.Second      // an answer quicker than this needs no marks
	muteTime  = time.Hour        // in a chat that takes no marks
	markTime  = 10 * time.Minute // what is not answered by then may be forgotten
	maxMarks  = 1000
	reactions = 20 // in a second, at most
)

// marks are the messages of a channel that are being answered. Every one has
// one mark to come at most, the latest. They are best effort: lost by a
// restart, and not tried again.
type marks struct {
	news chan struct{} // holds one token when there may be something to do

	mu    sync.Mutex
	all   map[spot]*marked
	muted map[string]time.Time // chats that take no marks, and until when
}

// A spot is one message.
type spot struct {
	at chat.Address
	id string
}

type marked struct {
	want, shown Mark
	due         time.Time // not earlier
}

// newMarks returns nil, which takes everything and does nothing, for a channel without marks.
func newMarks(c Channel) *marks {
	if _, ok := c.(Reactor); !ok {
		return nil
	}
	return &marks{news: make(chan struct{}, 1), all: map[spot]*marked{}, muted: map[string]time.Time{}}
}

// set has the message marked with m, unless it is further already.
func (ms *marks) set(at chat.Address, id string, m Mark) {
	if ms == nil || id == "" {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	s := spot{at, id}
	e := ms.all[s]
	switch {
	case m == coming:
		if e == nil && ms.room() && time.Now().After(ms.muted[at.Chat]) {
			ms.all[s] = &marked{want: coming, due: time.Now().Add(markAfter)}
		}
		return
	case e == nil, m == Seen && e.want != coming:
		return
	case m == Done && e.shown == "": // quick
		delete(ms.all, s)
		return
	}
	e.want = m
	select {
	case ms.news <- struct{}{}:
	default:
	}
}

// room makes room for one message and says whether there is.
func (ms *marks) room() bool {
	if len(ms.all) < maxMarks {
		return true
	}
	for s, e := range ms.all {
		if time.Since(e.due) > markTime {
			delete(ms.all, s)
		}
	}
	return len(ms.all) < maxMarks
}

// drop forgets a message.
func (ms *marks) drop(at chat.Address, id string) {
	if ms == nil {
		return
	}
	ms.mu.Lock()
	defer ms.mu.Unlock()
	delete(ms.all, spot{at, id})
}

// next takes what is to be marked now, or returns how long nothing is.
func (ms *marks) next() (s spot, m Mark, wait time.Duration) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	wait = time.Hour
	for s, e := range ms.all {
		if e.want == e.shown || e.want == coming {
			continue
		}
		if d := time.Until(e.due); d > 0 {
			wait = min(wait, d)
			continue
		}
		if e.shown = e.want; e.want == Done {
			delete(ms.all, s)
		}
		return s, e.want, 0
	}
	return spot{}, "", wait
}

// mute marks nothing more in chat for a while.
func (ms *marks) mute(chat string) {
	ms.mu.Lock()
	defer ms.mu.Unlock()
	for c, until := range ms.muted {
		if time.Now().After(until) {
			delete(ms.muted, c)
		}
	}
	ms.muted[chat] = time.Now().Add(muteTime)
	for s := range ms.all {
		if s.at.Chat == chat {
			delete(ms.all, s)
		}
	}
}

// react marks messages until ctx ends.
func (l *line) react(ctx context.Context, c Reactor) {
	for ctx.Err() == nil {
		s, m, wait := l.marks.next()
		if m == "" {
			l.marks.wait(ctx, wait)
			continue
		}
		err := once(ctx, func(ctx context.Context) error { return c.React(ctx, s.at, s.id, m) })
		if err != nil {
			l.log.Debug("message not marked", "chat", s.at.Session(), "err", err, stack(err))
		}
		if permanent(err) {
			l.marks.mute(s.at.Chat)
		}
		sleep(ctx, max(asked(err), time.Second/reactions))
	}
}

// wait waits for news, for d at most.
func (ms *marks) wait(ctx context.Context, d time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	select {
	case <-ms.news:
	case <-ctx.Done():
	}
}
