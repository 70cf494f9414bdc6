package channels_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/channels/network"
	"parley/chat"
	"parley/store"
	"parley/timetest"
)

func send(t *testing.T, h *testHub, rs ...chat.Reply) {
	t.Helper()
	for _, r := range rs {
		if err := h.Send(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
}

// P9: in order, once each, in the number of commits that it takes.
func TestP9OrderAndOnce(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		send(t, h, reply("a", "one"), reply("b", "two"), reply("a", "one"), reply("c", "three"))
		h.drain()
		m.shows("one", "two", "three")
		if commits := m.ops - len(m.fake.Ops()); commits != 4+3 {
			t.Errorf("%d commits, want a push for each Send and a done for each reply", commits)
		}
		m.clean()
	})
}

// P9: a file that takes long to send is not cut off and sent anew.
func TestP9SlowUpload(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(channeltest.Op) error { time.Sleep(10 * time.Minute); return nil })
		h := m.start(0)
		r := reply("a", "see")
		r.Files = []chat.File{{Path: "film.mp4"}}
		send(t, h, r)
		timetest.Sleep(time.Hour)
		h.drain()
		if n := len(m.fake.Ops()); n != 1 {
			t.Errorf("sent %d times", n)
		}
		m.clean()
	})
}

// The parts of a reply have ids of their own, for networks that drop what they
// saw before, and the first alone quotes.
func TestP9Parts(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit = 5
		h := m.start(channeltest.Splits)
		r := reply("a", "aaaa bbbb cccc")
		r.Quote, r.Group = "7", true
		send(t, h, r)
		h.drain()
		for i, want := range []chat.Reply{{ID: "a", Quote: "7", Text: "aaaa"}, {ID: "a#2", Text: "bbbb"}, {ID: "a#3", Text: "cccc"}} {
			got := m.fake.Ops()[i].Reply
			if got.ID != want.ID || got.Quote != want.Quote || got.Text != want.Text || !got.Group || got.To != room {
				t.Errorf("part %d: %+v, want %+v", i, got, want)
			}
		}
	})
}

// P9: whatever operation on disk or network the process dies at, nothing is
// lost, order is kept, and one part at most is repeated.
func TestP9CrashAnywhere(t *testing.T) {
	long := "first part " + strings.Repeat("a", 8) + " second part " + strings.Repeat("b", 8) + " third"
	for _, powers := range []channeltest.Power{channeltest.Splits, channeltest.Splits | channeltest.Edits} {
		for _, late := range []bool{false, true} {
			for crash := 1; ; crash++ {
				done := false
				in(t, func(t *testing.T, m *machine) {
					done = crashAt(t, m, powers, crash, late, long)
				})
				if t.Failed() {
					t.Fatalf("powers %b, crash at operation %d, late %v", powers, crash, late)
				}
				if done {
					break
				}
			}
		}
	}
}

// P9: where the network can tell what was sent, nothing is repeated either, not
// even if the process dies a second time, whatever it does then.
func TestP9TracedCrashAnywhere(t *testing.T) {
	long := "first part " + strings.Repeat("a", 8) + " second part " + strings.Repeat("b", 8) + " third"
	for _, late := range []bool{false, true} {
		for first := 1; ; first++ {
			twice := true
			for second := 1; twice; second++ {
				in(t, func(t *testing.T, m *machine) {
					m.fake.Limit, m.fake.Every = 20, 500*time.Millisecond
					m.crash, m.late = first, late
					deaths := 0
					for over := false; !over; {
						h := m.start(channeltest.Splits | channeltest.Edits | channeltest.Traces)
						if over = talk(t, m, h, long); over {
							h.drain()
						}
						h.stop()
						if died := dead(m); died {
							over = false
							if deaths++; deaths > 2 {
								t.Fatal("died more often than it was killed")
							}
							m.reboot(t.Context())
							if deaths == 1 {
								m.crash, m.late = m.ops+second, !late
							}
						}
					}
					twice = deaths == 2
					if verify(t, m, long, 0); t.Failed() {
						t.Fatalf("dead at operations %d and then %d, late %v", first, second, late)
					}
					if deaths == 0 { // else a record may be left, for prune to find
						m.clean()
						first = -1
					}
				})
				if t.Failed() {
					return
				}
			}
			if first < 0 {
				break
			}
		}
	}
}

// crashAt has a conversation in which the process dies at operation crash, and
// says whether it was over before.
func crashAt(t *testing.T, m *machine, powers channeltest.Power, crash int, late bool, long string) bool {
	m.fake.Limit, m.fake.Every = 20, 500*time.Millisecond
	m.crash, m.late = crash, late
	over := false
	for life := 0; !over; life++ {
		h := m.start(powers)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			over = talk(t, m, h, long)
		}()
		select {
		case <-ended:
			if over {
				h.drain()
			}
		case <-m.crashed:
			<-ended
		}
		select {
		case <-m.crashed:
			over = false
		default:
		}
		h.stop()
		if life > 0 && !over {
			t.Fatal("the second life did not end")
		}
		if !over {
			m.reboot(t.Context())
		} else if life == 0 {
			verify(t, m, long, 0)
			m.clean()
			return true
		}
	}
	verify(t, m, long, 1)
	return false
}

// talk is what an agent does: a short reply, one streamed unless its turn had
// ended before (P7), one long, another short.
func talk(t *testing.T, m *machine, h *testHub, long string) bool {
	ctx := t.Context()
	if h.Send(ctx, reply("r1", "hello")) != nil {
		return false
	}
	if !m.pushed("r2") {
		live := h.Live(ctx, reply("r2", ""))
		for i := 1; i <= len(long); i += 5 {
			live.Show(long[:i])
			timetest.Sleep(200 * time.Millisecond)
		}
		live.Close()
	}
	return h.Send(ctx, reply("r2", long)) == nil && h.Send(ctx, reply("r3", long)) == nil && h.Send(ctx, reply("r4", "bye")) == nil
}

// verify checks what the chat shows in the end, with that many duplicates at most.
func verify(t *testing.T, m *machine, long string, duplicates int) {
	t.Helper()
	var want []string
	f := channeltest.Fake{Limit: m.fake.Limit}
	for _, r := range []chat.Reply{reply("", "hello"), reply("", long), reply("", long), reply("", "bye")} {
		for _, p := range channels.Parts(f.As(channeltest.Splits), r) {
			want = append(want, p.Text)
		}
	}
	got := m.fake.Shown(room)
	if extra := len(got) - len(want); extra < 0 || extra > duplicates {
		t.Errorf("the chat shows %d messages, want %d and at most %d more: %q", len(got), len(want), duplicates, got)
	}
	i := 0
	for _, text := range got {
		if i < len(want) && text == want[i] {
			i++
		}
	}
	if i < len(want) {
		t.Errorf("%q is missing or out of order: %q", want[i], got)
	}
}

// P14, P10: a chat that the network does not take delays no other, and its own
// replies keep their order.
func TestP14BackoffDelaysOnlyItsChat(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Reply.To == room {
				return errors.New("no route")
			}
			return nil
		})
		h := m.start(0)
		other := chat.Address{Channel: "net", Chat: "2"}
		send(t, h, reply("a", "one"), reply("b", "two"), chat.Reply{ID: "c", To: other, Text: "hi"})
		synctest.Wait()
		if got := m.fake.Shown(other); len(got) != 1 {
			t.Errorf("the other chat shows %q", got)
		}
		timetest.Sleep(time.Minute)
		m.shows()
		m.on(nil)
		timetest.Sleep(5 * time.Minute)
		m.shows("one", "two")
		h.stop()
	})
}

// P10: 1 s doubling to 5 min, for 24 h, then parked; the next reply goes on.
func TestP10Backoff(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Reply.ID == "a" {
				panic("adapter not ready")
			}
			return nil
		})
		h := m.start(0)
		send(t, h, reply("a", "one"), reply("b", "two"))
		timetest.Sleep(23 * time.Hour)
		m.shows()
		timetest.Sleep(3 * time.Hour)
		m.shows("two")
		var tries []time.Time
		for _, op := range m.fake.Ops() {
			if op.Reply.ID == "a" {
				tries = append(tries, op.Time)
			}
		}
		for i := range tries[1:] {
			most := min(time.Second<<min(i, 20), 5*time.Minute)
			if gap := tries[i+1].Sub(tries[i]); gap > most || gap < most/2 {
				t.Errorf("try %d after %v, want up to %v", i+1, gap, most)
			}
		}
		if span := tries[len(tries)-1].Sub(tries[0]); span < 24*time.Hour {
			t.Errorf("given up after %v", span)
		}
		parked, err := h.DeadLetters().List(t.Context())
		if err != nil || len(parked) != 1 || parked[0].Reply.Text != "one" || !strings.Contains(parked[0].Reason, "adapter not ready") {
			t.Errorf("parked: %+v, %v", parked, err)
		}
		h.stop()
	})
}

// P10: what the network asks is done; what cannot be helped is parked at once.
func TestP10AfterAndPermanent(t *testing.T) {
	for _, c := range []struct {
		name   string
		err    error
		waits  time.Duration
		parked int
	}{
		{"retry after", &channels.Error{After: 17 * time.Minute, Err: errors.New("429")}, 17 * time.Minute, 0},
		{"blocked", fmt.Errorf("send: %w", &channels.Error{Permanent: true, Err: errors.New("403 blocked")}), 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			in(t, func(t *testing.T, m *machine) {
				m.on(func(op channeltest.Op) error {
					if op.Reply.ID == "a" && len(m.fake.Ops()) == 1 {
						return c.err
					}
					return nil
				})
				start := time.Now()
				h := m.start(0)
				send(t, h, reply("a", "one"), reply("b", "two"))
				timetest.Sleep(time.Hour)
				ops := m.fake.Ops()
				if got := ops[1].Time.Sub(start); got != c.waits {
					t.Errorf("went on after %v, want %v", got, c.waits)
				}
				if parked, _ := h.DeadLetters().List(t.Context()); len(parked) != c.parked {
					t.Errorf("parked: %+v", parked)
				}
				if last := ops[len(ops)-1].Reply.Text; last != "two" {
					t.Errorf("the last is %q", last)
				}
				h.stop()
			})
		})
	}
}

// P14: no lane spins, whatever the channel says.
func TestP14NoLaneSpins(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(channeltest.Op) error { return &channels.Error{After: 1, Err: errors.New("soon")} })
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), chat.Reply{ID: "b", To: chat.Address{Channel: "net", Chat: "2"}})
		live.Show("hi")
		send(t, h, reply("a", "one"))
		timetest.Sleep(10 * time.Second)
		for _, kind := range []channeltest.Kind{channeltest.Send, channeltest.Typing} {
			if n := len(m.fake.Ops(kind)); n < 10 || n > 200 {
				t.Errorf("%d times %s in 10 s", n, kind)
			}
		}
		live.Close()
		h.stop()
	})
}

// P10: parked replies are bounded, and one for a channel that is gone is parked.
func TestP10ParkedIsBounded(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		for i := range 1203 {
			r := chat.Reply{ID: fmt.Sprint(i), To: chat.Address{Channel: "gone", Chat: "1"}, Text: "hi"}
			if err := h.Send(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(time.Second)
		}
		parked, err := h.DeadLetters().List(t.Context())
		if err != nil || len(parked) != 1000 || parked[len(parked)-1].Reply.ID != "1202" {
			t.Errorf("%d parked, %v", len(parked), err)
		}
		if !strings.Contains(parked[0].Reason, `"gone"`) {
			t.Errorf("reason: %s", parked[0].Reason)
		}
	})
}

// P16: an orderly end lets what is on its way arrive, keeps what is not, and
// does not wait for a chat that takes nothing.
func TestP16Shutdown(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit = 5
		m.on(func(op channeltest.Op) error {
			time.Sleep(time.Second)
			if op.Reply.To.Chat == "dead" {
				return &channels.Error{After: time.Hour, Err: errors.New("429")}
			}
			return nil
		})
		h := m.start(channeltest.Splits)
		dead := chat.Address{Channel: "net", Chat: "dead"}
		send(t, h, chat.Reply{ID: "x", To: dead, Text: "x"}, chat.Reply{ID: "y", To: dead, Text: "y"}, reply("a", "aaaa bbbb cccc"))
		timetest.Sleep(1500 * time.Millisecond)
		h.stop() // the second part is on its way
		m.shows("aaaa", "bbbb")

		m.reboot(t.Context())
		h = m.start(channeltest.Splits)
		start := time.Now()
		h.drain()
		if took := time.Since(start); took > 3*time.Second {
			t.Errorf("drained in %v", took)
		}
		m.shows("aaaa", "bbbb", "cccc")
		if n, _ := m.store.Queue("outbox/net").Len(t.Context()); n != 2 {
			t.Errorf("%d left in the outbox, want 2", n)
		}
	})
}

// P19: with a full disk nothing is sent twice, and it goes on by itself.
func TestP19DiskFull(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit = 5
		m.on(func(channeltest.Op) error {
			m.fill(true)
			return nil
		})
		h := m.start(channeltest.Splits)
		send(t, h, reply("a", "aaaa bbbb"))
		timetest.Sleep(10 * time.Minute)
		if err := h.Send(t.Context(), reply("b", "x")); err == nil {
			t.Error("a full disk took a reply")
		}
		m.shows("aaaa")
		m.on(nil)
		m.fill(false)
		timetest.Sleep(6 * time.Minute)
		m.shows("aaaa", "bbbb")
		h.stop()
	})
}

// The outbox goes on when one entry cannot be read (P21).
func TestP21DamagedEntry(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		_ = m.disk().Queue("outbox/net").Push(t.Context(), "bad", []byte("{"))
		h := m.start(0)
		send(t, h, reply("a", "one"))
		h.drain()
		m.shows("one")
		if parked, err := h.DeadLetters().List(t.Context()); err != nil || len(parked) != 1 || parked[0].Reply.ID != "bad" {
			t.Errorf("parked: %+v, %v", parked, err)
		}
	})
}

// A reply of nothing is no message; one of files only is.
func TestEmptyReply(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Splits)
		r := reply("b", "")
		r.Files = []chat.File{{Path: "a.png"}}
		send(t, h, reply("a", " \n"), r)
		if h.Send(t.Context(), chat.Reply{To: room, Text: "x"}) == nil {
			t.Error("a reply without an id was taken")
		}
		h.drain()
		if ops := m.fake.Ops(); len(ops) != 1 || !slices.Equal(ops[0].Reply.Files, r.Files) {
			t.Errorf("%+v", ops)
		}
	})
}

// A channel that streams is told of a reply that came to nothing.
func TestEmptyReplyEndsStream(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Streams)
		send(t, h, reply("a", ""))
		h.drain()
		if ops := m.fake.Ops(); len(ops) != 1 || ops[0].Kind != channeltest.Send || ops[0].Reply.ID != "a" {
			t.Errorf("%+v", ops)
		}
	})
}

func TestStatus(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		h.Add("b", m.fake.As(0))
		h.Add("a", broken{m.fake.As(0)})
		send(t, &testHub{Hub: h}, chat.Reply{ID: "1", To: chat.Address{Channel: "b", Chat: "1"}, Text: "hi"})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := h.Receive(ctx, nil); err != nil {
			t.Error(err) // the other channel went on until ctx ended
		}
		got, err := h.Status(t.Context())
		if err != nil || len(got) != 2 || got[0].Channel != "a" || got[0].Err == nil || got[1].Err != nil || got[1].Pending != 1 {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// broken cannot receive.
type broken struct{ channels.Channel }

func (broken) Run(context.Context, chat.Deliver) error { return errors.New("wrong token") }

// A store that fails ends Work: nobody would notice an outbox that stands still.
func TestWorkEndsWithItsStore(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		hub := channels.NewHub(channels.Config{Store: lost{m.disk()}, Log: discard})
		hub.Add("net", m.fake.As(channeltest.All))
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if err := hub.Work(ctx); !errors.Is(err, store.ErrClosed) || time.Since(start) > time.Second {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// lost is a store whose queues cannot be read.
type lost struct{ store.Store }

func (l lost) Queue(name string) store.Queue { return lostQueue{l.Store.Queue(name)} }

type lostQueue struct{ store.Queue }

func (lostQueue) Pull(context.Context) (store.Item, error) { return store.Item{}, store.ErrClosed }

// P16: a channel whose readers stay after Run is closed when the last reply is sent.
func TestP16ClosesChannels(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(channeltest.Op) error { time.Sleep(time.Second); return nil })
		c := &closer{Channel: m.fake.As(0), open: true}
		hub := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		hub.Add("net", c)
		if err := hub.Send(t.Context(), reply("a", "one")); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		if err := hub.Work(ctx); err != nil {
			t.Error(err)
		}
		if c.open || c.late {
			t.Errorf("%+v", c)
		}
		m.shows("one")
	})
}

type closer struct {
	channels.Channel
	open, late bool
}

func (c *closer) Send(ctx context.Context, r chat.Reply) (channels.Receipt, error) {
	rc, err := c.Channel.Send(ctx, r)
	c.late = !c.open
	return rc, err
}

func (c *closer) Close() error {
	c.open = false
	return nil
}

// P10: a network that can be reached again is tried at once, but not before it
// wants to be.
func TestP10RecoveryEndsTheWait(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want int // requests after the recovery
	}{
		{errors.New("no route"), 1},
		{&channels.Error{After: time.Hour, Err: errors.New("wait")}, 0},
	} {
		in(t, func(t *testing.T, m *machine) {
			m.on(func(channeltest.Op) error { return tt.err })
			var trouble network.HealthState
			hub := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
			hub.Add("net", struct {
				channels.Channel
				channels.RecoveryNotifier
			}{m.fake.As(0), &trouble})
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error)
			go func() { ended <- hub.Work(ctx) }()
			if err := hub.Send(t.Context(), reply("a", "one")); err != nil {
				t.Fatal(err)
			}
			timetest.Sleep(10 * time.Minute)
			trouble.SetHealth(nil) // there was nothing to recover from
			synctest.Wait()
			before := len(m.fake.Ops())
			trouble.SetHealth(errors.New("no route"))
			trouble.SetHealth(nil)
			trouble.SetHealth(nil)
			synctest.Wait()
			if n := len(m.fake.Ops()) - before; n != tt.want {
				t.Errorf("%v: %d requests at the recovery, want %d", tt.err, n, tt.want)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
		})
	}
}
