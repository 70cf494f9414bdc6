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

	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store"
	"parley/timetest"
)

// After a week without updates Telegram may number them from a lower number on.
func TestP1UpdatesNumberedAnew(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "before")
		h.run(t)
		h.deliveredTexts()
		h.Renumber(5)
		h.Say(7, "after")
		h.deliveredTexts()
		h.Say(7, "and on")
		h.wantDelivered(t, "before", "after", "and on")
		if h.confirmed() != 3 {
			t.Errorf("%d of 3 confirmed", h.confirmed())
		}
	})
}

// P24: no request waits for an answer for ever, so nothing stops the polls.
func TestP24NoRequestHangs(t *testing.T) {
	t.Run("deleteWebhook", func(t *testing.T) {
		inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
			h.Fail("getUpdates", telegramtest.Fault{Code: http.StatusConflict, Text: "Conflict: can't use getUpdates method while webhook is active"})
			h.Fail("deleteWebhook", telegramtest.Fault{Hang: true})
			h.Say(7, "hello")
			h.run(t)
			timetest.Sleep(time.Minute)
			h.wantDelivered(t, "hello")
		})
	})
	t.Run("setWebhook", func(t *testing.T) {
		inBubble(t, telegramtest.Config{}, withWebhook, func(t *testing.T, h *harness) {
			h.Fail("setWebhook", telegramtest.Fault{Hang: true})
			h.run(t)
			timetest.Sleep(time.Minute)
			h.Look(func(v telegramtest.View) {
				if v.Webhook() == "" {
					t.Error("the webhook is not set")
				}
			})
		})
	})
}

// The bot's name is requested until it is known, even after an odd answer.
func TestNameIsLearnedAfterRefusal(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getMe", telegramtest.Fault{Code: 401, Text: "Unauthorized"})
		h.Say(group, "@parleybot hello")
		h.run(t)
		timetest.Sleep(2 * time.Second)
		h.wantDelivered(t, "hello")
	})
}

// P10: while Telegram wants a pause in a chat, Send says how long and does not wait.
func TestP10HoldIsTold(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		h.Fail("sendMessage", telegramtest.Fault{Code: 429, Text: "Too Many Requests", RetryAfter: 3600})
		h.Say(8, "hello")
		_, _ = h.ch.Send(t.Context(), to("7", "x"))
		timetest.Sleep(time.Minute)
		began := time.Now()
		if _, err := h.ch.Send(t.Context(), to("8", "x")); err != nil {
			t.Errorf("another chat: %v", err)
		}
		_, errSend := h.ch.Send(t.Context(), to("7", "x"))
		errEdit := h.ch.Edit(t.Context(), "7/2", to("7", "x"))
		for _, err := range []error{errSend, errEdit} {
			if e, ok := errors.AsType[*channels.Error](err); !ok || e.Permanent || e.After != 59*time.Minute {
				t.Errorf("the error is %#v", err)
			}
		}
		if time.Since(began) > 0 || h.Count("sendMessage") != 2 {
			t.Errorf("asked %d times, waited %v", h.Count("sendMessage"), time.Since(began))
		}
		timetest.Sleep(time.Hour)
		if _, err := h.ch.Send(t.Context(), to("7", "x")); err != nil {
			t.Error(err)
		}
	})
}

// P5: messages from before a group became a supergroup come before later ones.
func TestP5OrderOverMigration(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		fails := 3
		h.fail = func(m chat.Message) error {
			if m.Text == "/first" && fails > 0 {
				fails--
				return errFull
			}
			return nil
		}
		h.Say(-5, "/first")
		h.Migrate(-5, group, false)
		h.Say(group, "/second")
		h.run(t)
		timetest.Sleep(time.Minute)
		h.wantDelivered(t, "/first", "/second")
	})
}

// P21: a damaged record of a group's move affects neither that group nor others.
func TestP21DamagedAlias(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) {
		c.Alias = damagedBucket{c.Alias}
		_, err := c.Alias.Put(t.Context(), "to/-5", []byte("odd"), store.Any)
		if err != nil {
			t.Fatal(err)
		}
	}, func(t *testing.T, h *harness) {
		h.run(t)
		h.Say(group, "/one")
		h.Say(7, "two")
		h.Say(-5, "three")
		if _, err := h.ch.Send(t.Context(), to("-5", "x")); err != nil {
			t.Error(err)
		}
		h.deliveredTexts()
		if len(h.delivered) != 2 {
			t.Errorf("delivered %v", h.delivered)
		}
		h.wantLog(t, "damaged")
	})
}

// A damagedBucket has a damaged record of group.
type damagedBucket struct{ store.Bucket }

func (d damagedBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	if key == fmt.Sprint("from/", group) {
		return nil, 0, store.ErrDamaged
	}
	return d.Bucket.Get(ctx, key)
}

// P2: two edits within one second are two messages.
func TestP2EditsInOneSecond(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		id := h.Say(7, "a")
		h.Edit(7, id, "b")
		h.Edit(7, id, "c")
		h.run(t)
		h.wantDelivered(t, "a", "b", "c")
		if h.delivered[1].Key() == h.delivered[2].Key() {
			t.Errorf("both have the key %s", h.delivered[1].Key())
		}
	})
}

// An unexpected answer becomes a short error.
func TestErrorsAreShort(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		long := strings.Repeat("page ", 100_000)
		h.Fail("sendMessage", telegramtest.Fault{Page: long})
		h.Fail("sendMessage", telegramtest.Fault{Page: `{"` + long})
		h.Fail("sendMessage", telegramtest.Fault{Code: 500, Text: long})
		for range 3 {
			if _, err := h.ch.Send(t.Context(), to("7", "x")); err == nil || len(err.Error()) > 1000 {
				t.Errorf("%.1000v", err)
			}
		}
	})
}

// P4: updates that cannot be understood are all kept, but not for ever.
func TestP4DeadIsBounded(t *testing.T) {
	inBubble(t, telegramtest.Config{}, withWebhook, func(t *testing.T, h *harness) {
		h.run(t)
		synctest.Wait()
		for i := range 1100 {
			if code := h.postUpdate(t, fmt.Sprintf(`{"message":%d}`, i)); code != http.StatusOK {
				t.Fatal(code)
			}
		}
		if kept := h.deadLetters(t); len(kept) != 1000 || kept[999] != `{"message":1099}` {
			t.Errorf("%d are kept", len(kept))
		}
	})
}

// P4: a message over which Parley panics becomes a dead letter; later ones are delivered.
func TestP4DeliverPanics(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.fail = func(m chat.Message) error {
			if m.Text == "burst" {
				panic("oh")
			}
			return nil
		}
		h.Say(7, "burst")
		h.Say(7, "after")
		h.run(t)
		timetest.Sleep(time.Minute)
		h.wantDelivered(t, "after")
		if kept := h.deadLetters(t); h.confirmed() != 2 || len(kept) != 1 || !strings.Contains(kept[0], "burst") {
			t.Errorf("%d of 2 confirmed, kept %q", h.confirmed(), kept)
		}
	})
}
