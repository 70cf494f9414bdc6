package discord_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/chat"
)

// startCrashable prepares a bot that can crash at any step, and that stores its
// position at that interval.
func (h *harness) startCrashable(saveInterval time.Duration) *crash {
	life, bucket := newCrash(), h.seen
	h.seen = crashBucket{bucket, func() *crash { return life }}
	h.restart()
	h.ch.SaveEvery(saveInterval)
	h.setDeliverError(func(chat.Message) error { return life.step() })
	return life
}

// restartAfterCrash starts the bot after the crash.
func (h *harness) restartAfterCrash() {
	h.seen = h.seen.(crashBucket).Bucket
	h.setDeliverError(nil)
	h.restart()
}

// The first message of a private chat, written while the bot was away and Discord
// forgot the session, is received before the next one there.
func TestP3FirstOfAPrivateChat(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()() // it listened once
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello?")
	h.Forget()
	h.restart()
	stop := h.run()
	stop()
	h.Say(room, "7", "Ann", "anybody?")
	h.Forget() // twice
	h.restart()
	h.run()
	h.Say(room, "7", "Ann", "are you there?")
	h.wantReceived("hello?", "anybody?", "are you there?")
}

// A command in a chat that was never read also brings the messages from while the
// bot was away.
func TestP3FirstBeforeACommand(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	h.run()()
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello?")
	h.Forget()
	h.restart()
	h.run()
	h.Command(room, "7", "status", "")
	heard := map[string]bool{h.next().Text: true, h.next().Text: true}
	if !heard["hello?"] || !heard["/status"] {
		t.Errorf("delivered %v", heard)
	}
}

// A crash between the delivery of a chat's first message and the note that it was
// read loses no message from until the bot is back (P3).
func TestP3CrashAfterTheFirst(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	life := h.startCrashable(time.Hour)
	stop := h.run()
	deliver := life.step
	h.setDeliverError(func(chat.Message) error {
		err := deliver()
		life.now() // it is delivered, and the bot never knows
		return err
	})
	room := h.DM("7")
	h.Say(room, "7", "Ann", "first")
	h.wantReceived("first")
	stop()
	h.Say(room, "7", "Ann", "second")
	h.Forget()
	h.restartAfterCrash()
	h.run()
	h.wantReceived("first", "second") // the inbox knows the first
}

// An answer in a chat that the bot began is received, even if the bot was away.
func TestP3AnswerToTheBot(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	stop := h.run()
	if _, err := h.ch.Send(t.Context(), chat.Reply{ID: "r1", To: dm("7"), Text: "good morning"}); err != nil {
		t.Fatal(err)
	}
	stop()
	h.Say(h.DM("7"), "7", "Ann", "you, too")
	h.Forget()
	h.restart()
	h.run()
	h.wantReceived("you, too")
}

// Nothing is delivered again when a session is resumed after a crash, although the
// stored position is older: neither messages nor commands, which the inbox does
// not know.
func TestResumeRepeatsNoCommand(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	life := h.startCrashable(time.Hour)
	stop := h.run()
	h.waitStored(life)
	room := h.DM("7")
	h.Command(room, "7", "stop", "")
	h.wantReceived("/stop")
	h.Say(room, "7", "Ann", "/stop")
	h.wantReceived("/stop")
	h.Say(room, "7", "Ann", "and now")
	h.wantReceived("and now")
	h.wait(func(v discordtest.View) bool { return v.Count("POST /interactions/{id}/{token}/callback") == 1 })
	life.now()
	stop()
	h.restartAfterCrash()
	h.run()
	h.wantOnlyReceived(room)
	h.wantOneSession()
}

// Heartbeats let Discord forget only events that a restart would not need: a
// message that was not delivered arrives again with the session.
func TestResumeAfterHeartbeats(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Heartbeat: 200 * time.Millisecond}, nil)
	life := h.startCrashable(5 * time.Millisecond)
	stop := h.run()
	h.waitStored(life)
	h.setDeliverError(func(m chat.Message) error {
		if m.From.ID == "7" {
			return errFull
		}
		return nil
	})
	h.Say(h.DM("7"), "7", "Ann", "full")
	for range 10 {
		h.Say(h.DM("8"), "8", "Bob", "not full")
		h.wantReceived("not full")
	}
	beats := 0
	h.Look(func(v discordtest.View) { beats = v.Beats() })
	h.wait(func(v discordtest.View) bool { return v.Beats() > beats+2 })
	life.now()
	stop()
	h.restartAfterCrash()
	h.run()
	h.wantReceived("full")
	h.wantOneSession()
}

// A session that begins after a gap is not stored before the gap has been read: a
// crash meanwhile loses nothing.
func TestCrashWhileReadingBack(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{}, nil)
	stop := h.run()
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello")
	h.wantReceived("hello")
	stop()
	h.Say(room, "7", "Ann", "missed")
	h.Forget()
	h.Fail("GET /channels/{id}/messages", discordtest.Fault{Hang: true, Channel: room})
	life := h.startCrashable(time.Millisecond)
	stop = h.run()
	for i := range 30 {
		h.Say(h.DM("8"), "8", "Bob", fmt.Sprint("of another chat ", i))
		h.wantReceived(fmt.Sprint("of another chat ", i))
	}
	life.now()
	stop()
	h.restartAfterCrash()
	h.run()
	h.wantReceived("missed")
}

// A session that Discord dropped because of too many events is replaced, and the
// messages are read back.
func TestTooOldToResume(t *testing.T) {
	t.Parallel()
	h := newHarness(t, discordtest.Config{Buffer: 5}, nil)
	stop := h.run()
	room, other := h.DM("7"), h.Channel("900")
	h.Say(room, "7", "Ann", "hello")
	h.wantReceived("hello")
	stop()
	h.Say(room, "7", "Ann", "meanwhile")
	for range 9 {
		h.Say(other, "8", "Bob", "not to you")
	}
	h.restart()
	h.run()
	h.wantReceived("meanwhile")
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 2 || resumed != 0 {
			t.Errorf("%d sessions begun, %d resumed", begun, resumed)
		}
	})
}

// waitStored waits until the session is stored.
func (h *harness) waitStored(life *crash) {
	h.t.Helper()
	select {
	case <-life.stored:
	case <-time.After(testTimeout):
		h.t.Fatal("the session is not stored")
	}
}

// wantOneSession checks that only one session was begun.
func (h *harness) wantOneSession() {
	h.t.Helper()
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 1 || resumed < 1 {
			h.t.Errorf("%d sessions begun, %d resumed", begun, resumed)
		}
	})
}
