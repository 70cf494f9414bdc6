package channels_test

import (
	"fmt"
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

// offer is a message with buttons that nobody waits for, to the user 2.
func offer() chat.Reply {
	r := reply("offer", "Tea or coffee?")
	r.Ask = &chat.Question{ID: "o1", Choices: []string{"Tea", "Coffee"}, Whom: "2", Say: true, Free: true}
	return r
}

// D-087: a button of a message says its choice as whoever pressed it, once.
func TestD087ButtonsSay(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		var audit []string
		m.cfg.Audit = func(kind, who, what string) { audit = append(audit, kind) }
		h := m.start(buttons)
		admit(t, h)
		send(t, h, offer())
		timetest.Sleep(time.Second)
		for name, msg := range map[string]chat.Message{
			"an unknown sender": press("9", "o1", 0), "nobody": press("", "o1", 0), "above": press("2", "o1", 2), "another": press("2", "o2", 0),
		} {
			if say(t, m, msg); len(h.texts()) > 0 {
				t.Fatalf("%s pressed: %+v", name, h.heard)
			}
		}
		say(t, m, by("2", "1")) // is heard as it is
		yes := press("2", "o1", 1)
		for _, msg := range []chat.Message{yes, yes, press("1", "o1", 0)} {
			say(t, m, msg)
		}
		synctest.Wait()
		m.shows("Tea or coffee?\n\n✓ **Coffee** — Anna")
		if got := h.texts(); !slices.Equal(got, []string{"1", "Coffee"}) {
			t.Fatalf("heard %q", got)
		}
		said := h.heard[1]
		if said.ID != "press:o1" || said.At != room || said.From.ID != "2" || said.From.Role != chat.User || said.Answer != nil || said.Quote.Text != "Tea or coffee?" {
			t.Errorf("heard %+v", said)
		}
		if len(audit) > 0 {
			t.Errorf("audit: %v", audit)
		}
		h.stop()
	})
}

// Without buttons the choices are numbered, and what is typed is heard as it is.
func TestSayNumbered(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(0)
		admit(t, h)
		send(t, h, offer())
		timetest.Sleep(time.Second)
		m.shows("Tea or coffee?\n\n1. Tea\n2. Coffee\n\nAnswer with a number or in your own words.")
		for _, text := range []string{"1", "t", "Tea"} {
			say(t, m, by("2", text))
		}
		if got := h.texts(); !slices.Equal(got, []string{"1", "t", "Tea"}) {
			t.Errorf("heard %q", got)
		}
		if n := len(keys(m.store.Bucket("questions"))); n > 0 {
			t.Errorf("%d questions are open", n)
		}
		h.stop()
	})
}

// A press that the agent does not accept does not count; the first choice stands.
func TestSayIsTakenOrComesAgain(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		send(t, h, offer())
		timetest.Sleep(time.Second)
		h.mu.Lock()
		m.refuse = channels.ErrWithdrawn
		h.mu.Unlock()
		if m.fake.Say(t.Context(), press("2", "o1", 1)) == nil {
			t.Error("the press was acknowledged")
		}
		h.mu.Lock()
		m.refuse = nil
		h.mu.Unlock()
		say(t, m, press("1", "o1", 0))
		synctest.Wait()
		if m.shows("Tea or coffee?\n\n✓ **Coffee** — Anna"); len(h.heard) != 1 || h.heard[0].From.ID != "2" {
			t.Errorf("heard %+v", h.heard)
		}
		for _, bad := range []*chat.Question{{ID: "a:b", Choices: []string{"x"}, Say: true}, {ID: "x", Say: true}} {
			r := offer()
			if r.ID, r.Ask = "bad", bad; h.Send(t.Context(), r) == nil {
				t.Errorf("sent %+v", bad)
			}
		}
		h.stop()
	})
}

// P1, P6, P9: whatever operation the process dies at, the choice is heard, as one message.
func TestP9SayCrashAnywhere(t *testing.T) {
	for _, late := range []bool{false, true} {
		for crash := 1; ; crash++ {
			died := false
			in(t, func(t *testing.T, m *machine) {
				m.crash, m.late = crash, late
				heard := map[string]string{}
				ok := offering(t, m, heard)
				if died = !ok; died {
					m.reboot(t.Context())
					ok = offering(t, m, heard)
				}
				if want := fmt.Sprint(map[string]string{"press:o1": "Coffee"}); !ok || fmt.Sprint(heard) != want {
					t.Errorf("ok %v, heard %v", ok, heard)
				}
				shown := m.fake.Shown(room)
				if n := len(shown); n < 1 || n > 2 || n > 1 && !died || !slices.ContainsFunc(shown, func(s string) bool { return strings.HasSuffix(s, "Anna") }) {
					t.Errorf("the chat shows %q", shown)
				}
			})
			if t.Failed() {
				t.Fatalf("crash at operation %d, late %v", crash, late)
			}
			if !died {
				if crash < 6 {
					t.Fatalf("only %d operations", crash-1)
				}
				break
			}
		}
	}
}

// offering is one life, in which the offer is made and its button pressed until
// that is taken. It is not ok if the process died. heard has what was heard, by ID.
func offering(t *testing.T, m *machine, heard map[string]string) bool {
	h := m.start(buttons)
	defer h.stop()
	admit(t, h)
	for !dead(m) && h.Send(t.Context(), offer()) != nil {
		timetest.Sleep(time.Second)
	}
	for len(m.fake.Shown(room)) == 0 && !dead(m) {
		timetest.Sleep(time.Second)
	}
	for !dead(m) && m.fake.Say(t.Context(), press("2", "o1", 1)) != nil {
		timetest.Sleep(time.Second)
	}
	timetest.Sleep(time.Second)
	for _, said := range h.heard {
		if old := heard[said.ID]; old != "" && old != said.Text {
			t.Errorf("heard %q and %q", old, said.Text)
		}
		heard[said.ID] = said.Text
	}
	return !dead(m)
}

// C-051: where choices are numbered, a letter that only one begins with is an answer.
func TestC051InitialAnswers(t *testing.T) {
	for _, c := range []struct {
		powers  channeltest.Power
		choices string
		text    string
		index   int // -1: no answer
	}{
		{0, "Yes|No", "y", 0},
		{0, "Yes|No", " N ", 1},
		{0, "Yes|No", "x", -1},
		{0, "Yes|No", "ye", -1},
		{0, "Yes|Yes, always|No", "y", -1},
		{0, "Yes|Yes, always|No", "n", 2},
		{0, "✅ Ja|❌ Nein", "j", 0},
		{0, "Été|Hiver", "é", 0},
		{0, "42|7", "7", 1}, // the words of a choice
		{0, "1|!", "!", 1},
		{0, "2|1", "1", 0}, // its number comes first
		{buttons, "Yes|No", "y", -1},
	} {
		t.Run(fmt.Sprint(c.powers, c.choices, c.text), func(t *testing.T) {
			in(t, func(t *testing.T, m *machine) {
				h := m.start(c.powers)
				admit(t, h)
				r := shall()
				r.Ask.Choices = strings.Split(c.choices, "|")
				a := ask(t, h, r)
				say(t, m, by("2", c.text))
				if got := a.answered(); got != (c.index >= 0) || got && a.Index != c.index {
					t.Errorf("answered %v: %+v", got, a.Choice)
				}
				h.stop()
			})
		})
	}
}

// An approval is asked at the first owner's who can be spoken to first.
func TestOffice(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(channeltest.All)
		if at, ok := h.OwnerChat(); ok {
			t.Errorf("an office without owners: %v", at)
		}
		a, err := admission.NewRules([]string{"elsewhere:1", "net:7", "net:8"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		h.Access().SetRules(a)
		if at, ok := h.OwnerChat(); !ok || at != (chat.Address{Channel: "net", Chat: "7"}) {
			t.Errorf("the office is %v, %v", at, ok)
		}
		h.stop()
	})
}
