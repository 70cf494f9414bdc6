package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/timetest"
)

// inBubble runs a channel that polls a fake Telegram, in a bubble of synctest.
func inBubble(t *testing.T, of telegramtest.Config, change func(*telegram.Config), f func(t *testing.T, h *harness)) {
	timetest.Test(t, func(t *testing.T) {
		h := newHarness(t, of, change)
		f(t, h)
	})
}

// P1: an update is confirmed only after Deliver returned nil.
func TestP1ConfirmsAfterDeliver(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		kept := make(chan struct{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			done <- h.ch.Run(ctx, func(context.Context, chat.Message) error { <-kept; return nil })
		}()
		h.Say(7, "hello")
		timetest.Sleep(time.Hour)
		if h.confirmed() != 0 {
			t.Error("confirmed before it was kept")
		}
		close(kept)
		synctest.Wait()
		if h.confirmed() != 1 {
			t.Error("kept and not confirmed")
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// P1, P19: a message that could not be stored is retried alone, and the chat's
// later messages wait for it. Other chats do not.
func TestP1TriesAgainWhatFailed(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		full := true
		h.fail = func(m chat.Message) error {
			if m.At.Chat == "2" && full {
				return errFull
			}
			return nil
		}
		for i := range 3 {
			h.Say(1, fmt.Sprint("a", i))
			h.Say(2, fmt.Sprint("b", i))
		}
		h.run(t)
		timetest.Sleep(10 * time.Minute)
		h.wantDelivered(t, "a0", "a1", "a2")
		if h.confirmed() != 0 {
			t.Error("confirmed an update that was not kept")
		}
		h.wantLog(t, "disk full")
		h.mu.Lock()
		full = false
		h.mu.Unlock()
		timetest.Sleep(30 * time.Second) // P19: recovers by itself
		h.wantDelivered(t, "a0", "a1", "a2", "b0", "b1", "b2")
		if h.confirmed() != 6 {
			t.Errorf("%d of 6 confirmed", h.confirmed())
		}
	})
}

// P1: order is kept within a chat, over many batches.
func TestP1KeepsOrderPerChat(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		for i := range 500 {
			h.Say(int64(i%5+1), fmt.Sprintf("%03d", i))
		}
		h.run(t)
		if got := len(h.deliveredTexts()); got != 500 {
			t.Fatalf("%d of 500 delivered", got)
		}
		last := map[string]string{}
		for _, m := range h.delivered {
			if m.Text <= last[m.At.Chat] {
				t.Fatalf("chat %s: %s after %s", m.At.Chat, m.Text, last[m.At.Chat])
			}
			last[m.At.Chat] = m.Text
		}
	})
}

// P16: Run ends at once, even while Deliver fails, and then confirms nothing.
func TestP16RunEnds(t *testing.T) {
	for _, name := range []string{"while polling", "while nothing can be kept", "while telegram is down"} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				switch name {
				case "while nothing can be kept":
					h.fail = func(chat.Message) error { return errFull }
					h.Say(7, "hello")
				case "while telegram is down":
					h.Fail("getUpdates", telegramtest.Fault{Times: -1, DropBefore: true})
				}
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error)
				go func() { done <- h.ch.Run(ctx, h.deliver) }()
				timetest.Sleep(100 * time.Second)
				began := time.Now()
				stop()
				if err := <-done; err != nil || time.Since(began) > 0 {
					t.Errorf("Run returned %v after %v", err, time.Since(began))
				}
				if h.confirmed() != 0 {
					t.Error("confirmed what was not kept")
				}
			})
		})
	}
}

// P4: an update that cannot be understood is kept verbatim and does not stop the next one.
func TestP4DeadUpdates(t *testing.T) {
	for name, fields := range map[string]string{
		"wrong types":        `"message":"hello"`,
		"wrong types inside": `"message":{"message_id":"one","chat":{"id":7}}`,
		"not JSON":           `"message":{"text":"hel`,
		"binary":             "\"message\":\x00\xff",
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.Say(7, "before")
				h.Push(fields)
				h.Say(7, "after")
				h.run(t)
				timetest.Sleep(time.Minute)
				h.wantDelivered(t, "before", "after")
				if h.confirmed() != 3 {
					t.Errorf("%d of 3 confirmed", h.confirmed())
				}
				if kept := h.deadLetters(t); len(kept) != 1 || !strings.Contains(kept[0], fields) {
					t.Errorf("kept %q", kept)
				}
				h.wantLog(t, "not understood")
			})
		})
	}
}

// P4: kinds of updates that were not requested, or that are new, are ignored.
func TestUnknownKindsArePassedOver(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		for _, fields := range []string{
			`"callback_query":{"id":"1","data":"/new"}`, `"channel_post":{"message_id":1,"chat":{"id":-1005,"type":"channel"},"text":"x"}`,
			`"my_chat_member":{"old_chat_member":{"status":"of a new kind"}}`, `"thing_of_2030":[1,2,3]`,
		} {
			h.Push(fields)
		}
		h.Say(7, "hello", telegramtest.With(map[string]any{"forward_origin": map[string]any{"type": "of 2030"}, "thing_of_2030": []int{1}}))
		h.run(t)
		h.wantDelivered(t, "[forwarded from someone]\nhello")
		if h.confirmed() != 5 {
			t.Errorf("%d of 5 confirmed", h.confirmed())
		}
		if kept := h.deadLetters(t); kept != nil {
			t.Errorf("kept as dead: %q", kept)
		}
	})
}

// P24: a poll without an answer for 90 s is abandoned and repeated.
func TestP24Watchdog(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getUpdates", telegramtest.Fault{Hang: true})
		h.run(t)
		h.Say(7, "hello")
		timetest.Sleep(89 * time.Second)
		h.wantDelivered(t)
		timetest.Sleep(time.Second)
		h.wantDelivered(t, "hello")
		h.wantLog(t, "fell silent")
	})
}

// P24: if two processes poll the same bot, the log says so, and they do not compete every second.
func TestP24AnotherPoller(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.run(t)
		synctest.Wait()
		h.Fail("getUpdates", telegramtest.Fault{Times: 2, Code: http.StatusConflict, Text: "Conflict: terminated by other getUpdates request"})
		for range 3 { // the first two meet the faults, the third ends the channel's poll
			req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, h.URL+"/bot"+h.Token()+"/getUpdates?timeout=0", nil)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := h.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		synctest.Wait()
		h.wantLog(t, "another process polls this bot")
		h.Say(7, "hello")
		timetest.Sleep(29 * time.Second)
		h.wantDelivered(t)
		timetest.Sleep(time.Second)
		h.wantDelivered(t, "hello")
	})
}

func TestPollingRemovesWebhook(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getUpdates", telegramtest.Fault{Code: http.StatusConflict, Text: "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"})
		h.Say(7, "hello")
		h.run(t)
		timetest.Sleep(2 * time.Second)
		h.wantDelivered(t, "hello")
		if h.Count("deleteWebhook") != 1 {
			t.Error("the webhook was not removed")
		}
	})
}

// P24: a wrong token ends Run with advice, and without the token (R-S26).
func TestWrongTokenIsTold(t *testing.T) {
	for code, want := range map[int]string{401: "@BotFather", 404: "apiUrl"} {
		inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
			h.Fail("getUpdates", telegramtest.Fault{Times: -1, Code: code, Text: "Unauthorized"})
			h.Fail("getMe", telegramtest.Fault{Times: -1, Code: code, Text: "Unauthorized"})
			err := h.ch.Run(t.Context(), h.deliver)
			if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "channels.telegram") {
				t.Errorf("%d: Run returned %v", code, err)
			}
			h.noToken(t, err)
		})
	}
}

func TestPollWaitsAsAsked(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getUpdates", telegramtest.Fault{Code: 429, Text: "Too Many Requests", RetryAfter: 77})
		h.Say(7, "hello")
		h.run(t)
		timetest.Sleep(76 * time.Second)
		h.wantDelivered(t)
		timetest.Sleep(time.Second)
		h.wantDelivered(t, "hello")
	})
}

// While Telegram is down it is asked after 1, 2, 4, 8, 16 s and then every 30 s.
func TestPollBacksOff(t *testing.T) {
	for name, f := range map[string]telegramtest.Fault{
		"error page":       {Code: 502, Page: "<html>Bad Gateway</html>"},
		"JSON error":       {Code: 500, Text: "Internal Server Error"},
		"lost connection":  {DropBefore: true},
		"lost answer":      {DropAfter: true},
		"page from nobody": {Page: "<html>Welcome to the hotel's network</html>"},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				f.Times = -1
				h.Fail("getUpdates", f)
				h.Say(7, "hello")
				h.run(t)
				timetest.Sleep(122 * time.Second)
				if n := h.Count("getUpdates"); n < 9 || n > 10 { // each wait is up to a quarter shorter
					t.Errorf("asked %d times in two minutes, want 9 or 10", n)
				}
				h.wantDelivered(t)
				h.Heal()
				timetest.Sleep(30 * time.Second)
				h.wantDelivered(t, "hello")
			})
		})
	}
}

// The first poll does not wait for the bot's name, and private chats never do.
func TestNameIsLearnedMeanwhile(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getMe", telegramtest.Fault{Delay: 20 * time.Second, Code: 502, Page: "<html>"})
		h.Say(-1005, "@parleybot in a group")
		h.Say(7, "in private")
		h.run(t)
		h.wantDelivered(t, "in private")
		timetest.Sleep(30 * time.Second)
		h.wantDelivered(t, "in private", "in a group")
	})
}

func TestWarnsOfPrivacyMode(t *testing.T) {
	inBubble(t, telegramtest.Config{Privacy: true}, func(c *telegram.Config) { c.Groups = "all" }, func(t *testing.T, h *harness) {
		h.Say(group, "hello")
		h.Say(group, "hello")
		h.run(t)
		h.wantDelivered(t, "hello", "hello")
		if n := strings.Count(h.logs.String(), "/setprivacy"); n != 1 {
			t.Errorf("warned %d times", n)
		}
	})
}

// noToken checks that neither errs nor the log contain the token (R-S26).
func (h *harness) noToken(t *testing.T, errs ...error) {
	t.Helper()
	_, secret, _ := strings.Cut(h.Token(), ":")
	for _, err := range errs {
		for e := err; e != nil; e = errors.Unwrap(e) {
			if strings.Contains(e.Error(), secret) {
				t.Errorf("R-S26: the token is in %v", e)
			}
		}
	}
	if strings.Contains(h.logs.String(), secret) {
		t.Errorf("R-S26: the token is in the log:\n%s", h.logs)
	}
}

// P2: an update that was stored but not confirmed, as after a crash, arrives again
// under the same key, so that the inbox drops it.
func TestP2RedeliveryHasTheSameKey(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		sent := h.Say(7, "hello")
		h.Edit(7, sent, "hello!")
		for range 2 {
			ctx, crash := context.WithCancel(t.Context())
			n := 0
			h.fail = func(chat.Message) error {
				if n++; n == 2 {
					crash()
				}
				return nil
			}
			if err := h.ch.Run(ctx, h.deliver); err != nil {
				t.Fatal(err)
			}
		}
		h.wantDelivered(t, "hello", "hello!", "hello", "hello!")
		if h.confirmed() != 0 {
			t.Fatal("confirmed: nothing came again")
		}
		for i, want := range []string{"telegram/4242/7/1", "telegram/4242/7/1e1001"} {
			if a, b := h.delivered[i].Key(), h.delivered[i+2].Key(); a != want || b != want {
				t.Errorf("keys %s and %s, want %s", a, b, want)
			}
		}
	})
}
