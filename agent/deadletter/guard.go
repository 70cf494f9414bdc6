package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/store"
)

const (
	crashWindow = 5 * time.Second // a process that dies later after an answer began died over something else
	carefulTime = time.Minute     // for so long after such a death answers begin one at a time
	suspectLead = 3 * time.Second // for so long others wait for the suspected message to begin
)

// MaxDeaths is how many processes in a row die over one message, alone at work,
// before it is suspended (P8).
const MaxDeaths = 3

// suspicionKey is the key of the only suspicion in the bucket of suspended
// messages. The keys of messages have slashes.
const suspicionKey = "trial"

// A suspicion tells the next process which answers had just begun when this one
// died. It is on disk only while answers have begun lately, so that a kill at any
// other time blames no message.
type suspicion struct {
	Key    string `json:"key,omitempty"`    // of the only message whose answer had just begun; "" for several
	Alone  bool   `json:"alone,omitempty"`  // nothing else was under way, and nothing has ended since
	Deaths int    `json:"deaths,omitempty"` // of processes before this one, over Key alone, one after the other
	Last   bool   `json:"last,omitempty"`   // Key had been suspended, and this is its last try
}

// A Guard finds out over which message the process dies (P8). In ordinary times
// it writes nothing: only answers to messages that a dead process left behind
// are noted.
type Guard struct {
	table store.Table[suspicion]
	log   *slog.Logger
	nudge chan struct{} // wakes Run

	saving sync.Mutex // held while the suspicion is written; before mu

	mu      sync.Mutex
	careful time.Time         // until then answers begin one at a time
	suspect suspicion         // about the process before this one
	firstBy time.Time         // until then the suspected message begins before all others
	recent  map[string]*start // the answers that began lately, by the keys of their messages
	working int               // number of answers under way
	alone   int               // number of answers that wait to begin alone
	changed chan struct{}     // closed when one more answer may be able to begin
	noting  bool              // suspicions are written
	noted   *suspicion        // the suspicion on disk, nil if there is none
	closed  bool              // the process shuts down in good order, which blames no message
}

// An Answer is what the Guard has to know about an answer that is to begin.
type Answer struct {
	Key        string // of its message
	LeftBehind bool   // a dead process left the message in the inbox
	LastTry    bool   // the message was suspended because the process died over it
	Several    bool   // it answers other messages, too
}

// A start is an answer that began lately.
type start struct {
	suspicion
	until     time.Time // when it has not begun lately any more
	exclusive bool      // no other answer begins beside it
	over      bool
}

func NewGuard(bucket store.Bucket, log *slog.Logger) *Guard {
	table := store.NewTable(bucket, store.Forget[suspicion](log, "suspicion"))
	changed := make(chan struct{})
	return &Guard{table: table, log: log, nudge: make(chan struct{}, 1), recent: map[string]*start{}, changed: changed}
}

// Load reads which message the process before this one died over.
func (g *Guard) Load(ctx context.Context) error {
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
	g.noted = &t
	g.noting = true
	g.suspect = t
	g.careful = now.Add(carefulTime)
	g.firstBy = now.Add(suspectLead)
	if t.Alone {
		g.suspect.Deaths++
	}
	g.log.Warn("the process before died within seconds after answers began; answers begin one at a time for a while",
		"message", t.Key, "alone", t.Alone, "deaths", g.suspect.Deaths)
	return nil
}

// Blame returns how many processes in a row died over the message key while
// nothing else was under way, and whether that was its last try.
func (g *Guard) Blame(key string) (deaths int, last bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.suspect.Key != key || key == "" {
		return 0, false
	}
	return g.suspect.Deaths, g.suspect.Last
}

// ClearSuspect ends the suspicion against the message key, which is suspended or
// a dead letter, so that other answers may begin.
func (g *Guard) ClearSuspect(key string) {
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

// IsCareful reports whether answers begin one at a time.
func (g *Guard) IsCareful() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.careful)
}

// Begin waits until the answer may begin, and notes that it does if a dead
// process left its message behind. The caller calls end once the answer is over
// or waits for somebody; further calls have no effect.
func (g *Guard) Begin(ctx context.Context, a Answer) (end func(), err error) {
	begun, err := g.admit(ctx, a)
	if err != nil {
		return nil, err
	}
	g.save()
	return func() { g.end(a.Key, begun) }, nil
}

// admit waits until the answer may begin, and counts it among those under way.
func (g *Guard) admit(ctx context.Context, a Answer) (*start, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	exclusive := a.LastTry || time.Now().Before(g.careful)
	if exclusive {
		g.alone++
		defer func() {
			g.alone--
			g.wake()
		}()
	}
	for {
		wait := g.wait(a.Key, exclusive)
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
	for _, other := range g.recent { // if the process dies now, this answer may be to blame
		other.Alone = false
	}
	begun := &start{until: time.Now().Add(crashWindow), exclusive: exclusive}
	if !a.Several {
		begun.suspicion = suspicion{Key: a.Key, Alone: g.working == 0, Last: a.LastTry}
	}
	if g.suspect.Key == a.Key {
		begun.Deaths = g.suspect.Deaths
		g.suspect = suspicion{}
	}
	g.recent[a.Key] = begun
	g.working++
	g.noting = g.noting || a.LeftBehind || exclusive
	return begun, nil
}

// wait returns after how long at most the answer to the message key is to ask
// again whether it may begin; 0 means that it may. The caller holds mu.
func (g *Guard) wait(key string, exclusive bool) time.Duration {
	now := time.Now()
	g.dropOld(now)
	if g.suspect.Key != "" && g.suspect.Key != key && now.Before(g.firstBy) {
		return g.firstBy.Sub(now)
	}
	var wait time.Duration
	for _, begun := range g.recent {
		if exclusive || begun.exclusive {
			wait = max(wait, begun.until.Sub(now))
		}
	}
	if wait == 0 && !exclusive && g.alone > 0 {
		wait = crashWindow
	}
	return wait
}

// dropOld removes the answers that did not begin lately. The caller holds mu.
func (g *Guard) dropOld(now time.Time) {
	for key, begun := range g.recent {
		if !now.Before(begun.until) {
			delete(g.recent, key)
			g.wake()
		}
	}
}

// end notes that an answer is over.
func (g *Guard) end(key string, begun *start) {
	g.mu.Lock()
	if begun.over {
		g.mu.Unlock()
		return
	}
	begun.over = true
	g.working--
	if g.recent[key] == begun {
		delete(g.recent, key)
	}
	g.wake()
	g.mu.Unlock()
	g.save()
}

// Progressed notes that the answer to the message key has come a step further,
// which no crash undoes: a later death is not the fault of its beginning.
func (g *Guard) Progressed(key string) {
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

// wake has waiting answers ask again whether they may begin. The caller holds mu.
func (g *Guard) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// current returns the suspicion if the process dies now, nil if there is none.
// The caller holds mu.
func (g *Guard) current() *suspicion {
	g.noting = g.noting && !g.closed && len(g.recent) > 0
	if !g.noting {
		return nil
	}
	now := new(suspicion)
	if len(g.recent) == 1 {
		for _, begun := range g.recent {
			*now = begun.suspicion
		}
	}
	if !now.Alone && !now.Last {
		now.Deaths = 0
	}
	return now
}

// save writes the current suspicion, unless it is on disk already.
func (g *Guard) save() {
	g.saving.Lock()
	defer g.saving.Unlock()
	g.mu.Lock()
	now := g.current()
	noted := g.noted
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
		g.log.Warn("could not note which answers have begun", "err", err)
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

// Run ends suspicions once the process has lived with an answer for long enough,
// and all of them when ctx ends, since the process then shuts down in good order.
func (g *Guard) Run(ctx context.Context) {
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

// review writes the current suspicion, and returns when to look again.
func (g *Guard) review() (wait time.Duration) {
	g.mu.Lock()
	now := time.Now()
	g.dropOld(now)
	early := g.firstBy.Sub(now)
	wait = time.Hour
	for _, begun := range g.recent {
		wait = min(wait, begun.until.Sub(now))
	}
	g.mu.Unlock()
	if early > 0 { // the suspected message may begin yet
		return early
	}
	g.save()
	return wait
}

func (g *Guard) close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.save()
}
