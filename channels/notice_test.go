package channels_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"parley/channels/channeltest"
	"parley/chat"
	"parley/store"
)

// P19: when the disk is full the chat is told once, past the outbox. Strangers are not.
func TestP19Notice(t *testing.T) {
	const notice = "My disk is full, so your message has to wait. I will take it as soon as there is space again."
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		pair := func(want error) {
			t.Helper()
			if err := m.fake.Say(t.Context(), from("1", "/pair")); !errors.Is(err, want) {
				t.Errorf("said: %v, want %v", err, want)
			}
			synctest.Wait()
		}
		m.fill(true)
		pair(store.ErrFull)
		pair(store.ErrFull)
		_ = m.fake.Say(t.Context(), from("9", "who are you?"))
		m.shows(notice)
		m.fill(false)
		pair(nil)
		m.shows(notice, "Nobody is asking to be let in.")
		m.fill(true)
		pair(store.ErrFull)
		m.shows(notice, "Nobody is asking to be let in.", notice)
		if n := len(m.fake.Ops()); n != 3 {
			t.Errorf("%d messages, want 3", n)
		}
		h.stop()
	})
}

// P19: what has been taken by the time that the chat could be told is not told of.
func TestP19LateNotice(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		other, slow := from("1", "/pair"), make(chan struct{})
		other.At.Chat = "elsewhere"
		m.on(func(op channeltest.Op) error {
			if op.Reply.To.Chat == other.At.Chat {
				<-slow
			}
			return nil
		})
		m.fill(true)
		for _, msg := range []chat.Message{other, from("1", "/pair")} {
			if err := m.fake.Say(t.Context(), msg); !errors.Is(err, store.ErrFull) {
				t.Errorf("said: %v", err)
			}
		}
		synctest.Wait()
		m.fill(false)
		if err := m.fake.Say(t.Context(), from("1", "/pair")); err != nil {
			t.Error(err)
		}
		close(slow)
		synctest.Wait()
		m.shows("Nobody is asking to be let in.")
		h.stop()
	})
}
