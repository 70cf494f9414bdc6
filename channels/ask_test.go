package channels_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/channeltest"
	"parley/chat"
	"parley/timetest"
)

// buttons are the powers of a channel with buttons.
const buttons = channeltest.All

// shall is a question for the user 2, asked in the room.
func shall() chat.Reply {
	r := reply("ask:1", "Shall I?")
	r.Group = true
	r.Ask = &chat.Question{ID: "q1", Choices: []string{"Yes", "No, *never*"}, Whom: "2"}
	return r
}

// An asking is an Ask under way.
type asking struct {
	channels.Choice
	err  error
	done chan struct{}
}

func ask(t *testing.T, h *testHub, r chat.Reply) *asking {
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	return askUntil(ctx, h, r)
}

func askUntil(ctx context.Context, h *testHub, r chat.Reply) *asking {
	a := &asking{done: make(chan struct{})}
	go func() {
		a.Choice, a.err = h.Questions().Ask(ctx, r)
		close(a.done)
	}()
	synctest.Wait()
	return a
}

// answered says whether Ask has returned.
func (a *asking) answered() bool {
	synctest.Wait()
	select {
	case <-a.done:
		return true
	default:
		return false
	}
}

// by is a message of that person in the room.
func by(id, text string) chat.Message {
	m := from(id, text)
	m.At, m.From.Name = chat.Address{Chat: room.Chat}, "An*na"
	return m
}

func press(id, question string, choice int) chat.Message {
	m := by(id, "")
	m.Answer = &chat.Answer{Question: question, Choice: choice, Receipt: "m1"}
	return m
}

// R-S8: who may press what; a press counts once and never reaches the agent.
func TestRS8Press(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		var audit []string
		m.cfg.Audit = func(kind, who, what string) { audit = append(audit, kind+" "+who+" "+what) }
		h := m.start(buttons)
		admit(t, h)
		a := ask(t, h, shall())
		m.shows("Shall I?")
		elsewhere := press("2", "q1", 0)
		elsewhere.At.Chat = "2"
		for name, msg := range map[string]chat.Message{
			"an unknown sender": press("9", "q1", 0),
			"nobody":            press("", "q1", 0),
			"below":             press("2", "q1", -1),
			"above":             press("2", "q1", 2),
			"an unknown one":    press("2", "q2", 0),
			"another chat":      elsewhere,
			"words in its chat": by("2", "Yes"),
			"a number":          by("2", "1"),
		} {
			say(t, m, msg)
			if a.answered() {
				t.Fatalf("%s answered: %+v", name, a)
			}
		}
		if n := len(m.fake.Ops()); n != 1 {
			t.Errorf("presses that do not count cost %d operations", n-1)
		}
		yes := press("2", "q1", 1)
		say(t, m, yes)
		if !a.answered() || a.err != nil || a.Index != 1 || a.Text != "No, *never*" || a.By.ID != "2" || a.By.Role != chat.User {
			t.Errorf("answered: %+v", a)
		}
		m.shows("Shall I?\n\n✓ **No, never** — Anna")
		say(t, m, yes) // again
		say(t, m, press("1", "q1", 0))
		synctest.Wait()
		m.shows("Shall I?\n\n✓ **No, never** — Anna")
		if again := ask(t, h, shall()); !again.answered() || again.Index != 1 || again.err != nil {
			t.Errorf("asked again: %+v", again)
		}
		if got := fmt.Sprint(h.texts()); len(h.heard) != 2 || !strings.Contains(got, "Yes") || !strings.Contains(got, "1") {
			t.Errorf("delivered: %s", got)
		}
		if got := strings.Join(audit, "\n"); got != "approval net:2 question q1: No, never" {
			t.Errorf("audit: %s", got)
		}
		h.stop()
	})
}

// An ID of one network is not the same person on another (R-S7).
func TestRS7PressFromAnotherChannel(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		r := shall()
		r.To.Channel = "elsewhere" // parked, and so withdrawn
		if a := ask(t, h, r); !a.answered() || !errors.Is(a.err, channels.ErrWithdrawn) {
			t.Errorf("a question that cannot be sent: %+v", a)
		}
		h.stop()
	})
}

func TestAskOwnerMayAnswer(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		a := ask(t, h, shall())
		say(t, m, press("1", "q1", 0))
		if !a.answered() || a.Index != 0 || a.By.ID != "1" {
			t.Errorf("%+v", a)
		}
		h.stop()
	})
}

// Two people press at once, one of them twice: one answer, for all who wait.
func TestAskOneAnswer(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		a, b := ask(t, h, shall()), ask(t, h, shall())
		for _, msg := range []chat.Message{press("2", "q1", 0), press("1", "q1", 1), press("2", "q1", 0), press("1", "q1", 1)} {
			go func() { _ = m.fake.Say(t.Context(), msg) }()
		}
		if !a.answered() || !b.answered() || !reflect.DeepEqual(a.Choice, b.Choice) {
			t.Errorf("%+v and %+v", a, b)
		}
		if n := len(m.fake.Ops(channeltest.Send)); n != 1 {
			t.Errorf("asked %d times", n)
		}
		want := map[string]string{"1": "No, never", "2": "Yes"}[a.By.ID]
		m.shows("Shall I?\n\n✓ **" + want + "** — Anna")
		h.stop()
	})
}

// Where choices begin with letters of their own, the letter is an answer.
func TestAskLettered(t *testing.T) {
	for letter, index := range map[string]int{"y": 0, "N": 1, "a": 2, "f": 3, "2": 1} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(0)
			admit(t, h)
			r := shall()
			r.Ask.Choices = []string{"Yes", "No", "Always here", "For an hour"}
			a := ask(t, h, r)
			m.shows("Shall I?\n\n1. Yes\n2. No\n3. Always here\n4. For an hour\n\nAnswer y, n, a or f.")
			say(t, m, by("2", letter))
			if !a.answered() || a.Index != index {
				t.Errorf("%s: %+v", letter, a)
			}
			h.stop()
		})
	}
}

// Where there are no buttons, or not enough, the answer is a number or the
// choice's words, and is not delivered, not even when it comes again.
func TestAskNumbered(t *testing.T) {
	for _, powers := range []channeltest.Power{0, buttons} {
		in(t, func(t *testing.T, m *machine) {
			m.fake.Choices = 1
			h := m.start(powers)
			admit(t, h)
			a := ask(t, h, shall())
			m.shows("Shall I?\n\n1. Yes\n2. No, *never*\n\nAnswer y or n.")
			other, edit := by("2", "2"), by("2", "2")
			other.At.Chat, edit.Edits = "2", "17"
			for _, msg := range []chat.Message{by("9", "1"), other, edit, by("2", "0"), by("2", "3"), by("2", "perhaps"), by("2", "/new")} {
				say(t, m, msg)
			}
			if a.answered() {
				t.Errorf("%+v", a)
			}
			two := by("2", " 2. ")
			say(t, m, two)
			if !a.answered() || a.Index != 1 || a.By.ID != "2" {
				t.Errorf("%+v", a)
			}
			say(t, m, two)
			say(t, m, by("2", "2"))
			if got := fmt.Sprintf("%q", h.texts()); got != `["2" "2" "0" "3" "perhaps" "/new" "2"]` {
				t.Errorf("delivered: %s", got)
			}

			r := shall()
			r.ID, r.Ask.ID = "ask:2", "q2"
			b := ask(t, h, r)
			say(t, m, by("1", "yes"))
			if !b.answered() || b.Index != 0 || b.By.ID != "1" {
				t.Errorf("%+v", b)
			}
			h.stop()
		})
	}
}

// In a private chat the words of a choice are the answer beside buttons, too, from
// those who may answer; nothing else is.
func TestRS8TypedBesideButtons(t *testing.T) {
	for _, c := range []struct {
		who, text string
		group     bool
		index     int // -1: no answer
	}{
		{"2", "yes", false, 0},
		{"2", " Yes! ", false, 0},
		{"1", "YES.", false, 0},
		{"2", "no, *NEVER*", false, 1},
		{"2", "yes", true, -1},
		{"9", "yes", false, -1}, // an unknown sender
		{"2", "y", false, -1},
		{"2", "1", false, -1},
		{"2", "!", false, -1},
		{"2", "yes, but not today", false, -1},
		{"2", "yes?", false, -1},
	} {
		t.Run(fmt.Sprint(c.who, c.text, c.group), func(t *testing.T) {
			in(t, func(t *testing.T, m *machine) {
				h := m.start(buttons)
				admit(t, h)
				r := shall()
				r.Group = c.group
				a := ask(t, h, r)
				say(t, m, by(c.who, c.text))
				if a.answered() != (c.index >= 0) || a.answered() && (a.Index != c.index || a.By.ID != c.who || len(h.heard) > 0) {
					t.Errorf("answered %v with %+v, delivered %q", a.answered(), a.Choice, h.texts())
				}
				if a.answered() {
					m.shows("Shall I?\n\n✓ **" + []string{"Yes", "No, never"}[c.index] + "** — Anna")
				}
				h.stop()
			})
		})
	}
}

// Words of their own are an answer where the question says so, beside buttons too.
func TestAskFree(t *testing.T) {
	for _, c := range []struct {
		powers channeltest.Power
		who    string
		text   string
		index  int // -2: no answer
	}{
		{0, "2", "blue, I think", -1},
		{0, "2", "2", 1},
		{0, "1", "blue, I think", -2}, // the owner talks about something else
		{0, "1", "2", 1},
		{0, "2", "/stop", -2},
		{buttons, "2", "blue", -1},
		{buttons, "2", "YES", 0},
		{buttons, "2", "2", -1}, // nobody spoke of numbers
		{buttons, "1", "yes", -2},
	} {
		t.Run(fmt.Sprint(c.powers, c.who, c.text), func(t *testing.T) {
			in(t, func(t *testing.T, m *machine) {
				h := m.start(c.powers)
				admit(t, h)
				r := shall()
				r.Ask.Free = true
				a := ask(t, h, r)
				say(t, m, by(c.who, c.text))
				answered := a.answered()
				if answered != (c.index != -2) || answered && a.Index != c.index || answered == (len(h.heard) > 0) {
					t.Errorf("answered %v with %+v, delivered %q", answered, a.Choice, h.texts())
				}
				if c.index == -1 && a.Text != c.text {
					t.Errorf("words: %q", a.Text)
				}
				if c.powers == buttons && answered {
					m.shows("Shall I?\n\n✓ **" + strings.ReplaceAll(a.Text, "*", "") + "** — Anna")
				}
				h.stop()
			})
		})
	}
}

// A question that was asked before a restart loses its buttons when it is answered in words after it, and the
// message says so as it would have before. One whose message could not be changed in time is changed when it is asked again.
func TestButtonsGoAfterRestart(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		r := shall()
		r.Group, r.Ask.Free = false, true
		ask(t, h, r)
		m.shows("Shall I?")
		h.stop()
		h = m.start(buttons)
		admit(t, h)
		a := ask(t, h, r)
		say(t, m, by("2", "tomorrow"))
		if !a.answered() || a.Text != "tomorrow" {
			t.Errorf("answered: %+v", a)
		}
		m.shows("Shall I?\n\n✓ **tomorrow** — Anna")

		r.ID, r.Ask.ID = "ask:2", "q2"
		b := ask(t, h, r)
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.Edit {
				return errors.New("out of reach")
			}
			return nil
		})
		say(t, m, by("2", "Yes"))
		if !b.answered() {
			t.Error("not answered")
		}
		h.stop()
		m.on(nil)
		h = m.start(buttons)
		admit(t, h)
		if b = ask(t, h, r); !b.answered() || b.Index != 0 {
			t.Errorf("answered before the restart: %+v", b)
		}
		m.shows("Shall I?\n\n✓ **tomorrow** — Anna", "Shall I?\n\n✓ **Yes** — Anna")
		ops := m.fake.Ops()
		if o := ops[len(ops)-1].Reply.Outcome; o == nil || o.Choice != 0 || o.Answer != "Yes" || o.By != "Anna" || o.Time.IsZero() {
			t.Errorf("the outcome is %+v", o)
		}
		h.stop()
	})
}

// A withdrawn question answers with an error, loses its buttons and takes no words.
func TestAskWithdraw(t *testing.T) {
	for _, powers := range []channeltest.Power{0, buttons} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(powers)
			admit(t, h)
			a := ask(t, h, shall())
			for range 2 {
				if err := h.Questions().Withdraw(t.Context(), "q1"); err != nil {
					t.Error(err)
				}
			}
			if err := h.Questions().Withdraw(t.Context(), "unknown"); err != nil {
				t.Error(err)
			}
			if !a.answered() || !errors.Is(a.err, channels.ErrWithdrawn) {
				t.Errorf("%+v", a)
			}
			if powers == buttons {
				if ok, _ := m.fake.Press(t.Context(), room, "p", "q1", 0, chat.Sender{ID: "2"}); ok {
					t.Error("the buttons are still there")
				}
				say(t, m, press("2", "q1", 0)) // on its way before
				synctest.Wait()
				m.shows("Shall I?\n\n✗ *no longer asked*")
			}
			say(t, m, by("2", "1"))
			if len(h.heard) != 1 {
				t.Errorf("delivered: %q", h.texts())
			}
			h.stop()
		})
	}
}

// A question that is withdrawn while it is on its way loses its buttons, too.
func TestAskWithdrawOnTheWay(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.Send {
				time.Sleep(time.Second)
			}
			return nil
		})
		h := m.start(buttons)
		admit(t, h)
		ask(t, h, shall())
		if err := h.Questions().Withdraw(t.Context(), "q1"); err != nil {
			t.Error(err)
		}
		timetest.Sleep(time.Minute)
		if ok, _ := m.fake.Press(t.Context(), room, "p", "q1", 0, chat.Sender{ID: "2"}); ok || len(m.fake.Ops(channeltest.Send)) != 1 {
			t.Errorf("the buttons are still there: %v", ok)
		}
		h.stop()
	})
}

// The question stays open when Ask ends, and takes its answer in another life,
// before it is asked again.
func TestP9AskAcrossLives(t *testing.T) {
	for _, powers := range []channeltest.Power{0, buttons} {
		in(t, func(t *testing.T, m *machine) {
			h := m.start(powers)
			admit(t, h)
			ctx, cancel := context.WithCancel(t.Context())
			a := askUntil(ctx, h, shall())
			cancel()
			if !a.answered() || !errors.Is(a.err, context.Canceled) {
				t.Errorf("%+v", a)
			}
			h.stop()
			m.reboot(t.Context())
			h = m.start(powers)
			admit(t, h)
			if powers == buttons {
				say(t, m, press("2", "q1", 1))
			} else {
				say(t, m, by("2", "2"))
			}
			if b := ask(t, h, shall()); !b.answered() || b.err != nil || b.Index != 1 {
				t.Errorf("%+v", b)
			}
			if n := len(m.fake.Ops(channeltest.Send)); n != 1 || len(h.heard) > 0 {
				t.Errorf("asked %d times, delivered %q", n, h.texts())
			}
			h.stop()
		})
	}
}

// P1, P9: whatever operation the process dies at, the question is asked twice
// at most and answered once, by a message that the agent never sees.
func TestP9AskCrashAnywhere(t *testing.T) {
	for _, powers := range []channeltest.Power{0, buttons} {
		for _, late := range []bool{false, true} {
			for crash := 1; ; crash++ {
				died := false
				in(t, func(t *testing.T, m *machine) {
					m.crash, m.late = crash, late
					msg := by("2", "2")
					if powers == buttons {
						msg = press("2", "q1", 1)
					}
					a, heard, ok := live(t, m, powers, msg)
					if died = !ok; died {
						m.reboot(t.Context())
						a, heard, ok = live(t, m, powers, msg)
					}
					if !ok || a.err != nil || a.Index != 1 || len(heard) > 0 {
						t.Errorf("ok %v, answer %+v, delivered %q", ok, a, heard)
					}
					if n := len(m.fake.Shown(room)); n < 1 || n > 2 || n > 1 && !died {
						t.Errorf("the chat shows %q", m.fake.Shown(room))
					}
				})
				if t.Failed() {
					t.Fatalf("powers %b, crash at operation %d, late %v", powers, crash, late)
				}
				if !died {
					break
				}
			}
		}
	}
}

// live is one life: the question is asked, and its answer comes until it is
// taken. It is not ok if the process died.
func live(t *testing.T, m *machine, powers channeltest.Power, answer chat.Message) (*asking, []string, bool) {
	h := m.start(powers)
	defer h.stop()
	admit(t, h)
	a := ask(t, h, shall())
	for len(m.fake.Shown(room)) == 0 && !dead(m) {
		timetest.Sleep(time.Second)
	}
	for !dead(m) && m.fake.Say(t.Context(), answer) != nil {
		timetest.Sleep(time.Second)
	}
	if !dead(m) && !a.answered() {
		t.Error("the answer was taken and Ask still waits")
	}
	timetest.Sleep(time.Second)
	return a, h.texts(), !dead(m)
}

func dead(m *machine) bool {
	synctest.Wait()
	select {
	case <-m.crashed:
		return true
	default:
		return false
	}
}

// What was answered is forgotten after 48 h, what is open after a month, and
// what is damaged at once; nothing else suffers.
func TestAskForgets(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		_, _ = m.store.Bucket("questions").Put(t.Context(), "bad", []byte("{"), 0)
		_, _ = m.store.Bucket("questions").Put(t.Context(), "empty", []byte("{}"), 0)
		h := m.start(buttons)
		admit(t, h)
		next := func(id string) *asking {
			r := shall()
			r.ID, r.Ask.ID = "ask:"+id, id
			return ask(t, h, r)
		}
		next("answered")
		next("open")
		timetest.Sleep(47 * time.Hour)
		say(t, m, press("2", "answered", 0))
		timetest.Sleep(47 * time.Hour)
		next("a")
		left := func() map[string]bool { return keys(m.store.Bucket("questions")) }
		if !left()["answered"] || !left()["open"] {
			t.Errorf("left: %v", left())
		}
		timetest.Sleep(2 * time.Hour)
		next("b")
		if left()["answered"] || !left()["open"] {
			t.Errorf("left: %v", left())
		}
		timetest.Sleep(30 * 24 * time.Hour)
		next("c")
		if left()["open"] || !left()["c"] {
			t.Errorf("left: %v", left())
		}
		for _, bad := range []*chat.Question{nil, {ID: "", Choices: []string{"a"}}, {ID: "a:b", Choices: []string{"a"}}, {ID: "x"}} {
			r := reply("x", "x")
			r.Ask = bad
			if _, err := h.Questions().Ask(t.Context(), r); err == nil {
				t.Errorf("asked %+v", bad)
			}
		}
		h.stop()
	})
}

// The buttons stand under the last words of a long question, and its end keeps
// the words that are there.
func TestAskLong(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.fake.Limit = 13
		h := m.start(buttons)
		admit(t, h)
		r := shall()
		r.Text = "first words, last words"
		ask(t, h, r)
		say(t, m, func() chat.Message { p := press("2", "q1", 0); p.Answer.Receipt = "m2"; return p }())
		synctest.Wait()
		m.shows("first words,", "last words")
		ops := m.fake.Ops()
		if ops[0].Reply.Ask != nil || ops[1].Reply.Ask == nil || len(ops) != 3 || ops[2].Kind != channeltest.Edit || ops[2].Reply.Ask != nil {
			t.Errorf("%+v", ops)
		}
		h.stop()
	})
}

// P14: buttons that the network is slow to take away hold up no answer.
func TestP14PressNeverWaits(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		m.on(func(op channeltest.Op) error {
			if op.Kind == channeltest.Edit {
				time.Sleep(10 * time.Second)
			}
			return nil
		})
		h := m.start(buttons)
		admit(t, h)
		start := time.Now()
		for i := range 150 {
			r := shall()
			r.ID, r.Ask.ID = fmt.Sprint("ask:", i), fmt.Sprint("q", i)
			a := ask(t, h, r)
			say(t, m, press("2", r.Ask.ID, 0))
			if !a.answered() {
				t.Fatal("no answer")
			}
		}
		if took := time.Since(start); took > 0 {
			t.Errorf("150 answers took %v", took)
		}
		timetest.Sleep(time.Hour)
		if n := len(m.fake.Ops(channeltest.Edit)); n < 100 || n > 102 {
			t.Errorf("%d edits, want the first hundred", n)
		}
		h.stop()
	})
}

// P19: with a full disk no answer is taken that could be lost.
func TestP19Press(t *testing.T) {
	in(t, func(t *testing.T, m *machine) {
		h := m.start(buttons)
		admit(t, h)
		a := ask(t, h, shall())
		m.fill(true)
		if m.fake.Say(t.Context(), press("2", "q1", 0)) == nil || a.answered() {
			t.Error("the press was acknowledged")
		}
		m.fill(false)
		say(t, m, press("2", "q1", 0))
		if !a.answered() {
			t.Error("no answer")
		}
		h.stop()
	})
}
