package telegram

import (
	"strconv"
	"strings"
	"sync"
)

const maxRecent = 256 // messages that are remembered by counter

// numbers holds the numbers of the messages that were sent or received. Telegram
// has one counter for the messages of all private chats and basic groups of a bot,
// and one for each supergroup. A message that is sent later has a higher number of
// the same counter.
//
// A moment counts the requests that have begun. It shows which messages got their
// numbers only after a request.
type numbers struct {
	mu        sync.Mutex
	moment    uint64
	counters  map[string]*counter
	uncertain map[int64]uint64  // by chat: the moment when it was unknown whether a message had been sent
	searches  map[int64]*search // by chat
}

type counter struct {
	last   int // the highest number
	recent []observation
}

// An observation is the number of a message that was sent or received.
type observation struct {
	number int
	after  uint64 // the moment after which the message got it; 0 if unknown
}

// A search looks for one message. It can be interrupted and go on later.
type search struct {
	after  int // the message has a higher number
	next   int // to be tried
	probes int // tried so far
}

func newNumbers() *numbers {
	return &numbers{
		counters:  map[string]*counter{},
		uncertain: map[int64]uint64{},
		searches:  map[int64]*search{},
	}
}

// counterOf returns the counter of chat. n.mu is held. A basic group whose id
// begins like that of a supergroup gets a counter of its own: it knows less than
// it could, but nothing wrong.
func (n *numbers) counterOf(chat int64) *counter {
	name := strconv.FormatInt(chat, 10)
	if !strings.HasPrefix(name, "-100") {
		name = "account"
	}
	if n.counters[name] == nil {
		n.counters[name] = &counter{}
	}
	return n.counters[name]
}

// begin returns the moment at which a request begins: the messages that the
// request sends get their numbers after it.
func (n *numbers) begin() uint64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moment++
	return n.moment
}

// note remembers messages of chat, which got their numbers after that moment.
func (n *numbers) note(chat int64, after uint64, ids ...int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counterOf(chat)
	for _, id := range ids {
		c.last = max(c.last, id)
		c.recent = append(c.recent, observation{number: id, after: after})
	}
	c.recent = c.recent[max(0, len(c.recent)-maxRecent):]
}

// raise notes that the counter of chat has reached id.
func (n *numbers) raise(chat int64, id int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counterOf(chat)
	c.last = max(c.last, id)
}

// last returns the highest number of the counter of chat, 0 if none is known.
func (n *numbers) last(chat int64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counterOf(chat).last
}

// markUncertain notes that a message may just have been sent to chat.
func (n *numbers) markUncertain(chat int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moment++
	n.uncertain[chat] = n.moment
}

// search returns the search for a message that may have been sent to chat above
// that number: the one that was interrupted, or a new one.
func (n *numbers) search(chat int64, after int) *search {
	n.mu.Lock()
	defer n.mu.Unlock()
	s := n.searches[chat]
	if s == nil || s.after != after {
		s = &search{after: after, next: after + 1}
		n.searches[chat] = s
	}
	return s
}

// advance moves s to the next number that may be the message's, and reports
// whether there is one: it is no other message's, and lower than the highest one
// that the counter has given since.
func (n *numbers) advance(chat int64, s *search) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken := map[int]bool{}
	limit := 0
	for _, o := range n.counterOf(chat).recent {
		taken[o.number] = true
		if o.after > n.uncertain[chat] {
			limit = max(limit, o.number)
		}
	}
	for taken[s.next] {
		s.next++
	}
	return limit == 0 || s.next < limit
}

// endSearch ends the search in chat and the uncertainty behind it.
func (n *numbers) endSearch(chat int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.searches, chat)
	delete(n.uncertain, chat)
}
