package telegram_test

import (
	"errors"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/timetest"
)

func newQuestion(chatID string, choices ...string) chat.Reply {
	r := to(chatID, "Shall I?")
	r.Ask = &chat.Question{ID: "abc123", Choices: choices}
	return r
}

// A question has buttons, a press is a message with the answer, and the edit that
// follows removes the buttons.
func TestQuestion(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(group, "/ask", telegramtest.As(8, "Ada"), telegramtest.InTopic(3))
		r := newQuestion("-1005", "Yes", "No")
		r.To.Thread = "3"
		rc, err := h.ch.Send(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		m := h.last(group)
		if len(m.Buttons) != 1 || len(m.Buttons[0]) != 2 || m.Buttons[0][1].Text != "No" || h.ch.MaxChoices() != 10 {
			t.Errorf("buttons: %+v", m.Buttons)
		}
		h.run(t)
		press := h.Press(group, m.ID, 1, telegramtest.As(8, "Ada"))
		h.deliveredTexts()
		got := h.delivered[len(h.delivered)-1]
		if got.ID != "cb"+press || got.Answer == nil || !reflect.DeepEqual(*got.Answer, chat.Answer{Question: "abc123", Choice: 1, Receipt: string(rc)}) {
			t.Errorf("delivered %+v, %+v", got, got.Answer)
		}
		if got.From.ID != "8" || got.At != r.To || !got.Group || got.Account != "4242" || got.Time.IsZero() || got.Text != "" {
			t.Errorf("delivered %+v", got)
		}
		h.Look(func(v telegramtest.View) {
			if !v.Released(press) {
				t.Error("the button still looks pressed")
			}
		})
		if err := h.ch.Edit(t.Context(), rc, r); err != nil || len(h.last(group).Buttons) != 1 {
			t.Errorf("%v, buttons: %+v", err, h.last(group).Buttons)
		}
		if err := h.ch.Edit(t.Context(), rc, to("-1005", "Shall I?")); err != nil || len(h.last(group).Buttons) != 0 {
			t.Errorf("%v, buttons: %+v", err, h.last(group).Buttons)
		}
		if err := h.ch.React(t.Context(), got.At, got.ID, channels.Seen); err != nil {
			t.Errorf("a press is marked: %v", err)
		}
	})
}

// Labels are short enough for a phone; short buttons share a row.
func TestButtons(t *testing.T) {
	for _, tt := range []struct {
		choices []string
		rows    string // the labels, rows divided by |
	}{
		{[]string{"Yes", "No"}, "Yes,No"},
		{[]string{"Delete all of it", "Keep all of it"}, "Delete all of it|Keep all of it"},
		{[]string{strings.Repeat("😀", 100)}, strings.Repeat("😀", 59) + "…"},
		{[]string{" \n", "a\nb"}, "1,a b"},
		{strings.Fields("1 2 3 4 5"), "1,2,3,4,5"},
		{strings.Fields("a b c d e f g h i j"), "a|b|c|d|e|f|g|h|i|j"},
		{strings.Fields("a b c d e f g h i j k"), ""}, // the Hub has numbered them
		{nil, ""},
	} {
		inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
			h.Say(7, "hello")
			if _, err := h.ch.Send(t.Context(), newQuestion("7", tt.choices...)); err != nil {
				t.Fatal(err)
			}
			var rows []string
			for _, row := range h.last(7).Buttons {
				var labels []string
				for _, b := range row {
					labels = append(labels, b.Text)
				}
				rows = append(rows, strings.Join(labels, ","))
			}
			if got := strings.Join(rows, "|"); got != tt.rows {
				t.Errorf("%q: %q, want %q", tt.choices, got, tt.rows)
			}
		})
	}
}

// P2, R-S8: a forged press counts as its sender's, if it is a press at all, and is
// acknowledged in any case.
func TestRS8Presses(t *testing.T) {
	for _, tt := range []struct {
		data      string
		delivered bool
	}{
		{"q:abc123:0", true}, {"q:other:99", true}, // the Hub knows which there are
		{"", false}, {"q:abc123:", false}, {"q::0", false}, {"q:abc123:-1", false}, {"q:abc123:100", false}, {"x:abc123:0", false},
		{"q:abc/123:0", false}, {"q:" + strings.Repeat("a", 33) + ":0", false}, {"q:abc123:0\n", false}, {"q:abc123:0 ", false}, {"q:abc123:٣", false},
	} {
		t.Run(tt.data, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				id := h.Say(7, "/hello")
				h.run(t)
				h.deliveredTexts()
				press := h.PressData(7, id+50, tt.data, telegramtest.As(9, "Eve")) // of a message that is gone
				h.deliveredTexts()
				if got := len(h.delivered) == 2; got != tt.delivered || got && h.delivered[1].From.ID != "9" {
					t.Errorf("delivered %+v", h.delivered)
				}
				h.Look(func(v telegramtest.View) {
					if !v.Released(press) {
						t.Error("the button still looks pressed")
					}
				})
				if len(h.deadLetters(t)) > 0 || h.confirmed() != 2 {
					t.Error("the press is dead, or not confirmed")
				}
			})
		})
	}
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		for _, odd := range []string{
			`"callback_query":{"id":"1","from":{"id":7},"data":"q:a:0"}`, // of an inline message
			`"callback_query":{"id":"","from":{"id":7},"data":"q:a:0","message":{"message_id":1,"chat":{"id":7}}}`,
			`"callback_query":{"id":"2","from":{"id":8,"is_bot":true},"data":"q:a:0","message":{"message_id":1,"chat":{"id":7}}}`,
			`"callback_query":{"id":"3","data":"q:a:0","message":{"message_id":1,"chat":{"id":7}}}`,
		} {
			h.Push(odd)
		}
		h.run(t)
		h.wantDelivered(t)
		if h.confirmed() != 4 {
			t.Errorf("%d of 4 confirmed", h.confirmed())
		}
	})
}

// P1: a button looks pressed until the press is stored. Telegram's answer to the
// acknowledgement does not matter.
func TestP1PressIsKeptFirst(t *testing.T) {
	for _, f := range []telegramtest.Fault{{}, {Hang: true}, {DropAfter: true}, {Code: http.StatusBadRequest, Text: "Bad Request: query is too old"}} {
		inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
			h.Say(7, "/hello")
			h.fail = func(m chat.Message) error {
				if m.Answer != nil {
					return errFull
				}
				return nil
			}
			h.Fail("answerCallbackQuery", f)
			press := h.PressData(7, 1, "q:a:0")
			h.run(t)
			timetest.Sleep(5 * time.Second)
			if h.Count("answerCallbackQuery") > 0 || h.confirmed() > 0 {
				t.Error("released or confirmed before it was kept")
			}
			h.mu.Lock()
			h.fail = nil
			h.mu.Unlock()
			timetest.Sleep(20 * time.Second)
			h.Look(func(v telegramtest.View) {
				if !v.Released(press) && f == (telegramtest.Fault{}) {
					t.Error("not released")
				}
			})
			h.Say(7, "/on")
			timetest.Sleep(10 * time.Second)
			if len(h.deliveredTexts()) != 3 || h.confirmed() != 3 {
				t.Errorf("delivered %+v, %d confirmed", h.delivered, h.confirmed())
			}
		})
	}
}

// Marks are the bot's reactions; Done leaves none.
func TestReactions(t *testing.T) {
	for _, on := range []bool{true, false} {
		inBubble(t, telegramtest.Config{}, withReactions(on), func(t *testing.T, h *harness) {
			h.Say(7, "hello")
			at := chat.Address{Chat: "7"}
			for _, m := range []channels.Mark{channels.Seen, channels.Working, channels.Done} {
				for _, id := range []string{"1", "1e99"} {
					if err := h.ch.React(t.Context(), at, id, m); err != nil {
						t.Fatal(err)
					}
				}
			}
			want := []string{"👀", "👀", "✍", "✍", "", ""}
			if !on {
				want = nil
			}
			if got := h.last(7).Reactions; !slices.Equal(got, want) {
				t.Errorf("marks: %q", got)
			}
		})
	}
	inBubble(t, telegramtest.Config{}, withReactions(true), func(t *testing.T, h *harness) {
		h.Say(group, "hello")
		h.NoReactions(group)
		for _, at := range []chat.Address{{Chat: "-1005"}, {Chat: "9"}, {Chat: "odd"}} {
			if err := h.ch.React(t.Context(), at, "1", channels.Seen); !permanent(err) {
				t.Errorf("%+v: %v", at, err)
			}
		}
		if err := h.ch.React(t.Context(), chat.Address{Chat: "-1005"}, "77", channels.Seen); !permanent(err) {
			t.Error("a message that is gone:", err)
		}
	})
}

func TestDirect(t *testing.T) {
	h := newHarness(t, telegramtest.Config{}, nil)
	if got := h.ch.Direct("42"); got != (chat.Address{Channel: "telegram", Chat: "42"}) {
		t.Errorf("Direct: %+v", got)
	}
	for _, nobody := range []string{"", "-1005", "0", "me"} {
		if got := h.ch.Direct(nobody); got.Chat != "" {
			t.Errorf("Direct(%q): %+v", nobody, got)
		}
	}
}

// P19, P24: Health says why nothing is received, for as long as that is so.
func TestP24Health(t *testing.T) {
	for _, tt := range []struct {
		name, want string
		after      time.Duration
		provoke    func(*harness)
	}{
		{"another process polls", "another process polls this bot", 10 * time.Second, func(h *harness) {
			h.Fail("getUpdates", telegramtest.Fault{Code: http.StatusConflict, Text: "Conflict: terminated by other getUpdates request"})
		}},
		{"telegram is down", "connection reset", 10 * time.Second, func(h *harness) { h.Fail("getUpdates", telegramtest.Fault{Times: 5, DropBefore: true}) }},
		{"telegram is silent", "fell silent", 95 * time.Second, func(h *harness) { h.Fail("getUpdates", telegramtest.Fault{Times: 2, Hang: true}) }},
		{"the disk is full", "disk full", 95 * time.Second, func(h *harness) {
			began := time.Now()
			h.fail = func(chat.Message) error {
				if time.Since(began) < 3*time.Minute {
					return errFull
				}
				return nil
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				if err := h.ch.Health(); err != nil {
					t.Errorf("before it runs: %v", err)
				}
				tt.provoke(h)
				h.Say(7, "hello")
				h.run(t)
				timetest.Sleep(tt.after)
				if err := h.ch.Health(); err == nil || !strings.Contains(err.Error(), tt.want) {
					t.Errorf("in trouble: %v", err)
				}
				timetest.Sleep(5 * time.Minute)
				if err := h.ch.Health(); err != nil {
					t.Errorf("afterwards: %v", err)
				}
			})
		})
	}
	t.Run("a webhook", func(t *testing.T) {
		inBubble(t, telegramtest.Config{}, withWebhook, func(t *testing.T, h *harness) {
			h.run(t)
			synctest.Wait()
			h.fail = func(chat.Message) error { return errFull }
			const update = `{"update_id":1,"message":{"message_id":2,"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"hello"}}`
			h.postUpdate(t, update)
			if err := h.ch.Health(); !errors.Is(err, errFull) {
				t.Errorf("in trouble: %v", err)
			}
			h.fail = nil
			h.postUpdate(t, update)
			if err := h.ch.Health(); err != nil {
				t.Errorf("afterwards: %v", err)
			}
		})
	})
}
