package discord_test

import (
	"fmt"
	"testing"
	"time"

	"parley/channels/discord/discordtest"
	"parley/chat"
)

// dying gives the bot a life that can end by a crash at any step. Its position
// is stored so often.
func (h *house) dying(saveInterval time.Duration) *crash {
	life, bucket := newCrash(), h.seen
	h.seen = mortalBucket{bucket, func() *crash { return life }}
	h.anew()
	h.ch.SaveEvery(saveInterval)
	h.failing(func(chat.Message) error { return life.step() })
	return life
}

// reborn is the bot after the crash.
func (h *house) reborn() {
	h.seen = h.seen.(mortalBucket).Bucket
	h.failing(nil)
	h.anew()
}

// The first message of a private chat, written while the bot was away and
// Discord forgot the session, is heard with the next one there: before it.
func TestP3FirstOfAPrivateChat(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	h.run()() // it listened once
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello?")
	h.Forget()
	h.anew()
	stop := h.run()
	stop()
	h.Say(room, "7", "Ann", "anybody?")
	h.Forget() // twice
	h.anew()
	h.run()
	h.Say(room, "7", "Ann", "are you there?")
	h.hears("hello?", "anybody?", "are you there?")
}

// Who sends a command where nothing was heard before is heard with what they
// wrote while the bot was away.
func TestP3FirstBeforeACommand(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	h.run()()
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello?")
	h.Forget()
	h.anew()
	h.run()
	h.Command(room, "7", "status", "")
	heard := map[string]bool{h.next().Text: true, h.next().Text: true}
	if !heard["hello?"] || !heard["/status"] {
		t.Errorf("heard %v", heard)
	}
}

// A crash between the delivery of a chat's first message and the note that it
// was read loses nothing of what is said until the bot is back (P3).
func TestP3CrashAfterTheFirst(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	life := h.dying(time.Hour)
	stop := h.run()
	deliver := life.step
	h.failing(func(chat.Message) error {
		err := deliver()
		life.now() // it is delivered, and the bot never knows
		return err
	})
	room := h.DM("7")
	h.Say(room, "7", "Ann", "first")
	h.hears("first")
	stop()
	h.Say(room, "7", "Ann", "second")
	h.Forget()
	h.reborn()
	h.run()
	h.hears("first", "second") // the inbox knows the first
}

// What somebody answers, while the bot is away, where the bot spoke first is heard.
func TestP3AnswerToTheBot(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	stop := h.run()
	if _, err := h.ch.Send(t.Context(), chat.Reply{ID: "r1", To: dm("7"), Text: "good morning"}); err != nil {
		t.Fatal(err)
	}
	stop()
	h.Say(h.DM("7"), "7", "Ann", "you, too")
	h.Forget()
	h.anew()
	h.run()
	h.hears("you, too")
}

// What was delivered is not delivered again when a session is resumed after a
// crash, though the stored position is older: neither messages nor commands,
// which the inbox does not know.
func TestResumeRepeatsNoCommand(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	life := h.dying(time.Hour)
	stop := h.run()
	h.stored(life)
	room := h.DM("7")
	h.Command(room, "7", "stop", "")
	h.hears("/stop")
	h.Say(room, "7", "Ann", "/stop")
	h.hears("/stop")
	h.Say(room, "7", "Ann", "and now")
	h.hears("and now")
	h.wait(func(v discordtest.View) bool { return v.Count("POST /interactions/{id}/{token}/callback") == 1 })
	life.now()
	stop()
	h.reborn()
	h.run()
	h.hearsOnly(room)
	h.resumed()
}

// Heartbeats let Discord forget only what a restart would not ask for: a message
// that the house has not taken comes again with the session.
func TestResumeAfterHeartbeats(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{Heartbeat: 200 * time.Millisecond}, nil)
	life := h.dying(5 * time.Millisecond)
	stop := h.run()
	h.stored(life)
	h.failing(func(m chat.Message) error {
		if m.From.ID == "7" {
			return errFull
		}
		return nil
	})
	h.Say(h.DM("7"), "7", "Ann", "full")
	for range 10 {
		h.Say(h.DM("8"), "8", "Bob", "not full")
		h.hears("not full")
	}
	beats := 0
	h.Look(func(v discordtest.View) { beats = v.Beats() })
	h.wait(func(v discordtest.View) bool { return v.Beats() > beats+2 })
	life.now()
	stop()
	h.reborn()
	h.run()
	h.hears("full")
	h.resumed()
}

// A session that begins after a gap is resumed by nobody before the gap has been
// read: a crash meanwhile loses nothing.
func TestCrashWhileReadingBack(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{}, nil)
	stop := h.run()
	room := h.DM("7")
	h.Say(room, "7", "Ann", "hello")
	h.hears("hello")
	stop()
	h.Say(room, "7", "Ann", "missed")
	h.Forget()
	h.Fail("GET /channels/{id}/messages", discordtest.Fault{Hang: true, Channel: room})
	life := h.dying(time.Millisecond)
	stop = h.run()
	for i := range 30 {
		h.Say(h.DM("8"), "8", "Bob", fmt.Sprint("of another chat ", i))
		h.hears(fmt.Sprint("of another chat ", i))
	}
	life.now()
	stop()
	h.reborn()
	h.run()
	h.hears("missed")
}

// A session that Discord keeps no more, because too much was said, is replaced,
// and what was said is read back.
func TestTooOldToResume(t *testing.T) {
	t.Parallel()
	h := build(t, discordtest.Config{Buffer: 5}, nil)
	stop := h.run()
	room, other := h.DM("7"), h.Channel("900")
	h.Say(room, "7", "Ann", "hello")
	h.hears("hello")
	stop()
	h.Say(room, "7", "Ann", "meanwhile")
	for range 9 {
		h.Say(other, "8", "Bob", "not to you")
	}
	h.anew()
	h.run()
	h.hears("meanwhile")
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 2 || resumed != 0 {
			t.Errorf("%d sessions begun, %d resumed", begun, resumed)
		}
	})
}

// stored waits until the session is stored.
func (h *house) stored(life *crash) {
	h.t.Helper()
	select {
	case <-life.stored:
	case <-time.After(patience):
		h.t.Fatal("the session is not stored")
	}
}

// resumed checks that only one session was begun.
func (h *house) resumed() {
	h.t.Helper()
	h.Look(func(v discordtest.View) {
		if begun, resumed := v.Sessions(); begun != 1 || resumed < 1 {
			h.t.Errorf("%d sessions begun, %d resumed", begun, resumed)
		}
	})
}
