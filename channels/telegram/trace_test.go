package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/admission"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// hub runs a Hub with h's channel until the test ends. Everybody is allowed.
func (h *harness) hub(t *testing.T, s store.Store) *channels.Hub {
	t.Helper()
	access, err := admission.NewRules(nil, map[string][]string{"telegram": {"*"}})
	if err != nil {
		t.Fatal(err)
	}
	hub := channels.NewHub(channels.Config{Store: s, Log: slog.New(slog.NewTextHandler(h.logs, nil))})
	hub.Access().SetRules(access)
	hub.Add("telegram", h.ch)
	ctx, stop := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { _ = hub.Receive(ctx, h.deliver) })
	ended.Go(func() { _ = hub.Work(ctx) })
	t.Cleanup(func() {
		stop()
		ended.Wait()
	})
	synctest.Wait()
	return hub
}

// sendAndShow sends a reply and returns, after an hour, what the bot has sent to the chat.
func (h *harness) sendAndShow(t *testing.T, hub *channels.Hub, r chat.Reply, chatID int64) []string {
	t.Helper()
	if err := hub.Send(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	timetest.Sleep(time.Hour)
	return h.shown(chatID)
}

func answer(chatID int64, text string) chat.Reply {
	r := to(fmt.Sprint(chatID), text)
	r.ID = "re:" + text
	return r
}

// A message that Telegram has accepted is delivered, whatever else its answer contains.
func TestAcceptedIsDelivered(t *testing.T) {
	const message = `{"message_id":{id},"date":1,"chat":{"id":7,"type":"private"}`
	for name, body := range map[string]string{
		"a field of another type": `{"ok":true,"result":` + message + `,"reply_to_message":{"message_id":"none","from":[]}}}`,
		"text that is none":       `{"ok":true,"result":` + message + `,"text":["a","b"]}}`,
		"no message":              `{"ok":true,"result":true}`,
		"nothing":                 `{"ok":true}`,
		"cut off":                 `{"ok":true,"result":` + message,
		"no json":                 `{"ok":true,"result":<html>`,
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.Say(7, "hello")
				hub := h.hub(t, mem.New())
				h.Fail("sendMessage", telegramtest.Fault{Times: -1, Answer: body})
				if got := h.sendAndShow(t, hub, answer(7, "same"), 7); !slices.Equal(got, []string{"same"}) {
					t.Errorf("the chat shows %q", got)
				}
				if rc, err := h.ch.Send(t.Context(), to("7", "more")); err != nil || (rc == "7/3") != strings.Contains(body, "{id}") {
					t.Errorf("receipt %q, %v", rc, err)
				}
			})
		})
	}
}

// So is an album that was accepted, and an edit.
func TestAcceptedAlbumIsDelivered(t *testing.T) {
	files := map[string][]byte{"a.txt": []byte("a"), "b.txt": []byte("b")}
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open = openFrom(t, files) }, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		odd := telegramtest.Fault{Answer: `{"ok":true,"result":[{"message_id":{id},"document":7},{"message_id":3,"chat":"x"}]}`}
		h.Fail("sendMediaGroup", odd)
		h.Fail("editMessageText", odd)
		rc, err := h.ch.Send(t.Context(), chat.Reply{To: to("7", "").To, Files: []chat.File{{Path: "a.txt"}, {Path: "b.txt"}}})
		if err != nil || rc != "7/2" {
			t.Errorf("receipt %q, %v", rc, err)
		}
		if rc, err = h.ch.Send(t.Context(), to("7", "text")); err == nil {
			err = h.ch.Edit(t.Context(), rc, to("7", "another text"))
		}
		if err != nil {
			t.Error(err)
		}
	})
}

// P9: when the connection breaks, the message is looked for before it is sent again.
func TestP9LostAnswer(t *testing.T) {
	files := map[string][]byte{"a.txt": []byte("a"), "b.txt": []byte("b")}
	album := chat.Reply{Files: []chat.File{{Path: "a.txt"}, {Path: "b.txt"}}}
	question := chat.Reply{Text: "which?", Ask: &chat.Question{ID: "q1", Choices: []string{"this", "that"}, Say: true}}
	for _, tt := range []struct {
		name  string
		fault telegramtest.Fault
		sends int // requests
	}{
		{"after", telegramtest.Fault{DropAfter: true}, 1},
		{"before", telegramtest.Fault{DropBefore: true}, 2},
		{"no answer", telegramtest.Fault{Hang: true}, 2},
		{"page of a proxy", telegramtest.Fault{Code: 502, Page: "<html>Bad Gateway</html>"}, 2},
		{"refused for now", telegramtest.Fault{Code: 429, Text: "Too Many Requests", RetryAfter: 3}, 2},
	} {
		for method, r := range map[string]chat.Reply{"sendMessage": {Text: "once"}, "sendMediaGroup": album, "sendMessage, a question": question} {
			for _, at := range []int64{7, group} {
				t.Run(fmt.Sprint(tt.name, "/", method, "/", at), func(t *testing.T) {
					inBubble(t, telegramtest.Config{Limits: true}, func(c *telegram.Config) { c.Open = openFrom(t, files) }, func(t *testing.T, h *harness) {
						method, _, _ := strings.Cut(method, ",")
						for i := range 5 {
							h.Say(at, fmt.Sprint("/earlier ", i))
							h.Say(8, "elsewhere")
						}
						hub := h.hub(t, mem.New())
						before := h.sendAndShow(t, hub, answer(at, "earlier"), at)
						h.Say(at, "/heard")
						h.Say(8, "elsewhere")
						h.Fail(method, tt.fault)
						r.ID, r.To = "re:1", to(fmt.Sprint(at), "").To
						once := h.Count(method)
						got := h.sendAndShow(t, hub, r, at)
						if n := h.Count(method) - once; len(got) != len(before)+1 || n != tt.sends {
							t.Errorf("%d requests, and the chat shows %q", n, got)
						}
						if r.Ask != nil && len(h.last(at).Buttons) == 0 {
							t.Error("the question has lost its buttons")
						}
						if after := h.sendAndShow(t, hub, answer(at, "later"), at); len(after) != len(got)+1 {
							t.Errorf("then it shows %q", after)
						}
					})
				})
			}
		}
	}
}

// P9: a message is not looked for if there was no connection to send it over.
func TestP9NeverConnected(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) {
		inner := c.Client.Transport
		c.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if down.Load() && strings.HasSuffix(r.URL.Path, "/sendMessage") {
				return nil, errors.New("connection refused")
			}
			return inner.RoundTrip(r)
		})}
	}, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		hub := h.hub(t, mem.New())
		time.AfterFunc(time.Minute, func() { down.Store(false) })
		if got := h.sendAndShow(t, hub, answer(7, "once"), 7); len(got) != 1 || h.Count("editMessageReplyMarkup") != 0 {
			t.Errorf("the chat shows %q after %d probes", got, h.Count("editMessageReplyMarkup"))
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// P9: the search ends after 64 numbers, or at the first one that was given since in
// any chat of the counter. It keeps to Telegram's limits.
func TestP9SearchIsBounded(t *testing.T) {
	for _, tt := range []struct {
		name   string
		since  func(h *harness)
		probes int
	}{
		{"nobody wrote since", func(*harness) {}, 64},
		{"somebody wrote elsewhere", func(h *harness) { h.SkipMessages(8, 3); h.Say(8, "since") }, 9},
		{"in a supergroup, which counts for itself", func(h *harness) { h.Say(group, "/since") }, 64},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{Limits: true}, nil, func(t *testing.T, h *harness) {
				h.Say(7, "hello")
				hub := h.hub(t, mem.New())
				timetest.Sleep(time.Minute)
				h.Fail("sendMessage", telegramtest.Fault{Chat: 7, DropBefore: true})
				h.Fail("editMessageReplyMarkup", telegramtest.Fault{Times: 2, DropBefore: true})
				for i := range 3 { // what the first polls bring may be older
					time.AfterFunc(time.Duration(i+1)*10*time.Millisecond, func() { tt.since(h) })
				}
				got := h.sendAndShow(t, hub, answer(7, "once"), 7)
				if n := h.Count("editMessageReplyMarkup") - 2; len(got) != 1 || n != tt.probes {
					t.Errorf("%d probes, want %d; the chat shows %q", n, tt.probes, got)
				}
				if strings.Contains(h.logs.String(), "Too Many Requests") {
					t.Errorf("too fast:\n%s", h.logs)
				}
			})
		})
	}
}

// Replies in the outbox are sent as soon as a poll succeeds after an outage.
func TestOutageIsOverForTheOutbox(t *testing.T) {
	var down atomic.Bool
	down.Store(true)
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) {
		inner := c.Client.Transport
		c.Client = &http.Client{Transport: roundTrip(func(r *http.Request) (*http.Response, error) {
			if down.Load() {
				return nil, errors.New("connection refused")
			}
			return inner.RoundTrip(r)
		})}
	}, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		hub := h.hub(t, mem.New())
		for i := range 5 {
			if err := hub.Send(t.Context(), answer(7, fmt.Sprint("answer ", i))); err != nil {
				t.Fatal(err)
			}
		}
		timetest.Sleep(2 * time.Hour)
		down.Store(false)
		timetest.Sleep(45 * time.Second)
		if got := h.shown(7); len(got) != 5 {
			t.Errorf("45 s after the outage the chat shows %q", got)
		}
	})
}
