package conversation

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/store/mem"
	"parley/texts"
)

// talkOf returns the session id with about so many tokens.
func talkOf(id chat.SessionID, tokens int) *Session {
	h := NewHistory(time.UTC)
	h.Apply(1, Record{Heard: &chat.Message{ID: "1", Text: strings.Repeat("word", tokens)}})
	return NewSessions(mem.New(), slog.New(slog.DiscardHandler), time.UTC, texts.Speakers{}).Restore(id, State{}, h, 1)
}

// P15: the sessions that were idle for longest leave the memory when they are too many.
func TestCacheIsBounded(t *testing.T) {
	var c cache
	id := func(i int) chat.SessionID { return chat.SessionID(fmt.Sprint(i)) }
	for i := range 100 {
		c.put(talkOf(id(i), cacheSize/10))
	}
	if n := len(c.byID); n < 5 || n > 10 || c.byAge.Len() != n || c.size > cacheSize {
		t.Errorf("%d sessions of %d tokens, %d in order", n, c.size, c.byAge.Len())
	}
	if c.take(id(99)) == nil || c.take(id(99)) != nil || c.take(id(0)) != nil {
		t.Error("the latest is not there, or twice, or the oldest is")
	}
	c.put(talkOf(id(200), 2*cacheSize))
	if len(c.byID) != 0 || c.size != 0 {
		t.Errorf("%d sessions of %d tokens after one that is too large", len(c.byID), c.size)
	}
	for i := range 10_000 { // short ones take more than their words
		c.put(talkOf(id(i), 10))
	}
	if n := len(c.byID); n < 2000 || n > 4000 {
		t.Errorf("%d sessions of a few words", n)
	}
}
