package agent

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/store"
)

const (
	crashWindow = 5 * time.Second // the process dies over an answer within so long of its start, or over something else
	carefulTime = time.Minute     // after such a death the next process begins answers one at a time for so long
	suspectLead = 3 * time.Second // that others wait for the message under suspicion to begin

	// deathsToPutAside is how many processes in a row die over one message, alone
	// at work, before it is put aside (P8).
	deathsToPutAside = 3
)

// suspicionKey is that of the one suspicion in the bucket "tries". The keys of messages
// have slashes.
const suspicionKey = "trial"

// A suspicion tells the next process what had just begun when this one died. There
// is none on disk while no answer began lately, so a kill at any other time
// blames nobody.
type suspicion struct {
	Key    string `json:"key,omitempty"`    // of the one message whose answer had just begun; "" for several
	Alone  bool   `json:"alone,omitempty"`  // nothing else was at work, and nothing ended since
	Deaths int    `json:"deaths,omitempty"` // of processes before this one, over Key alone, one after the other
	Last   bool   `json:"last,omitempty"`   // Key had been put aside, and this is its last try
}

// A guard finds out over which message the process dies (P8). In ordinary times
// it writes nothing: only answers to messages that a dead process left behind
// are noted.
type guard struct {
	table store.Table[suspicion]
	log   *slog.Logger
	nudge chan struct{} // wakes run

	saving sync.Mutex // held while the suspicion is written; before mu

	mu      sync.Mutex
	careful time.Time // until then each answer begins alone
	suspect suspicion // of the process before …
	firstBy time.Time // … whose message begins before all others, if it does by then
	recent  map[string]*start
	working int           // answers under way
	alone   int           // that wait to begin alone
	changed chan struct{} // closed when one more answer may be able to begin
	noting  bool          // what begins is noted
	noted   *suspicion    // what is on disk, nil if nothing is
	closed  bool          // the process ends in good order, which is nobody's fault
}

// A start is the beginning of an answer, a moment ago.
type start struct {
	suspicion
	until     time.Time
	exclusive bool // no other begins beside it
	over      bool
}

func newGuard(bucket store.Bucket, log *slog.Logger) *guard {
	table := store.NewTable(bucket, store.Forget[suspicion](log, "suspicion"))
	changed := make(chan struct{})
	return &guard{table: table, log: log, nudge: make(chan struct{}, 1), recent: map[string]*start{}, changed: changed}
}

// load reads what the process before died over.
func (g *guard) load(ctx context.Context) error {
	t, _, err := g.table.Get(ctx, suspicionKey)
	if errors.Is(err, store.ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	now := time.Now()
	g.noted, g.noting, g.suspect = &t, true, t
	g.careful, g.firstBy = now.Add(carefulTime), now.Add(suspectLead)
	if t.Alone {
		g.suspect.Deaths++
	}
	g.log.Warn("the process before died within seconds after answers began; answers begin one at a time for a while",
		"message", t.Key, "alone", t.Alone, "deaths", g.suspect.Deaths)
	return nil
}

// blame returns how many processes in a row died over the message key, alone at
// work, and whether that was its last try.
func (g *guard) blame(key string) (deaths int, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.suspect.Key != key || key == "" {
		return 0, false
	}
	return g.suspect.Deaths, g.suspect.Last
}

// clearSuspect lets others begin: the message under suspicion was put aside, or is gone.
func (g *guard) clearSuspect(key string) {
	g.mu.Lock()
	suspected := g.suspect.Key == key
	if suspected {
		g.suspect = suspicion{}
		g.wake()
	}
	g.mu.Unlock()
	if suspected {
		g.save()
	}
}

// isCareful says whether answers begin one at a time.
func (g *guard) isCareful() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.careful)
}

// begin waits until the answer to the message key may begin, and notes that it
// does if that message was left behind by a dead process. The answer is over, or
// waits for somebody, once end is called, which works once. several says that it answers others, too.
func (g *guard) begin(ctx context.Context, key string, left, last, several bool) (end func(), err error) {
	y, err := g.admit(ctx, key, left, last, several)
	if err != nil {
		return nil, err
	}
	g.save()
	return func() { g.end(key, y) }, nil
}

// admit waits until the answer may begin, and counts it among those under way.
func (g *guard) admit(ctx context.Context, key string, left, last, several bool) (*start, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	exclusive := last || time.Now().Before(g.careful)
	if exclusive {
		g.alone++
		defer func() { g.alone--; g.wake() }()
	}
	for {
		wait := g.wait(key, exclusive)
		if wait <= 0 {
			break
		}
		changed := g.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-time.After(wait):
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	for _, other := range g.recent { // whatever they come to, this one may be to blame for it
		other.Alone = false
	}
	y := &start{suspicion: suspicion{Key: key, Alone: g.working == 0, Last: last}, until: time.Now().Add(crashWindow), exclusive: exclusive}
	if several {
		y.suspicion = suspicion{}
	}
	if g.suspect.Key == key {
		y.Deaths, g.suspect = g.suspect.Deaths, suspicion{}
	}
	g.recent[key] = y
	g.working++
	g.noting = g.noting || left || exclusive
	return y, nil
}

// wait returns how long the answer to key has to wait at most before another look. The caller holds mu.
func (g *guard) wait(key string, exclusive bool) time.Duration {
	now := time.Now()
	g.dropOld(now)
	if g.suspect.Key != "" && g.suspect.Key != key && now.Before(g.firstBy) {
		return g.firstBy.Sub(now)
	}
	var wait time.Duration
	for _, y := range g.recent {
		if exclusive || y.exclusive {
			wait = max(wait, y.until.Sub(now))
		}
	}
	if wait == 0 && !exclusive && g.alone > 0 {
		wait = crashWindow
	}
	return wait
}

// dropOld forgets the answers that did not begin lately. The caller holds mu.
func (g *guard) dropOld(now time.Time) {
	for key, y := range g.recent {
		if !now.Before(y.until) {
			delete(g.recent, key)
			g.wake()
		}
	}
}

// end notes that an answer is over.
func (g *guard) end(key string, y *start) {
	g.mu.Lock()
	if y.over {
		g.mu.Unlock()
		return
	}
	y.over = true
	g.working--
	if g.recent[key] == y {
		delete(g.recent, key)
	}
	g.wake()
	g.mu.Unlock()
	g.save()
}

// progressed notes that the answer to key has come a step further, which no crash
// takes back: the process does not die over its beginning any more.
func (g *guard) progressed(key string) {
	g.mu.Lock()
	begun := g.recent[key] != nil
	if begun {
		delete(g.recent, key)
		g.wake()
	}
	g.mu.Unlock()
	if begun {
		g.save()
	}
}

// wake lets those look again that wait to begin. The caller holds mu.
func (g *guard) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// current returns what is to be known if the process dies now, nil if that is
// nothing. The caller holds mu.
func (g *guard) current() *suspicion {
	var now *suspicion
	for _, y := range g.recent {
		if now = new(suspicion); len(g.recent) == 1 {
			*now = y.suspicion
		}
		if !now.Alone && !now.Last {
			now.Deaths = 0
		}
	}
	if !g.noting || g.closed {
		now = nil
	}
	g.noting = now != nil
	return now
}

// save writes down what is to be known if the process dies now, unless that is on
// disk.
func (g *guard) save() {
	g.saving.Lock()
	defer g.saving.Unlock()
	g.mu.Lock()
	now, noted := g.current(), g.noted
	g.mu.Unlock()
	if now == noted || now != nil && noted != nil && *now == *noted {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	var err error
	if now == nil {
		err = g.table.Delete(ctx, suspicionKey)
	} else {
		err = g.table.Set(ctx, suspicionKey, *now)
	}
	if err != nil {
		g.log.Warn("not noted which answers have begun", "err", err)
		return
	}
	g.mu.Lock()
	g.noted = now
	g.mu.Unlock()
	select {
	case g.nudge <- struct{}{}:
	default:
	}
}

// run forgets what began lately once the process has lived with it for long
// enough, or ends in good order, as it does when ctx ends.
func (g *guard) run(ctx context.Context) {
	for {
		select {
		case <-g.nudge:
		case <-time.After(g.review()):
		case <-ctx.Done():
			g.close()
			return
		}
	}
}

// review brings what is on disk up to now, and returns when to look again.
func (g *guard) review() (wait time.Duration) {
	g.mu.Lock()
	now := time.Now()
	g.dropOld(now)
	early := g.firstBy.Sub(now)
	wait = time.Hour
	for _, y := range g.recent {
		wait = min(wait, y.until.Sub(now))
	}
	g.mu.Unlock()
	if early > 0 { // the message under suspicion may begin yet
		return early
	}
	g.save()
	return wait
}

func (g *guard) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.save()
}
