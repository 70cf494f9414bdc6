package channels_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/store"
	"parley/timetest"
)

// marked lists the marks that were made, as "message mark".
func (m *machine) marked() (all []string) {
	synctest.Wait()
	for _, op := range m.fake.Ops(channeltest.React) {
		all = append(all, op.Message+" "+string(op.Mark))
	}
	return all
}

// to is the answer to msg.
func to(msg chat.Message) chat.Reply {
	msg.At.Channel, msg.Origin = "net", chat.FromPerson // as the Hub hands it over
	r := msg.Reply()
	r.Text = "answer"
	return r
}

func TestMarks(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		admit(t, h)
		msg, joined := by("2", "hi"), by("2", "and this")
		say(t, m, msg)
		timetest.Sleep(2 * time.Second)
		live := h.Live(t.Context(), to(msg))
		say(t, m, joined)
		timetest.Sleep(2 * time.Second)
		live.Close()
		r := to(msg)
		r.Also = []string{joined.ID}
		send(t, h, r)
		timetest.Sleep(time.Second)
		got := m.marked()
		slices.SortStableFunc(got, func(a, b string) int { return int(a[0]) - int(b[0]) })
		for _, want := range []string{msg.ID + " seen", msg.ID + " working", joined.ID + " seen", msg.ID + " done", joined.ID + " done"} {
			if i := slices.Index(got, want); i < 0 {
				t.Errorf("no %q in %q", want, got)
			}
		}
		if len(got) != 5 || m.fake.Mark(msg.ID) != channels.Done {
			t.Errorf("%q", got)
		}
		h.stop()
	})
}

// An answer quicker than a second, a command, a press, a message that was not
// taken, an unknown sender's: no marks.
func TestMarksOnlyWhereTheyHelp(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		admit(t, h)
		quick := by("2", "hi")
		say(t, m, quick)
		live := h.Live(t.Context(), to(quick))
		timetest.Sleep(500 * time.Millisecond)
		live.Close()
		send(t, h, to(quick))
		say(t, m, by("1", "/pair"))
		say(t, m, by("9", "let me in"))
		say(t, m, press("2", "q", 0))
		h.Live(t.Context(), chat.Reply{ID: "x", To: room, Quote: "of the clock"}).Close()
		m.refuse = store.ErrClosed
		if m.fake.Say(t.Context(), by("2", "not now")) == nil {
			t.Error("acknowledged")
		}
		timetest.Sleep(time.Minute)
		if got := m.marked(); len(got) > 0 {
			t.Errorf("%q", got)
		}
		h.stop()
	})
}

// A message that cannot be marked is left alone, and a network that is slow
// delays nothing else.
func TestMarksAreAskedLess(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			switch {
			case op.Kind != channeltest.React:
				return nil
			case op.Reply.To == room:
				return &channels.Error{Permanent: true, Err: errors.New("no reactions here")}
			}
			time.Sleep(time.Hour)
			return errors.New("timeout")
		})
		h := m.start(channeltest.All)
		admit(t, h)
		msg := by("2", "hi")
		say(t, m, msg)
		timetest.Sleep(2 * time.Second)
		h.Live(t.Context(), to(msg)).Close()
		timetest.Sleep(2 * time.Second)
		if got := m.marked(); len(got) != 1 {
			t.Errorf("marked %q, want one try", got)
		}
		say(t, m, from("2", "elsewhere"))
		timetest.Sleep(2 * time.Second)
		send(t, h, reply("a", "not delayed"))
		synctest.Wait()
		m.shows("not delayed")
		start := time.Now()
		h.stop()
		if took := time.Since(start); took > time.Hour { // the fake cannot be interrupted
			t.Errorf("stopped after %v", took)
		}
	})
}

// While the network takes its time over one mark, others are answered: those
// need none any more.
func TestMarksThatAreNotNeeded(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.React {
				time.Sleep(5 * time.Second)
			}
			return nil
		})
		h := m.start(channeltest.All)
		admit(t, h)
		var all []chat.Message
		for i := range 20 {
			msg := by("2", "hi")
			msg.ID = fmt.Sprint("x", i)
			say(t, m, msg)
			all = append(all, msg)
		}
		timetest.Sleep(3 * time.Second)
		for _, msg := range all {
			send(t, h, to(msg))
		}
		timetest.Sleep(time.Hour)
		if got := m.marked(); fmt.Sprint(got) != "[x0 seen x0 done]" {
			t.Errorf("%q", got)
		}
		h.stop()
	})
}

// P15: what is never answered takes no memory for ever.
func TestP15MarksAreBounded(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		admit(t, h)
		for i := range 3000 {
			msg := by("2", "hi")
			msg.ID = fmt.Sprint("x", i)
			say(t, m, msg)
			timetest.Sleep(time.Millisecond)
		}
		timetest.Sleep(time.Hour)
		if n := len(m.marked()); n < 1000 || n > 1100 {
			t.Errorf("%d marks, want the first 1000", n)
		}
		last := by("2", "after the flood")
		say(t, m, last)
		timetest.Sleep(2 * time.Second)
		if m.fake.Mark(last.ID) != channels.Seen {
			t.Error("no room any more")
		}
		h.stop()
	})
}
