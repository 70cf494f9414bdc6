package channels_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"parley/store"
)

// P19: when the disk is full the chat is told once, past the outbox. Strangers are not.
func TestP19Notice(t *testing.T) {
	const notice = "My disk is full, so your message has to wait. I take it as soon as there is space again."
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		access(t, h)
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
