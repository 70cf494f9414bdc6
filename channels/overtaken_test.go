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
	"parley/timetest"
)

// answer is the reply of a turn that says others on its way.
func answer() chat.Reply {
	r := reply("re", "the answer in three parts")
	r.Steps = "🔧 a tool"
	return r
}

// turn is a turn that shows something, says others meanwhile, and answers.
func turn(t *testing.T, h *testHub, others ...chat.Reply) bool {
	live := h.Live(t.Context(), reply("re", ""))
	defer live.Close()
	live.Show("some of it, partial")
	timetest.Sleep(5 * time.Second)
	for _, r := range others {
		if h.Send(t.Context(), r) != nil {
			return false
		}
	}
	timetest.Sleep(5 * time.Second)
	live.Show("some of it, partial still")
	timetest.Sleep(5 * time.Second)
	live.Close()
	return h.Send(t.Context(), answer()) == nil
}

const whole = "> 🔧 a tool\n\nthe answer in three parts"

// The answer stands below what was said since its live view began, as a new
// message, and nothing is left of the view.
func TestLiveOvertaken(t *testing.T) {
	elsewhere := reply("other", "hello")
	elsewhere.To.Chat = "2"
	for name, c := range map[string]struct {
		others []chat.Reply
		want   []string
		sends  int
	}{
		"by a question":         {[]chat.Reply{reply("ask", "Shall I?")}, []string{"Shall I?", whole}, 3},
		"by two messages":       {[]chat.Reply{reply("m1", "one"), reply("m2", "two")}, []string{"one", "two", whole}, 4},
		"by none":               {nil, []string{whole}, 1},
		"by one somewhere else": {[]chat.Reply{elsewhere}, []string{whole}, 2},
	} {
		for _, recognizes := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", recognized ", recognizes), func(t *testing.T) {
				in(t, func(t *testing.T, m *machine) {
					m.fake.Recognizes = recognizes
					h := m.start(channeltest.All)
					if !turn(t, h, c.others...) {
						t.Error("not sent")
					}
					h.drain()
					m.shows(c.want...)
					if n := len(m.fake.Ops(channeltest.Send)); n != c.sends {
						t.Errorf("%d messages sent, want %d", n, c.sends)
					}
					m.clean()
				})
			})
		}
	}
}

// A message that was pushed before the live view showed anything, and is sent after that, comes below it, too.
func TestLiveOvertakenUnseen(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.slow = 3 * time.Second
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("re", ""))
		send(t, h, reply("m", "meanwhile"))
		live.Show("some of it")
		timetest.Sleep(2 * time.Second)
		m.shows("some of it")
		timetest.Sleep(2 * time.Second)
		m.shows("some of it", "meanwhile")
		live.Close()
		send(t, h, answer())
		h.drain()
		m.shows("meanwhile", whole)
		m.clean()
	})
}

// P1: a network that recognizes messages by their IDs is not asked for one that it still has, or once had,
// when the answer is sent anew: that would be changed and then deleted, and the answer lost.
func TestAnswerSentAnew(t *testing.T) {
	seen := map[string]bool{}
	in(t, func(t *testing.T, m *machine) {
		m.fake.Recognizes = true
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("re", ""))
		live.Show("some of it, partial")
		timetest.Sleep(5 * time.Second)
		m.fake.Forget(room, 0) // somebody deletes it
		live.Close()
		send(t, h, answer())
		h.drain()
		m.shows(whole)
		for _, op := range m.fake.Ops(channeltest.Send) {
			if seen[op.Reply.ID] {
				t.Errorf("%s was sent twice", op.Reply.ID)
			}
			seen[op.Reply.ID] = true
		}
		m.clean()
	})
}

// A message that the network does not give back keeps the steps alone.
func TestLiveOvertakenCannotBeDeleted(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.Delete {
				return &channels.Error{Permanent: true, Err: errors.New("too old")}
			}
			return nil
		})
		h := m.start(channeltest.All)
		turn(t, h, reply("ask", "Shall I?"))
		h.drain()
		m.shows("> 🔧 a tool\n\n⬇", "Shall I?", whole)
		m.clean()
	})
}

// What is on its way to the chat when the view ends has overtaken it, too, and
// a restart before the answer forgets nothing.
func TestP9OvertakenAcrossLives(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		live := h.Live(t.Context(), reply("re", ""))
		live.Show("some of it")
		timetest.Sleep(5 * time.Second)
		send(t, h, reply("ask", "Shall I?"))
		live.Close()
		synctest.Wait()
		h.stop()
		m.reboot(t.Context())
		h = m.start(channeltest.All)
		live = h.Live(t.Context(), reply("re", "")) // the turn goes on
		live.Show("some more of it")
		timetest.Sleep(5 * time.Second)
		m.shows("some more of it", "Shall I?")
		live.Close()
		send(t, h, answer())
		h.drain()
		m.shows("Shall I?", whole)
		m.clean()
	})
}

// P1, P9: whatever operation the process dies at, the answer is there, one
// message at most is there twice or left of the view, and nobody is asked twice.
// Where the network can tell what was sent, there is none, not even if the
// process dies a second time.
func TestP9OvertakenCrashAnywhere(t *testing.T) {
	for _, late := range []bool{false, true} {
		for crash, died := 1, true; died; crash++ {
			in(t, func(t *testing.T, m *machine) {
				died = overtakenAndDead(m, channeltest.Splits|channeltest.Edits, 1, late, crash) == 1
				if t.Failed() || !died && crash < 15 {
					t.Fatalf("crash at operation %d, late %v", crash, late)
				}
			})
			in(t, func(t *testing.T, m *machine) {
				m.fake.Recognizes = true
				if overtakenAndDead(m, channeltest.Splits|channeltest.Edits, 0, late, crash); t.Failed() {
					t.Fatalf("crash at operation %d, late %v, where messages are recognized", crash, late)
				}
			})
			for second, twice := 1, !t.Failed(); twice; second++ {
				in(t, func(t *testing.T, m *machine) {
					twice = overtakenAndDead(m, channeltest.Splits|channeltest.Edits|channeltest.Traces, 0, late, crash, second) == 2
					if t.Failed() {
						t.Fatalf("crashes at operations %d and then %d, late %v", crash, second, late)
					}
				})
				twice = twice && !t.Failed()
			}
			if t.Failed() {
				return
			}
		}
	}
}

// overtakenAndDead has a turn that asks something above its answer, during
// which the process dies at those operations of its lives, and says how often it
// did. The chat then shows so many more messages than it should at most.
func overtakenAndDead(m *machine, powers channeltest.Power, most int, late bool, crashes ...int) (deaths int) {
	parts := []string{"> 🔧 a", "tool\n\nthe", "answer in", "three parts"}
	m.fake.Limit, m.fake.Every = 13, time.Second
	for {
		if deaths < len(crashes) {
			m.crash, m.late = m.ops+crashes[deaths], late
		}
		h := m.start(powers)
		if m.pushed("re") || turn(m.t, h, reply("ask", "Shall I?")) {
			if !dead(m) {
				h.drain()
			}
		}
		h.stop()
		if !dead(m) {
			break
		}
		deaths++
		late = !late
		m.reboot(m.t.Context())
	}
	got := m.fake.Shown(room)
	want := append([]string{"Shall I?"}, parts...)
	if extra := len(got) - len(want); deaths == 0 && !slices.Equal(got, want) || extra < 0 || extra > most {
		m.t.Errorf("the chat shows %q", got)
	}
	i := 0
	for _, text := range got {
		if i < len(parts) && text == parts[i] {
			i++
		}
	}
	if i < len(parts) || !slices.Contains(got, "Shall I?") {
		m.t.Errorf("lost or out of order: %q", got)
	}
	if deaths == 0 {
		m.clean()
	}
	return deaths
}
