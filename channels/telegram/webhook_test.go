package telegram_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store/mem"
	"parley/timetest"
)

const secret = "the-secret-of-the-webhook"

func withWebhook(c *telegram.Config) {
	c.Webhook = &telegram.Webhook{URL: "http://127.0.0.1:1/hook", Secret: secret}
}

// webhookOf returns the handler of Telegram's requests.
func webhookOf(c *telegram.Channel) http.Handler {
	_, handler := c.Webhook()
	return handler
}

// R-S9: the secret is checked first, then the limits of method and body. Only an
// update that is stored is answered with 200 (P1).
func TestRS9Webhook(t *testing.T) {
	const hello = `{"update_id":1,"message":{"message_id":1,"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"hello"}}`
	huge := `{"update_id":1,"message":{"text":"` + strings.Repeat("x", 1<<20) + `"}}`
	for _, tt := range []struct {
		name, method, secret, body string
		fail                       error
		code                       int
		delivered, dead            int
	}{
		{"good", "POST", secret, hello, nil, 200, 1, 0},
		{"no secret", "POST", "", hello, nil, 401, 0, 0},
		{"wrong secret", "POST", secret + "x", hello, nil, 401, 0, 0},
		{"secret of another length", "POST", "x", huge, nil, 401, 0, 0},
		{"GET", "GET", secret, "", nil, 405, 0, 0},
		{"too large", "POST", secret, huge, nil, 413, 0, 0},
		{"not kept", "POST", secret, hello, errFull, 500, 0, 0},
		{"P4 nonsense", "POST", secret, `{"update_id":5,"message":7}`, nil, 200, 0, 1},
		{"P4 no JSON", "POST", secret, `{"update_id":5,`, nil, 200, 0, 1},
		{"another kind", "POST", secret, `{"update_id":5,"poll":{}}`, nil, 200, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, telegramtest.Config{}, withWebhook, func(t *testing.T, h *harness) {
				h.fail = func(chat.Message) error { return tt.fail }
				h.run(t)
				h.deliveredTexts()
				r := httptest.NewRequestWithContext(t.Context(), tt.method, "/hook", strings.NewReader(tt.body))
				r.Header.Set("X-Telegram-Bot-Api-Secret-Token", tt.secret)
				w := httptest.NewRecorder()
				webhookOf(h.ch).ServeHTTP(w, r)
				dead := len(h.deadLetters(t))
				if w.Code != tt.code || len(h.deliveredTexts()) != tt.delivered || dead != tt.dead {
					t.Errorf("%d, %d delivered, %d dead; want %d, %d, %d", w.Code, len(h.delivered), dead, tt.code, tt.delivered, tt.dead)
				}
				if strings.Contains(w.Body.String(), secret) {
					t.Error("the answer tells the secret")
				}
			})
		})
	}
}

// R-S9: without the secret, not a byte of the body is read.
func TestRS9BodyUnread(t *testing.T) {
	h := newHarness(t, telegramtest.Config{}, withWebhook)
	body := strings.NewReader("x")
	webhookOf(h.ch).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), "POST", "/", body))
	if body.Len() != 1 {
		t.Error("the body was read")
	}
}

func TestHandlerOutsideRun(t *testing.T) {
	for name, change := range map[string]func(*telegram.Config){"polling": nil, "not running": withWebhook} {
		h := newHarness(t, telegramtest.Config{}, change)
		r := httptest.NewRequestWithContext(t.Context(), "POST", "/", strings.NewReader(`{"update_id":1,"message":{"message_id":1,"chat":{"id":7,"type":"private"},"from":{"id":7},"text":"hello"}}`))
		r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
		w := httptest.NewRecorder()
		webhookOf(h.ch).ServeHTTP(w, r)
		if w.Code != 404 && w.Code != 503 {
			t.Errorf("%s: %d", name, w.Code)
		}
	}
}

// P16: Run ends while a request waits for the bot's name. The update is not
// accepted any more, and Telegram sends it again.
func TestP16WebhookRunEnds(t *testing.T) {
	inBubble(t, telegramtest.Config{}, withWebhook, func(t *testing.T, h *harness) {
		h.Fail("getMe", telegramtest.Fault{Delay: 20 * time.Second})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- h.ch.Run(ctx, h.deliver) }()
		h.deliveredTexts()
		code := make(chan int)
		go func() {
			code <- h.postUpdate(t, `{"update_id":1,"message":{"message_id":1,"chat":{"id":-7,"type":"group"},"from":{"id":7},"text":"/hello"}}`)
		}()
		timetest.Sleep(10 * time.Second)
		began := time.Now()
		stop()
		if err := <-done; err != nil || time.Since(began) > 0 {
			t.Errorf("Run ended with %v after %v", err, time.Since(began))
		}
		if got := <-code; got != http.StatusServiceUnavailable {
			t.Errorf("the request was answered %d", got)
		}
		h.wantDelivered(t)
	})
}

// Over the loopback, an update that cannot be stored is sent again.
func TestWebhookEndToEnd(t *testing.T) {
	for _, fails := range []int{0, 3} {
		h := newHarness(t, telegramtest.Config{}, nil)
		real := telegramtest.NewServer(telegramtest.Config{})
		defer real.Close()
		var ch *telegram.Channel
		web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { webhookOf(ch).ServeHTTP(w, r) }))
		defer web.Close()
		ch, err := telegram.New(telegram.Config{
			Name: "telegram", Token: real.Token(), APIURL: real.URL, Dead: h.dead, Alias: mem.New().Bucket("alias"),
			Webhook: &telegram.Webhook{URL: web.URL, Secret: secret}, Log: slog.New(slog.NewTextHandler(h.logs, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		h.ch = ch
		left := fails
		h.fail = func(chat.Message) error {
			if left--; left >= 0 {
				return errFull
			}
			return nil
		}
		real.Say(7, "hello")
		real.Say(8, "good day")
		h.run(t)
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		defer stop()
		if err := real.Wait(ctx, func(v telegramtest.View) bool { return len(v.Confirmed()) == 2 }); err != nil {
			t.Fatal(err)
		}
		h.mu.Lock()
		if len(h.delivered) != 2 || h.delivered[0].Text != "hello" {
			t.Errorf("delivered %v", h.delivered)
		}
		h.mu.Unlock()
	}
}
