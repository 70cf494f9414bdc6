package telegram_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
)

func to(chatID string, text string) chat.Reply {
	return chat.Reply{To: chat.Address{Channel: "telegram", Chat: chatID}, Text: text}
}

// last returns the newest message of the chat.
func (h *harness) last(chat int64) telegramtest.Message {
	ms := h.Chat(chat)
	if len(ms) == 0 {
		return telegramtest.Message{}
	}
	return ms[len(ms)-1]
}

func TestSend(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		h.Say(group, "hello", telegramtest.InTopic(3))
		send := func(r chat.Reply, chatID int64) telegramtest.Message {
			t.Helper()
			for _, part := range channels.Parts(h.ch, r) {
				if _, err := h.ch.Send(t.Context(), part); err != nil {
					t.Fatal(err)
				}
			}
			return h.last(chatID)
		}
		r := to("7", "**bold** https://example.com/")
		r.Quote = "1"
		m := send(r, 7)
		if m.Text != "bold https://example.com/" || len(m.Entities) == 0 || m.ReplyTo != 0 {
			t.Errorf("sent %+v", m)
		}
		if m.Preview {
			t.Error("R-S13: links are unfurled")
		}
		r = to("-1005", "answer")
		r.Group, r.Quote, r.To.Thread = true, "1", "3"
		if m := send(r, group); m.ReplyTo != 1 || m.Thread != 3 {
			t.Errorf("in a topic: sent %+v", m)
		}
		r.Quote = "1e946684860"
		if m := send(r, group); m.ReplyTo != 1 {
			t.Errorf("to an edit: sent %+v", m)
		}
		r.Quote = "999"
		if m := send(r, group); m.ReplyTo != 0 {
			t.Errorf("to a message that is gone: sent %+v", m)
		}
		r.To.Thread = "1"
		if m := send(r, group); m.Thread != 0 {
			t.Errorf("to the General topic: sent %+v", m)
		}
		long := to("7", strings.Repeat("word ", 2000))
		send(long, 7)
		if n := len(h.Chat(7)); n != 5 {
			t.Errorf("%d messages, want 5", n)
		}
	})
}

func TestSplit(t *testing.T) {
	h := newHarness(t, telegramtest.Config{}, nil)
	r := to("7", strings.Repeat("word ", 2000))
	r.ID, r.Quote, r.Group = "re:1", "1", true
	parts := channels.Parts(h.ch, r)
	if len(parts) != 3 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, p := range parts {
		if p.To != r.To || !p.Group {
			t.Errorf("part %d is %+v", i, p)
		}
	}
	if parts := h.ch.Split(" \n"); len(parts) != 0 {
		t.Errorf("nothing is %d parts", len(parts))
	}
}

// P10: errors that are permanent, errors that say when to retry, and others.
func TestP10SendErrors(t *testing.T) {
	for _, tt := range []struct {
		name      string
		fault     telegramtest.Fault
		permanent bool
		after     time.Duration
		unsent    bool
	}{
		{"blocked", telegramtest.Fault{Code: 403, Text: "Forbidden: bot was blocked by the user"}, true, 0, false},
		{"bad request", telegramtest.Fault{Code: 400, Text: "Bad Request: chat not found"}, true, 0, false},
		{"flood", telegramtest.Fault{Code: 429, Text: "Too Many Requests: retry after 17", RetryAfter: 17}, false, 17 * time.Second, false},
		{"token revoked", telegramtest.Fault{Code: 401, Text: "Unauthorized"}, false, 0, true},
		{"server error", telegramtest.Fault{Code: 500, Text: "Internal Server Error"}, false, 0, false},
		{"error page", telegramtest.Fault{Code: 502, Page: "<html>Bad Gateway</html>"}, false, 0, false},
		{"no answer", telegramtest.Fault{Hang: true}, false, 0, false},
		{"lost before", telegramtest.Fault{DropBefore: true}, false, 0, false},
		{"lost after", telegramtest.Fault{DropAfter: true}, false, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.Say(7, "hello")
				for _, method := range []string{"sendMessage", "editMessageText"} {
					h.Fail(method, tt.fault)
				}
				began := time.Now()
				_, errSend := h.ch.Send(t.Context(), to("7", "answer"))
				if d := time.Since(began); d > 30*time.Second {
					t.Errorf("one attempt took %v", d)
				}
				errEdit := h.ch.Edit(t.Context(), "7/1", to("7", "answer"))
				for _, err := range []error{errSend, errEdit} {
					var refused *channels.Error
					if is := errors.As(err, &refused); err == nil || is != (tt.permanent || tt.after > 0 || tt.unsent) {
						t.Fatalf("the error is %#v", err)
					}
					if refused != nil && (refused.Permanent != tt.permanent || refused.After != tt.after || refused.Unsent != tt.unsent) {
						t.Errorf("the error is %+v", refused)
					}
				}
				h.noToken(t, errSend, errEdit)
			})
		})
	}
}

// A cancelled Send returns the context's error.
func TestSendCancelled(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		h.Fail("sendMessage", telegramtest.Fault{Hang: true})
		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		if _, err := h.ch.Send(ctx, to("7", "x")); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func TestSendNowhere(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		h.Say(group, "hello", telegramtest.InTopic(3))
		h.CloseTopic(group, 3)
		topic := to("-1005", "x")
		topic.To.Thread = "3"
		odd := to("7", "x")
		odd.To.Thread = "odd"
		for name, r := range map[string]chat.Reply{
			"unknown chat": to("8", "x"), "no chat": to("console", "x"), "no thread": odd, "gone topic": topic, "nothing": to("7", " "),
		} {
			_, err := h.ch.Send(t.Context(), r)
			if refused, ok := errors.AsType[*channels.Error](err); !ok || !refused.Permanent {
				t.Errorf("%s: %v", name, err)
			}
		}
		for _, rc := range []channels.Receipt{"", "x", "7/99", "7/1"} { // 7/1 is a person's message
			err := h.ch.Edit(t.Context(), rc, to("7", "x"))
			if refused, ok := errors.AsType[*channels.Error](err); !ok || !refused.Permanent {
				t.Errorf("edit %q: %v", rc, err)
			}
		}
	})
}

// P10: text that Telegram cannot parse is sent again as plain text.
func TestP10PlainText(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		r := to("7", "<b>not closed &amp; sent")
		rc, err := h.ch.Send(t.Context(), r)
		if err != nil {
			t.Fatal(err)
		}
		if m := h.last(7); m.Text != "not closed & sent" || h.Count("sendMessage") != 2 {
			t.Errorf("sent %+v in %d attempts", m, h.Count("sendMessage"))
		}
		r.Text = "<i>nor this"
		if err := h.ch.Edit(t.Context(), rc, r); err != nil {
			t.Fatal(err)
		}
		if m := h.last(7); m.Text != "nor this" {
			t.Errorf("edited to %+v", m)
		}
		h.Fail("sendMessage", telegramtest.Fault{Times: -1, Code: 400, Text: "Bad Request: can't parse entities: whatever"})
		before := h.Count("sendMessage")
		_, err = h.ch.Send(t.Context(), r)
		if refused, ok := errors.AsType[*channels.Error](err); !ok || !refused.Permanent || h.Count("sendMessage") != before+2 {
			t.Errorf("%v after %d attempts", err, h.Count("sendMessage")-before)
		}
	})
}

// R-S13: no message unfurls links: neither new ones, with or without buttons, in
// plain text or about a lost file, nor edited ones. Captions never do.
func TestRS13NoPreviews(t *testing.T) {
	const link = "https://example.com/leak?secret"
	open := openFrom(t, map[string][]byte{"a.txt": []byte("abc")})
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Open, c.Rate = open, -1 }, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		for i, r := range []chat.Reply{
			{Text: link},
			{Text: "<b>not closed " + link},
			{Text: "> 🔧 " + link + "\n\n" + link, Ask: &chat.Question{ID: "q", Choices: []string{"Yes"}}},
			{Files: []chat.File{{Path: "gone.txt"}}},
			{Files: []chat.File{{Path: "a.txt"}, {Path: "gone.txt"}}},
		} {
			r.To = to("7", "").To
			rc, err := h.ch.Send(t.Context(), r)
			if err != nil {
				t.Fatal(i, err)
			}
			if m := h.last(7); m.Preview {
				t.Errorf("reply %d: links are unfurled: %+v", i, m)
			}
			for _, again := range []chat.Reply{to("7", "edited "+link), {Text: "<i>not closed " + link}} {
				if len(r.Files) > 1 {
					continue // a caption is not edited
				}
				if err := h.ch.Edit(t.Context(), rc, again); err != nil {
					t.Fatal(i, err)
				}
				if m := h.last(7); m.Preview || len(m.Edits) == 0 {
					t.Errorf("edit %d: links are unfurled: %+v", i, m)
				}
			}
		}
	})
}

func TestEdit(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Say(7, "hello")
		rc, err := h.ch.Send(t.Context(), to("7", "so"))
		if err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"so far", "so far", "so far, so <b>good</b>"} { // P9: an edit repeated is harmless
			if err := h.ch.Edit(t.Context(), rc, to("7", text)); err != nil {
				t.Fatal(err)
			}
		}
		m := h.last(7)
		if m.Text != "so far, so good" || len(m.Edits) != 2 || m.Preview {
			t.Errorf("shown is %+v", m)
		}
		for range 2 {
			if err := h.ch.Delete(t.Context(), chat.Address{Chat: "7"}, rc); err != nil {
				t.Error(err)
			}
		}
		if len(h.Chat(7)) != 1 {
			t.Error("the message is still there")
		}
		if refused, ok := errors.AsType[*channels.Error](h.ch.Edit(t.Context(), rc, to("7", "x"))); !ok || !refused.Permanent {
			t.Error("a deleted message was edited")
		}
	})
}

func TestTyping(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Rate = 1 }, func(t *testing.T, h *harness) {
		h.Say(group, "hello", telegramtest.InTopic(3))
		at := chat.Address{Chat: "-1005", Thread: "3"}
		if err := h.ch.Typing(t.Context(), at); err != nil {
			t.Fatal(err)
		}
		if _, err := h.ch.Send(t.Context(), to("-1005", "x")); err != nil {
			t.Fatal(err)
		}
		if err := h.ch.Typing(t.Context(), at); err != nil { // no room left
			t.Fatal(err)
		}
		h.Look(func(v telegramtest.View) {
			if v.Typing(group) != 1 {
				t.Errorf("typing was shown %d times", v.Typing(group))
			}
		})
	})
}

// The sender keeps to Telegram's limits: no request is refused, and short answers are sent at once.
func TestKeepsToLimits(t *testing.T) {
	inBubble(t, telegramtest.Config{Limits: true}, nil, func(t *testing.T, h *harness) {
		began := time.Now()
		var all sync.WaitGroup
		for id := range int64(60) {
			chatID, n := id+1, 10
			if id%10 == 0 {
				chatID, n = -1000-id, 50
			}
			h.Say(chatID, "hello")
			all.Go(func() {
				for i := range n {
					if _, err := h.ch.Send(t.Context(), to(fmt.Sprint(chatID), fmt.Sprint(i))); err != nil {
						t.Error(err)
						return
					}
					if i == 2 && chatID < 0 && time.Since(began) > 10*time.Second {
						t.Errorf("the first few took %v", time.Since(began))
					}
				}
			})
		}
		all.Wait()
	})
}

func TestNoLimitsWhenTold(t *testing.T) {
	inBubble(t, telegramtest.Config{}, func(c *telegram.Config) { c.Rate = -1 }, func(t *testing.T, h *harness) {
		h.Say(group, "hello")
		began := time.Now()
		for range 100 {
			if _, err := h.ch.Send(t.Context(), to("-1005", "x")); err != nil {
				t.Fatal(err)
			}
		}
		if time.Since(began) > 0 {
			t.Error("it took", time.Since(began))
		}
	})
}

// A group that becomes a supergroup stays the same session. Messages are sent to
// its new id, and those that arrive, which are numbered anew, are not taken for
// earlier ones (P2).
func TestMigration(t *testing.T) {
	for _, silently := range []bool{false, true} {
		t.Run(fmt.Sprint("silently ", silently), func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
				h.run(t)
				h.Say(-5, "/first")
				rc, err := h.ch.Send(t.Context(), to("-5", "one"))
				if err != nil {
					t.Fatal(err)
				}
				h.deliveredTexts()
				h.Migrate(-5, group, silently)
				answer := to("-5", "two")
				answer.Group, answer.Quote = true, "1"
				if _, err := h.ch.Send(t.Context(), answer); err != nil {
					t.Fatal(err)
				}
				if m := h.last(group); m.Text != "two" || m.ReplyTo != 0 {
					t.Errorf("the supergroup shows %+v", m)
				}
				h.deliveredTexts()
				sent := h.Say(group, "/second")
				h.Edit(group, sent, "/third")
				h.deliveredTexts()
				keys := map[string]bool{}
				for _, m := range h.delivered {
					if m.At.Chat != "-5" || keys[m.Key()] {
						t.Errorf("delivered %+v", m)
					}
					keys[m.Key()] = true
				}
				h.wantDelivered(t, "/first", "/second", "/third")
				for _, m := range h.delivered[1:] {
					r := m.Reply()
					r.Text = "three"
					if _, err := h.ch.Send(t.Context(), r); err != nil {
						t.Fatal(err)
					}
					if m := h.last(group); m.ReplyTo != sent {
						t.Errorf("the answer is %+v, want a reply to %d", m, sent)
					}
				}
				if err := h.ch.Typing(t.Context(), chat.Address{Chat: "-5"}); err != nil {
					t.Error(err)
				}
				err = h.ch.Edit(t.Context(), rc, to("-5", "x"))
				if refused, ok := errors.AsType[*channels.Error](err); !ok || !refused.Permanent {
					t.Errorf("edit of a message in the old group: %v", err)
				}
			})
		})
	}
}

// R-S26: the token, which is part of every address, is in no error and no log.
func TestRS26TokenStaysSecret(t *testing.T) {
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := "http://" + l.Addr().String()
	l.Close()
	open := openFrom(t, map[string][]byte{"a.png": picture(10, 10), "b.png": picture(10, 10)})
	loop := telegramtest.NewServer(telegramtest.Config{})
	defer loop.Close()
	for name, change := range map[string]func(*telegram.Config){
		"nobody there":    func(c *telegram.Config) { c.APIURL, c.Client = dead, nil },
		"TLS with no TLS": func(c *telegram.Config) { c.APIURL, c.Client = "https"+strings.TrimPrefix(loop.URL, "http"), nil },
		"it is echoed":    func(*telegram.Config) {},
		"a webhook": func(c *telegram.Config) {
			c.APIURL, c.Client, c.Webhook = dead, nil, &telegram.Webhook{URL: "https://example.com/", Secret: "s"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHarness(t, telegramtest.Config{}, func(c *telegram.Config) { c.Rate, c.Reactions, c.Open = -1, true, open; change(c) })
			h.PressData(7, 1, "q:a:0")
			for _, method := range []string{"getMe", "getUpdates", "sendMessage", "editMessageText", "sendChatAction", "setMyCommands",
				"getFile", "sendPhoto", "sendMediaGroup", "setMessageReaction", "answerCallbackQuery"} {
				for _, f := range []telegramtest.Fault{
					{Code: 404, Page: "no /bot" + h.Token() + "/ here"}, {Page: "{\"no /bot" + h.Token() + "/ here"},
					{Code: 400, Text: "Bad Request: /bot" + h.Token() + "/" + method}, {Code: 500, Text: "/bot" + h.Token()},
				} {
					h.Fail(method, f)
				}
			}
			ctx, stop := context.WithTimeout(t.Context(), 300*time.Millisecond)
			defer stop()
			errs := []error{h.ch.Run(ctx, h.deliver)}
			for range 4 {
				_, err := h.ch.Send(t.Context(), to("7", "x"))
				_, errCheck := h.ch.Check(t.Context())
				_, errFetch := h.ch.Fetch(t.Context(), chat.Message{}, chat.File{Ref: "x"})
				for _, files := range [][]chat.File{{{Path: "a.png"}}, {{Path: "a.png"}, {Path: "b.png"}}} {
					_, err := h.ch.Send(t.Context(), chat.Reply{To: chat.Address{Chat: "7"}, Files: files})
					errs = append(errs, err)
				}
				errs = append(errs, errFetch, h.ch.React(t.Context(), chat.Address{Chat: "7"}, "1", channels.Seen))
				errs = append(errs, err, errCheck, h.ch.Edit(t.Context(), "7/1", to("7", "x")),
					h.ch.Typing(t.Context(), chat.Address{Chat: "7"}), h.ch.SetCommands(t.Context(), []channels.Command{{Name: "a", Help: "b"}}))
			}
			h.noToken(t, errs...)
			if !strings.Contains(h.logs.String(), "poll failed") && !strings.Contains(h.logs.String(), "webhook not set") {
				t.Error("nothing was logged")
			}
		})
	}
}

// A redirect is not followed: it would send the token elsewhere.
func TestRS26NoRedirects(t *testing.T) {
	inBubble(t, telegramtest.Config{}, nil, func(t *testing.T, h *harness) {
		h.Fail("getMe", telegramtest.Fault{Code: 302, Page: "moved"})
		_, err := h.ch.Check(t.Context())
		if err == nil || !strings.Contains(err.Error(), "302") || h.Count("getMe") != 1 {
			t.Error(err)
		}
		synctest.Wait()
	})
}
