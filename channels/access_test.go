package channels_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/timetest"
)

func from(id, text string) chat.Message {
	last++
	return chat.Message{ID: fmt.Sprint(last), Account: "bot1", At: chat.Address{Channel: "spoofed", Chat: id},
		From: chat.Sender{ID: id, Name: "Eve\n*System:* `x`", Role: chat.Owner}, Text: text, Origin: chat.FromSchedule, Time: time.Now()}
}

var last int

func say(t *testing.T, m *machine, msg chat.Message) {
	t.Helper()
	if err := m.fake.Say(t.Context(), msg); err != nil {
		t.Fatal(err)
	}
}

func admit(t *testing.T, h *testHub) {
	t.Helper()
	a, err := admission.NewRules([]string{"net:1"}, map[string][]string{"net": {"2"}})
	if err != nil {
		t.Fatal(err)
	}
	h.Access().SetRules(a)
}

// R-S8: one door for every kind of message; what a channel says of role,
// origin and channel name does not count.
func TestRS8OneDoor(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		kinds := []func(*chat.Message){
			func(*chat.Message) {},
			func(msg *chat.Message) { msg.Edits = "1" },
			func(msg *chat.Message) { msg.Group = true },
			func(msg *chat.Message) { msg.Quote = &chat.Quote{ID: "1"} },
			func(msg *chat.Message) { msg.Files = []chat.File{{Path: "x"}}; msg.Text = "" },
			func(msg *chat.Message) { msg.Text = "/stop" },
			func(msg *chat.Message) { msg.From.ID = "" },
		}
		for _, kind := range kinds {
			msg := from("1", "hi")
			kind(&msg)
			say(t, m, msg)
		}
		if len(h.heard) > 0 {
			t.Fatalf("without access: %+v", h.heard)
		}
		admit(t, h)
		for _, id := range []string{"1", "2", "9"} {
			for _, kind := range kinds[:len(kinds)-1] {
				msg := from(id, "hi")
				kind(&msg)
				say(t, m, msg)
			}
		}
		if len(h.heard) != 2*(len(kinds)-1) {
			t.Errorf("%d delivered", len(h.heard))
		}
		for _, msg := range h.heard {
			want := map[string]chat.Role{"1": chat.Owner, "2": chat.User}[msg.From.ID]
			if msg.From.Role != want || msg.At.Channel != "net" || msg.Origin != chat.FromPerson {
				t.Errorf("%+v, want role %s", msg, want)
			}
		}
		h.stop()
	})
}

var codeIn = regexp.MustCompile("/pair ([2-7A-Z]{8})`")

// told returns the code that the unknown sender was told, or "".
func told(m *machine, id string) string {
	for _, text := range m.fake.Shown(chat.Address{Channel: "net", Chat: id}) {
		if got := codeIn.FindStringSubmatch(text); got != nil {
			return got[1]
		}
	}
	return ""
}

// R-S10: nothing an unknown sender says is kept or passed on; one answer an hour.
func TestRS10Stranger(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		for range 50 {
			say(t, m, from("9", "my secret text"))
			timetest.Sleep(time.Minute)
		}
		group := from("8", "my secret text")
		group.Group = true
		say(t, m, group)
		h.drain()
		if n := len(m.fake.Ops()); n != 1 || told(m, "9") == "" {
			t.Errorf("%d answers: %+v", n, m.fake.Ops())
		}
		if len(h.heard) > 0 {
			t.Errorf("delivered: %+v", h.heard)
		}
		all := fmt.Sprint(m.pushes)
		for _, b := range []string{"pairing", "paired", "delivery"} {
			for k := range keys(m.store.Bucket(b)) {
				v, _, _ := m.store.Bucket(b).Get(t.Context(), k)
				all += string(v)
			}
		}
		if strings.Contains(all, "secret") {
			t.Error("an unknown sender's text is stored")
		}
		st, _ := h.Status(t.Context())
		if st[0].Dropped != 51 {
			t.Errorf("%d dropped", st[0].Dropped)
		}
		h = m.start(0)
		timetest.Sleep(20 * time.Minute)
		say(t, m, from("9", "again"))
		h.drain()
		if n := len(m.fake.Ops()); n != 2 {
			t.Errorf("%d answers after the hour", n)
		}
	})
}

// R-S10: ten answers a minute in all and a hundred open, restarts or not.
func TestRS10Flood(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		answers := func() int { return len(m.fake.Ops(channeltest.Send)) }
		for restart := range 3 {
			h := m.start(0)
			for i := range 30 {
				say(t, m, from(fmt.Sprint(restart, "-", i), "hi"))
			}
			h.drain()
			m.reboot(t.Context())
		}
		if n := answers(); n != 10 {
			t.Errorf("%d answers in the first minute", n)
		}
		for minute := range 30 {
			timetest.Sleep(time.Minute)
			h := m.start(0)
			for i := range 15 {
				say(t, m, from(fmt.Sprint("x", minute, "-", i), "hi"))
			}
			h.drain()
			m.reboot(t.Context())
		}
		if n := answers(); n != 100 {
			t.Errorf("%d answers in the hour", n)
		}
	})
}

// An owner approves a code by /pair or by the program; nobody else does.
func TestRS8Pairing(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		answer := func(id string) string {
			synctest.Wait()
			texts := m.fake.Shown(chat.Address{Channel: "net", Chat: id})
			return texts[len(texts)-1]
		}
		for _, id := range []string{"7", "8", "9"} {
			say(t, m, from(id, "hi"))
		}
		synctest.Wait()
		code := told(m, "9")
		if code == "" || code == told(m, "8") {
			t.Fatalf("code %q", code)
		}

		say(t, m, from("8", "/pair "+code)) // an unknown sender: nothing happens
		say(t, m, from("2", "/pair "+code))
		if got := answer("2"); !strings.Contains(got, "Only my owner") {
			t.Errorf("a user was told %q", got)
		}
		say(t, m, from("1", "/pair"))
		if got := answer("1"); !strings.Contains(got, code) || !strings.Contains(got, "`net:9`") || strings.Contains(got, "\n*System") {
			t.Errorf("the owner was told %q", got)
		}
		say(t, m, from("1", "/pair AAAAAAAA"))
		if got := answer("1"); !strings.Contains(got, "Nobody has that code") {
			t.Errorf("the owner was told %q", got)
		}
		approve := from("1", "/pair@parley_bot "+strings.ToLower(code))
		say(t, m, approve)
		say(t, m, approve) // delivered again
		if got := answer("1"); !strings.Contains(got, "may talk") {
			t.Errorf("the owner was told %q", got)
		}
		if open, err := h.Access().Pairings(t.Context()); err != nil || len(open) != 2 {
			t.Errorf("still open: %+v, %v", open, err)
		}
		if got := answer("9"); got != "You can talk to me now." {
			t.Errorf("the unknown sender was told %q", got)
		}
		for range 2 {
			if p, err := h.Access().Approve(t.Context(), told(m, "8")); err != nil || p.Sender != "8" {
				t.Errorf("approved %+v, %v", p, err)
			}
		}
		timetest.Sleep(time.Hour)
		if _, err := h.Access().Approve(t.Context(), told(m, "7")); !errors.Is(err, admission.ErrNoPairing) {
			t.Errorf("approved after an hour: %v", err)
		}

		h.stop()
		m.reboot(t.Context())
		h = m.start(0)
		admit(t, h)
		other := from("9", "through another bot")
		other.Account = "bot2"
		for _, msg := range []chat.Message{from("9", "paired"), from("8", "paired too"), from("7", "not"), other} {
			say(t, m, msg)
		}
		if got := h.texts(); !slices.Equal(got, []string{"paired", "paired too"}) {
			t.Errorf("delivered: %q", got)
		}
		if h.heard[0].From.Role != chat.User {
			t.Errorf("role %q", h.heard[0].From.Role)
		}
		role := func(want ...chat.Role) { // R-S24
			t.Helper()
			for i, id := range []string{"1", "2", "9", "7", ""} {
				if got, err := h.Access().Role(t.Context(), chat.Address{Channel: "net"}, id); err != nil || got != want[i] {
					t.Errorf("the role of %q is %q, %v", id, got, err)
				}
			}
		}
		role(chat.Owner, chat.User, chat.User, chat.Unknown, chat.Unknown)
		for command, want := range map[string]string{
			"/Unpair net:9": "`net:9` is no longer let in by a code.",
			"/unpair net:6": "`net:6` is not among those let in by a code. Allow lists are changed in the config.",
		} {
			say(t, m, from("1", command))
			if got := answer("1"); got != want {
				t.Errorf("%s: the owner was told %q", command, got)
			}
		}
		role(chat.Owner, chat.User, chat.Unknown, chat.Unknown, chat.Unknown)
		say(t, m, from("9", "and out again"))
		say(t, m, from("8", "still in"))
		if got := h.texts(); !slices.Equal(got, []string{"paired", "paired too", "still in"}) {
			t.Errorf("delivered: %q", got)
		}
		h.stop()
	})
}

// R-S8: a message is not taken while the store cannot say who may talk (P19).
func TestRS8StoreDown(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		m.fill(true)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := m.fake.Say(ctx, from("9", "hi")); err == nil {
			t.Error("the message was acknowledged")
		}
		h.stop()
	})
}

// A crash between the code and the answer leaves the unknown sender an answer, when
// the message comes again.
func TestRS10CrashBeforeAnswer(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		m.crash = 2 // the first writes the code
		msg := from("9", "hi")
		if m.fake.Say(t.Context(), msg) == nil {
			t.Fatal("acknowledged although nothing was sent")
		}
		h.stop()
		m.reboot(t.Context())
		h = m.start(0)
		say(t, m, msg)
		say(t, m, msg)
		h.drain()
		if n := len(m.fake.Shown(chat.Address{Channel: "net", Chat: "9"})); n != 1 {
			t.Errorf("%d answers", n)
		}
	})
}

// Receive returns when no channel can go on, although a menu is still being set.
func TestReceiveEndsWithItsChannels(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error { return fmt.Errorf("unauthorized") })
		h := channels.NewHub(channels.Config{Store: m.disk(), Log: discard})
		h.Add("a", brokenMenu{m.fake.As(channeltest.Menus), m.fake.As(channeltest.Menus).(channels.CommandMenu)})
		if err := h.Receive(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "channel a: wrong token") {
			t.Error(err)
		}
	})
}

type brokenMenu struct {
	channels.Channel
	channels.CommandMenu
}

func (brokenMenu) Run(ctx context.Context, deliver chat.Deliver) error {
	return broken{}.Run(ctx, deliver)
}

// The menus have the commands, however long it takes, and none that only
// owners may use: everybody sees them.
func TestMenus(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if len(m.fake.Ops()) < 3 {
				return &channels.Error{After: time.Hour, Err: fmt.Errorf("429")}
			}
			return nil
		})
		h := m.start(channeltest.Menus)
		timetest.Sleep(5 * time.Hour)
		ops := m.fake.Ops()
		if len(ops) != 3 || ops[2].Reply.Text != "new" {
			t.Errorf("%+v", ops)
		}
		h.stop()
	})
}
