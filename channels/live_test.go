package channels_test

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/timetest"
)

const edits = channeltest.Splits | channeltest.Edits

// stream shows text word by word, each a while after the one before.
func stream(live chat.Live, text string, each time.Duration) {
	for i := range text {
		if text[i] == ' ' {
			live.Show(text[:i])
			timetest.Sleep(each)
		}
	}
	live.Show(text)
}

func TestLiveQuickAnswerIsSentOnceWhole(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, "a quick answer", 20*time.Millisecond)
		live.Close()
		send(t, h, reply("a", "a quick answer"))
		h.drain()
		m.shows("a quick answer")
		if len(m.fake.Ops()) != 1 || m.ops != 3 {
			t.Errorf("%d operations: %+v; want push, send, done", m.ops, m.fake.Ops())
		}
	})
}

// A long answer is one message, edited no more often than the channel likes.
func TestLiveEdits(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Every = time.Second
		text := strings.Repeat("word ", 100) + "end"
		h := m.start(channeltest.All)
		start := time.Now()
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, text, 100*time.Millisecond)
		live.Close()
		shown := m.fake.Shown(room)
		if len(shown) != 1 || !strings.HasPrefix(text, shown[0]) || len(shown[0]) < 400 {
			t.Errorf("shown in the end: %q", shown)
		}
		send(t, h, reply("a", text))
		h.drain()
		m.shows(text)
		m.clean()
		ops := m.fake.Ops(channeltest.Send, channeltest.Edit)
		if first := ops[0].Time.Sub(start); first < 700*time.Millisecond || first > 800*time.Millisecond {
			t.Errorf("first shown after %v", first)
		}
		for i := 1; i < len(ops)-1; i++ {
			if gap := ops[i].Time.Sub(ops[i-1].Time); gap < time.Second || gap > 1200*time.Millisecond || ops[i].Kind != channeltest.Edit {
				t.Errorf("%s after %v", ops[i].Kind, gap)
			}
		}
	})
}

// What the final text says already is not edited once more.
func TestLiveNeedsNoFinalEdit(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("all of it")
		timetest.Sleep(time.Second)
		live.Close()
		send(t, h, reply("a", "all of it"))
		h.drain()
		if ops := m.fake.Ops(channeltest.Send, channeltest.Edit); len(ops) != 1 {
			t.Errorf("%+v", ops)
		}
		m.clean()
	})
}

// Text that outgrows the limit goes on in the next message; text that shrinks in the end leaves no rest.
func TestLiveGrowsAndShrinks(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit, m.fake.Every = 10, 100*time.Millisecond
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, "aaaa bbbb cccc dddd eeee", time.Second)
		timetest.Sleep(time.Second)
		m.shows("aaaa bbbb", "cccc dddd", "eeee")
		live.Close()
		send(t, h, reply("a", "aaaa bbbb changed"))
		h.drain()
		m.shows("aaaa bbbb", "changed")
		m.clean()
	})
}

// P6, P9: a turn that goes on after a crash goes on in the same message, and
// its final text counts even when it equals an earlier one.
func TestP9LiveGoesOnAfterRestart(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Every = 100 * time.Millisecond
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("hello")
		timetest.Sleep(time.Second)
		live.Close()
		h.stop()

		m.reboot(t.Context())
		h = m.start(channeltest.All)
		live = h.Live(t.Context(), reply("a", ""))
		live.Show("hello, wait")
		timetest.Sleep(time.Second)
		m.shows("hello, wait")
		m.crash = m.ops + 1 // dies before the view is closed
		live.Close()
		h.stop()

		m.reboot(t.Context())
		h = m.start(channeltest.All)
		send(t, h, reply("a", "hello"))
		h.drain()
		m.shows("hello")
		m.clean()
	})
}

// P10: a network that asks for patience gets it, and the reply arrives.
func TestP10LiveBacksOff(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.Edit && len(m.fake.Ops(channeltest.Edit)) == 1 {
				return &channels.Error{After: 30 * time.Second, Err: errors.New("429")}
			}
			return nil
		})
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, strings.Repeat("word ", 20)+"end", time.Second)
		timetest.Sleep(30 * time.Second)
		edits := m.fake.Ops(channeltest.Edit)
		if gap := edits[1].Time.Sub(edits[0].Time); gap < 30*time.Second {
			t.Errorf("the next edit came after %v", gap)
		}
		live.Close()
		send(t, h, reply("a", "done"))
		h.drain()
		m.shows("done")
	})
}

// After a send whose answer was lost the view does not send again; only the
// final reply does, which cannot know.
func TestP9LiveDoesNotRepeatUnclearSend(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error { return channeltest.ErrLost })
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, strings.Repeat("word ", 20), time.Second)
		live.Close()
		if ops := m.fake.Ops(channeltest.Send, channeltest.Edit); len(ops) != 1 {
			t.Errorf("%+v", ops)
		}
		h.stop()
	})
}

// An edit whose answer was lost leaves open what the message says: the final
// text is edited in, even if the journal thinks it is there.
func TestP9LiveUnclearEdit(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Reply.Text == "one, no" {
				return channeltest.ErrLost
			}
			return nil
		})
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("one")
		timetest.Sleep(time.Second)
		if !keys(m.store.Bucket("delivery"))["a"] {
			t.Error("the receipt is not journalled at once")
		}
		live.Show("one, no")
		timetest.Sleep(time.Second)
		live.Close()
		m.shows("one, no")
		send(t, h, reply("a", "one"))
		h.drain()
		m.shows("one")
	})
}

// Records of replies that were never sent go after a month, unreadable ones at
// once, others stay.
func TestOldRecordsArePruned(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(edits)
		for _, id := range []string{"old", "young"} {
			live := h.Live(t.Context(), reply(id, ""))
			live.Show("never finished")
			timetest.Sleep(20 * 24 * time.Hour)
			live.Close()
			timetest.Sleep(11 * 24 * time.Hour)
		}
		h.stop()
		_, _ = m.store.Bucket("delivery").Put(t.Context(), "bad", []byte("{"), 0)
		h = m.start(edits)
		synctest.Wait()
		if left := keys(m.store.Bucket("delivery")); left["old"] || left["bad"] || !left["young"] {
			t.Errorf("left: %v", left)
		}
		h.stop()
	})
}

// P10: the first message waits as the network asks, and comes once.
func TestP10LiveFirstMessageBacksOff(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if len(m.fake.Ops()) == 1 {
				return &channels.Error{After: 10 * time.Second, Err: errors.New("429")}
			}
			return nil
		})
		h := m.start(edits)
		defer h.stop()
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("one")
		timetest.Sleep(15 * time.Second)
		live.Close()
		m.shows("one")
		if n := len(m.fake.Ops()); n != 2 {
			t.Errorf("%d operations, want one refused and one taken", n)
		}
	})
}

// A message that its reader deleted is sent anew by the final reply, once.
func TestLiveDeletedMessageIsSentAnew(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("one two")
		timetest.Sleep(time.Second)
		m.fake.Forget(room, 0)
		live.Show("one two three")
		timetest.Sleep(3 * time.Second)
		m.shows()
		live.Close()
		send(t, h, reply("a", "one two three"))
		h.drain()
		m.shows("one two three")
		m.clean()
	})
}

// P9: what was queued for the chat before is shown before, and a chat that
// takes nothing is not streamed to.
func TestP9LiveHoldsBack(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		refuse := make(chan struct{})
		m.on(func(op channeltest.Op) error {
			select {
			case <-refuse:
				return nil
			default:
				return &channels.Error{After: 10 * time.Second, Err: errors.New("429")}
			}
		})
		h := m.start(channeltest.Splits | channeltest.Edits)
		send(t, h, reply("first", "first"))
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("second")
		timetest.Sleep(5 * time.Second)
		close(refuse)
		m.shows()
		timetest.Sleep(6 * time.Second)
		m.shows("first", "second")
		send(t, h, reply("first", "first")) // dropped: it must not hold back for ever
		live = h.Live(t.Context(), reply("b", ""))
		live.Show("third")
		timetest.Sleep(3 * time.Second)
		m.shows("first", "second", "third")
		live.Close()
		h.stop()
	})
}

// A reply with files does not become an edit of a message without; an empty
// reply takes back what was shown.
func TestLiveFilesAndTakeBack(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Edits)
		for _, id := range []string{"a", "b"} {
			live := h.Live(t.Context(), reply(id, ""))
			live.Show("partial")
			timetest.Sleep(time.Second)
			live.Close()
		}
		r := reply("a", "with a file")
		r.Files = []chat.File{{Path: "a.png"}}
		send(t, h, r, reply("b", ""))
		h.drain()
		m.shows("with a file")
		if n := len(m.fake.Ops(channeltest.Send)); n != 3 {
			t.Errorf("%d sent", n)
		}
		m.clean()
	})
}

// The typing sign is shown from early on until the end, and failure does not matter.
func TestLiveTyping(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error { return errors.New("no route") })
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("a", ""))
		timetest.Sleep(10 * time.Second)
		live.Close()
		if n := len(m.fake.Ops(channeltest.Typing)); n != 3 {
			t.Errorf("typing was shown %d times in 10 s, want 3", n)
		}
		timetest.Sleep(time.Minute)
		if n := len(m.fake.Ops()); n != 3 {
			t.Errorf("%d operations after Close", n)
		}
		h.stop()
	})
}

// A view has a goroutine only while it shows something, and none once it is closed, also if its turn goes on
// telling it things.
func TestLiveWaitsWithoutGoroutines(t *testing.T) {
	for _, powers := range []channeltest.Power{channeltest.All, channeltest.Streams} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(powers)
			timetest.Sleep(time.Second)
			before := runtime.NumGoroutine()
			var views []chat.Live
			for i := range 500 {
				views = append(views, h.Live(t.Context(), reply(fmt.Sprint(i), "")))
			}
			for range 20 {
				timetest.Sleep(500 * time.Millisecond)
				// While a goroutine ends, NumGoroutine may be wrong by as many as a processor keeps for reuse.
				if n := runtime.NumGoroutine() - before; n > 250 {
					t.Fatalf("500 views without news have %d goroutines", n)
				}
			}
			for _, live := range views {
				live.Close()
				live.Show("too late")
			}
			ops := len(m.fake.Ops())
			timetest.Sleep(time.Minute)
			if n := len(m.fake.Ops()) - ops; n != 0 {
				t.Errorf("%d operations after Close", n)
			}
			h.stop()
		})
	}
}

func TestLiveStreamer(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.Streams)
		live := h.Live(t.Context(), reply("a", ""))
		stream(live, strings.Repeat("w ", 100), 5*time.Millisecond)
		live.Close()
		ops := m.fake.Ops(channeltest.Stream)
		if len(ops) < 10 || len(ops) > 20 {
			t.Errorf("streamed %d times in half a second", len(ops))
		}
		if !slices.IsSortedFunc(ops, func(a, b channeltest.Op) int { return len(a.Reply.Text) - len(b.Reply.Text) }) {
			t.Error("text went back")
		}
		h.stop()
	})
}

// Steps go to channels that show them, and nowhere else.
func TestLiveSteps(t *testing.T) {
	for _, powers := range []channeltest.Power{channeltest.Streams, channeltest.Streams | channeltest.Steps} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(powers)
			live := h.Live(t.Context(), reply("a", ""))
			step := chat.Step{Call: "1", Tool: "read_file", State: chat.Running}
			live.Step(step)
			live.Close()
			ops := m.fake.Ops()
			if want := int(powers / channeltest.Steps); len(ops) != want || want == 1 && (ops[0].Step.Call != step.Call || ops[0].Step.State != step.State || ops[0].Reply.ID != "a") {
				t.Errorf("%+v", ops)
			}
			h.stop()
		})
	}
}

// P14: a network that hangs blocks neither Show nor, for long, Close.
func TestP14LiveNeverBlocks(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		release := make(chan struct{})
		h := m.start(edits)
		m.on(func(op channeltest.Op) error { <-release; return nil })
		live := h.Live(t.Context(), reply("a", ""))
		live.Show("one")
		timetest.Sleep(time.Second)
		start := time.Now()
		live.Show("two")
		if time.Since(start) > 0 {
			t.Error("Show blocked")
		}
		go func() { time.Sleep(2 * time.Second); close(release) }()
		live.Close()
		if took := time.Since(start); took > 4*time.Second {
			t.Errorf("Close took %v", took)
		}
		synctest.Wait()
		h.Live(t.Context(), chat.Reply{ID: "x", To: chat.Address{Channel: "gone"}}).Close()
		h.stop()
	})
}

// P15: a thousand turns at once take two goroutines each, and leave none.
func TestP15ThousandViews(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Every = time.Second
		h := m.start(channeltest.All)
		synctest.Wait()
		before := runtime.NumGoroutine()
		var views []chat.Live
		for i := range 1000 {
			at := chat.Address{Channel: "net", Chat: strconv.Itoa(i)}
			views = append(views, h.Live(t.Context(), chat.Reply{ID: at.Chat, To: at}))
			views[i].Show("hello")
		}
		timetest.Sleep(3 * time.Second)
		if n := runtime.NumGoroutine() - before; n > 2000 {
			t.Errorf("%d goroutines", n)
		}
		for _, v := range views {
			v.Close()
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 50 {
			t.Errorf("%d goroutines are left", n)
		}
		if n := len(m.fake.Ops(channeltest.Send)); n != 1000 {
			t.Errorf("%d messages", n)
		}
		h.stop()
	})
}
