package telegram_test

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley/channels"
	"parley/channels/telegram"
	"parley/channels/telegram/telegramtest"
	"parley/chat"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

var (
	_ channels.Channel         = (*telegram.Channel)(nil)
	_ channels.Splitter        = (*telegram.Channel)(nil)
	_ channels.Editor          = (*telegram.Channel)(nil)
	_ channels.Typer           = (*telegram.Channel)(nil)
	_ channels.CommandMenu     = (*telegram.Channel)(nil)
	_ channels.Fetcher         = (*telegram.Channel)(nil)
	_ channels.Asker           = (*telegram.Channel)(nil)
	_ channels.Reactor         = (*telegram.Channel)(nil)
	_ channels.DirectMessenger = (*telegram.Channel)(nil)
	_ channels.HealthReporter  = (*telegram.Channel)(nil)
)

// A harness is a channel that runs against a fake Telegram, and what it delivered.
type harness struct {
	*telegramtest.Server
	ch   *telegram.Channel
	dead store.Log
	logs *logs

	mu        sync.Mutex
	delivered []chat.Message
	fail      func(chat.Message) error
}

type logs struct {
	mu sync.Mutex
	strings.Builder
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Builder.String()
}

// newHarness returns a harness whose channel does not run yet.
func newHarness(t *testing.T, of telegramtest.Config, change func(*telegram.Config)) *harness {
	t.Helper()
	s := mem.New()
	h := &harness{Server: telegramtest.NewInMemory(of), dead: s.Log("dead"), logs: &logs{}}
	t.Cleanup(h.Close)
	cfg := telegram.Config{
		Name: "telegram", Token: h.Token(), APIURL: h.URL, Client: h.Client(),
		Open: func(string) (*os.File, error) { return nil, os.ErrNotExist },
		Dead: h.dead, Alias: s.Bucket("alias"), Log: slog.New(slog.NewTextHandler(h.logs, nil)),
	}
	if change != nil {
		change(&cfg)
	}
	var err error
	if h.ch, err = telegram.New(cfg); err != nil {
		t.Fatal(err)
	}
	return h
}

// run runs the channel until the test ends.
func (h *harness) run(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- h.ch.Run(ctx, h.deliver) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

func (h *harness) deliver(_ context.Context, m chat.Message) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.fail != nil {
		if err := h.fail(m); err != nil {
			return err
		}
	}
	h.delivered = append(h.delivered, m)
	return nil
}

// deliveredTexts waits until everything is idle and returns what was delivered.
func (h *harness) deliveredTexts() []string {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	var texts []string
	for _, m := range h.delivered {
		texts = append(texts, describe(m))
	}
	return texts
}

// describe returns m as one text.
func describe(m chat.Message) string {
	text := m.Text
	if m.Media != "" {
		text = strings.TrimLeft(text+"\n["+m.Media+"]", "\n")
	}
	for _, f := range m.Files {
		text = strings.TrimLeft(text+"\n["+cmp.Or(f.Name, f.Type)+"]", "\n")
	}
	if q := m.Quote; q != nil && q.Forwarded {
		text = "[forwarded from " + q.From + "]\n" + q.Text + text
	}
	return text
}

func (h *harness) wantDelivered(t *testing.T, texts ...string) {
	t.Helper()
	if got := h.deliveredTexts(); !slices.Equal(got, texts) {
		t.Errorf("delivered %q, want %q", got, texts)
	}
}

// deadLetters returns the updates that could not be understood.
func (h *harness) deadLetters(t *testing.T) (raws []string) {
	t.Helper()
	for rec, err := range h.dead.Since(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		raws = append(raws, string(rec.Body))
	}
	return raws
}

// postUpdate sends an update to the webhook and returns the status of the answer.
func (h *harness) postUpdate(t *testing.T, body string) int {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hook", strings.NewReader(body))
	r.Header.Set("X-Telegram-Bot-Api-Secret-Token", secret)
	w := httptest.NewRecorder()
	webhookOf(h.ch).ServeHTTP(w, r)
	return w.Code
}

func (h *harness) confirmed() int { return len(h.Confirmed()) }

func (h *harness) wantLog(t *testing.T, text string) {
	t.Helper()
	if !strings.Contains(h.logs.String(), text) {
		t.Errorf("log does not say %q:\n%s", text, h.logs)
	}
}

var errFull = errors.New("disk full")

func TestNewRefuses(t *testing.T) {
	good := telegram.Config{Name: "telegram", Token: "1:AAsecretsecret"}
	for _, tt := range []struct {
		name, want string
		change     func(*telegram.Config)
	}{
		{"no token", "token", func(c *telegram.Config) { c.Token = "" }},
		{"a token that is none", "token", func(c *telegram.Config) { c.Token = "AAsecretsecret" }},
		{"a token with a path", "token", func(c *telegram.Config) { c.Token = "1:AAsecretsecret/../x" }},
		{"R-S9 a webhook without a secret", "webhook.secret", func(c *telegram.Config) { c.Webhook = &telegram.Webhook{URL: "https://example.com/"} }},
		{"R-S9 a secret Telegram refuses", "webhook.secret", func(c *telegram.Config) {
			c.Webhook = &telegram.Webhook{URL: "https://example.com/", Secret: "AAsecretsecret!"}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg := good
			tt.change(&cfg)
			_, err := telegram.New(cfg)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v does not name %s", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "AAsecret") {
				t.Errorf("R-S26: the error holds the secret: %v", err)
			}
		})
	}
	if _, err := telegram.New(good); err != nil {
		t.Error(err)
	}
}

func TestCheck(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		h := newHarness(t, telegramtest.Config{}, nil)
		if name, err := h.ch.Check(t.Context()); err != nil || name != "@parleybot" {
			t.Errorf("Check() = %q, %v", name, err)
		}
		h = newHarness(t, telegramtest.Config{}, func(c *telegram.Config) { c.Token = "4242:another-token" })
		if _, err := h.ch.Check(t.Context()); err == nil || !strings.Contains(err.Error(), "@BotFather") || strings.Contains(err.Error(), "another") {
			t.Errorf("Check() with a wrong token = %v", err)
		}
	})
}

func TestSetCommands(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		h := newHarness(t, telegramtest.Config{}, nil)
		menu := []channels.Command{{Name: "new", Help: "begin anew"}, {Name: "stop", Help: "stop"}}
		for range 3 {
			if err := h.ch.SetCommands(t.Context(), menu); err != nil {
				t.Fatal(err)
			}
		}
		if n := h.Count("setMyCommands"); n != 1 {
			t.Errorf("the same menu was set %d times", n)
		}
		if got := h.Commands(); got != `[{"command":"new","description":"begin anew"},{"command":"stop","description":"stop"}]` {
			t.Error("menu:", got)
		}
		if err := h.ch.SetCommands(t.Context(), []channels.Command{{Name: "Bad Name", Help: "x"}}); err == nil {
			t.Error("a bad name was taken")
		}
	})
}

func TestEditEvery(t *testing.T) {
	h := newHarness(t, telegramtest.Config{}, nil)
	if h.ch.EditEvery(chat.Address{Chat: "7"}) != time.Second || h.ch.EditEvery(chat.Address{Chat: "-7"}) != 3*time.Second {
		t.Error("edits come at the wrong pace")
	}
}

func withReactions(on bool) func(*telegram.Config) {
	return func(c *telegram.Config) { c.Reactions = on }
}
