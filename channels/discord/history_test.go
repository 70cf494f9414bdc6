package discord_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/chat"
	"parley/store"
)

var errCrashed = errors.New("the process is dead")

// A crash ends one run of the bot: from a certain step on, nothing that the bot
// does has an effect any more. Each write and each delivery is two steps, so that
// it may take effect without the bot knowing.
type crash struct {
	ended  chan struct{}
	stored chan struct{} // gets a value when a session is stored

	mu   sync.Mutex
	left int // steps; below 0: not counted
	dead bool
}

func newCrash() *crash {
	return &crash{left: -1, ended: make(chan struct{}), stored: make(chan struct{}, 1)}
}

// step returns an error in and after the step of the crash.
func (c *crash) step() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 && !c.dead {
		c.dead = true
		close(c.ended)
	}
	if c.dead {
		return errCrashed
	}
	c.left--
	return nil
}

// after makes the crash happen after that many steps.
func (c *crash) after(steps int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left = steps
}

// now makes it happen at once.
func (c *crash) now() {
	c.after(0)
	_ = c.step() // which it ends
}

// do does f between two steps.
func (c *crash) do(f func() error) error {
	if err := c.step(); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	return c.step()
}

// A crashBucket accepts no writes after the crash.
type crashBucket struct {
	store.Bucket
	life func() *crash
}

func (b crashBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (next uint64, err error) {
	life := b.life()
	err = life.do(func() (err error) {
		next, err = b.Bucket.Put(ctx, key, val, rev)
		return err
	})
	if err == nil && key == "session" && bytes.Contains(val, []byte(`"session":`)) {
		select {
		case life.stored <- struct{}{}:
		default:
		}
	}
	return next, err
}

func (b crashBucket) Delete(ctx context.Context, key string) error {
	return b.life().do(func() error { return b.Bucket.Delete(ctx, key) })
}

// A history is a random sequence of events: people write in private chats, channels
// and threads while the connection breaks, Discord forgets the session, and the bot
// crashes at any step and comes back.
type history struct {
	*harness
	rnd    *rand.Rand
	places []string            // channels and threads of servers
	sent   map[string][]string // by channel: texts for the bot, in order
	number int
	events []string // to be shown when the test fails

	lock  sync.Mutex
	life  *crash
	got   map[string][]string // by channel: what was delivered first, in order
	again int                 // deliveries that were known
	known map[string]bool
}

func newHistory(t *testing.T, seed uint64) *history {
	h := &history{rnd: rand.New(rand.NewPCG(seed, 0)), life: newCrash(), sent: map[string][]string{}, got: map[string][]string{}, known: map[string]bool{}}
	h.harness = newHarness(t, discordtest.Config{Buffer: 10 + h.rnd.IntN(60)}, nil)
	h.seen = crashBucket{h.seen, h.alive}
	h.setDeliverError(func(m chat.Message) error {
		return h.alive().do(func() error {
			h.lock.Lock()
			defer h.lock.Unlock()
			if h.known[m.Key()] { // the inbox drops what it knows
				h.again++
				return nil
			}
			h.known[m.Key()] = true
			at := m.At.Chat
			if m.At.Thread != "" {
				at = m.At.Thread
			}
			h.got[at] = append(h.got[at], m.Text)
			return nil
		})
	})
	for range 3 {
		channel := h.Channel("900")
		h.places = append(h.places, channel, h.Thread(channel), h.Channel("901"))
	}
	h.restart()
	h.ch.SaveEvery(time.Duration(h.rnd.IntN(30)+1) * time.Millisecond)
	return h
}

func (h *history) alive() *crash {
	h.lock.Lock()
	defer h.lock.Unlock()
	return h.life
}

// says makes people write n messages here and there.
func (h *history) says(n int) {
	for range n {
		h.number++
		if h.rnd.IntN(2) == 0 {
			h.direct(fmt.Sprint(h.rnd.IntN(12) + 1))
			continue
		}
		place := h.places[h.rnd.IntN(len(h.places))]
		if h.rnd.IntN(4) == 0 {
			h.Say(place, "8", "", fmt.Sprint("not to the bot ", h.number))
			continue
		}
		h.events = append(h.events, fmt.Sprint("say ", place, " ", h.number))
		h.sent[place] = append(h.sent[place], fmt.Sprint(h.number))
		h.Say(place, "7", "", fmt.Sprint("<@101> ", h.number))
	}
}

// direct makes that person write to the bot.
func (h *history) direct(person string) {
	h.events = append(h.events, fmt.Sprint("say @", person, " ", h.number))
	h.sent["@"+person] = append(h.sent["@"+person], fmt.Sprint(h.number))
	h.Say(h.DM(person), person, "", fmt.Sprint(h.number))
}

func (h *history) note(format string, args ...any) {
	h.events = append(h.events, fmt.Sprintf(format, args...))
}

// crashAndReturn crashes the bot, makes people write meanwhile, and starts the bot again.
func (h *history) crashAndReturn(stop func()) func() {
	steps, late := h.rnd.IntN(8), time.Duration(h.rnd.IntN(15))*time.Millisecond
	h.note("crash after %d steps", steps)
	h.life.after(steps)
	h.says(h.rnd.IntN(3))
	select {
	case <-h.life.ended:
	case <-time.After(late): // nothing happens, or not soon
		h.life.now()
	}
	stop()
	h.note("dead")
	h.says(h.rnd.IntN(4))
	if h.rnd.IntN(3) == 0 {
		h.note("session forgotten")
		h.Forget()
	}
	h.lock.Lock()
	h.life = newCrash()
	h.lock.Unlock()
	h.restart()
	h.ch.SaveEvery(time.Duration(h.rnd.IntN(30)+1) * time.Millisecond)
	stop = h.start()
	h.note("back")
	return stop
}

// run makes that many things happen.
func (h *history) run(turns int) {
	stop := h.harness.run()
	for range turns {
		if h.rnd.IntN(2) == 0 {
			h.wait(discordtest.View.Online)
			h.note("online")
		}
		switch h.rnd.IntN(8) {
		case 0, 1, 2:
			h.says(1 + h.rnd.IntN(3))
		case 3, 4:
			stop = h.crashAndReturn(stop)
		case 5:
			h.note("connection broken")
			h.Drop([]int{0, 1000, 4000}[h.rnd.IntN(3)])
			h.says(h.rnd.IntN(3))
		case 6:
			h.note("session forgotten, connected")
			h.Forget()
			h.says(h.rnd.IntN(3))
		case 7:
			h.note("stop and start")
			stop()
			h.says(h.rnd.IntN(2))
			h.restart()
			stop = h.start()
		}
	}
	h.note("the end")
	h.wait(discordtest.View.Online)
	place := h.places[0]
	h.number++
	h.sent[place] = append(h.sent[place], fmt.Sprint(h.number))
	h.Say(place, "7", "", fmt.Sprint("<@101> ", h.number))
	for { // until the bot is there to stay
		h.lock.Lock()
		delivered := slices.Contains(h.got[place], fmt.Sprint(h.number))
		h.lock.Unlock()
		if delivered {
			break
		}
		_ = h.next()
	}
	for person := range 12 { // a first message that nobody follows up may stay unseen
		h.number++
		h.direct(fmt.Sprint(person + 1))
	}
}

// missing returns messages that were not delivered, or not in order.
func (h *history) missing() (faults []string) {
	h.lock.Lock()
	defer h.lock.Unlock()
	for at, sent := range h.sent {
		if got := h.got[at]; !slices.Equal(sent, got) {
			faults = append(faults, fmt.Sprintf("%s: sent %v, delivered %v", at, sent, got))
		}
	}
	return faults
}

// All messages are delivered (P3), in order, whatever breaks and whenever the bot
// crashes: even in private chats that were never read, once somebody writes there
// again.
func TestTortureDiscordHistory(t *testing.T) {
	t.Parallel()
	histories, turns := 12, 25
	if os.Getenv("PARLEY_TORTURE") != "" {
		histories, turns = 400, 60
	}
	first := uint64(time.Now().UnixNano())
	for i := range histories {
		seed := first + uint64(i)
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			h := newHistory(t, seed)
			h.run(turns)
			for late := time.Now().Add(testTimeout); len(h.missing()) > 0 && time.Now().Before(late); {
				select { // what was delivered last
				case <-h.received:
				case <-time.After(testTimeout):
					late = time.Now()
				}
			}
			if faults := h.missing(); len(faults) > 0 {
				t.Errorf("lost or out of order:\n%s\nafter:\n%s", strings.Join(faults, "\n"), strings.Join(h.events, "\n"))
			}
		})
	}
}
