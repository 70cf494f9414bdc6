package telegram

import (
	"strconv"
	"strings"
	"sync"
)

const maxRecent = 256 // messages of one counter that are remembered

// numbers knows the numbers of the messages that were sent or heard. Telegram
// has one counter for the messages of all private chats and basic groups of a
// bot, and one for each supergroup. A message that is sent later has a higher
// number of the same counter.
type numbers struct {
	mu       sync.Mutex
	moment   uint64 // counts the requests that began
	counters map[string]*counter
	doubts   map[int64]uint64 // chat -> the moment at which it was not known whether a message had been sent there
	searches map[int64]*search
}

type counter struct {
	last   int // the highest number
	recent []observed
}

// An observed number is that of a message that was sent or heard.
type observed struct {
	number int
	after  uint64 // it was given after that moment; 0 if that is not known
}

// A search for a message. It goes on where it was when it was cut off.
type search struct {
	after  int // the message has a higher number
	next   int
	probes int
}

func newNumbers() *numbers {
	return &numbers{counters: map[string]*counter{}, doubts: map[int64]uint64{}, searches: map[int64]*search{}}
}

// counter returns the counter of chat. n.mu is held. Of a basic group whose id
// begins as those of supergroups do, less is known than there could be, and
// nothing false.
func (n *numbers) counter(chat int64) *counter {
	name := strconv.FormatInt(chat, 10)
	if !strings.HasPrefix(name, "-100") {
		name = "account"
	}
	if n.counters[name] == nil {
		n.counters[name] = &counter{}
	}
	return n.counters[name]
}

// begin returns the moment at which a request begins: the messages that it
// turns out to have sent get their numbers after that.
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
	c := n.counter(chat)
	for _, id := range ids {
		c.last = max(c.last, id)
		c.recent = append(c.recent, observed{id, after})
	}
	c.recent = c.recent[max(0, len(c.recent)-maxRecent):]
}

// raise notes that the counter of chat has come to id.
func (n *numbers) raise(chat int64, id int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := n.counter(chat)
	c.last = max(c.last, id)
}

// last returns the highest number of the counter of chat, 0 if none is known.
func (n *numbers) last(chat int64) int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.counter(chat).last
}

// doubt notes that a message may just have been sent to chat.
func (n *numbers) doubt(chat int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.moment++
	n.doubts[chat] = n.moment
}

// search returns the search for a message that may have been sent to chat after
// that number: the one that was cut off, or one that begins.
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

// candidate moves s to the next number that may be the message's, and reports
// whether there is one: it is no other message's, and lower than the highest one
// that was given since under the same counter.
func (n *numbers) candidate(chat int64, s *search) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	taken, limit := map[int]bool{}, 0
	for _, r := range n.counter(chat).recent {
		taken[r.number] = true
		if r.after > n.doubts[chat] {
			limit = max(limit, r.number)
		}
	}
	for taken[s.next] {
		s.next++
	}
	return limit == 0 || s.next < limit
}

// end ends the search in chat and the doubt that it was for.
func (n *numbers) end(chat int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.searches, chat)
	delete(n.doubts, chat)
}
