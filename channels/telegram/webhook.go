package telegram

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"io"
	"net/http"

	"github.com/go-telegram/bot"

	"parley/chat"
)

const maxUpdate = 1 << 20 // bytes a webhook request may bring (R-S9)

// listen tells Telegram where to bring the updates and lets Handler take them until ctx ends.
func (c *Channel) listen(ctx context.Context, deliver chat.Deliver) error {
	c.open(ctx, deliver)
	defer c.open(ctx, nil) // waits for the requests under way
	for wait := (backoff{}); ctx.Err() == nil; {
		_, err := c.api.SetWebhook(ctx, &bot.SetWebhookParams{
			URL: c.cfg.Webhook.URL, SecretToken: c.cfg.Webhook.Secret, AllowedUpdates: wanted,
		})
		if err == nil {
			c.feel(nil)
			<-ctx.Done()
			break
		}
		if fatal(err) {
			return c.advice(err)
		}
		said := c.plainly("set webhook", err)
		c.feel(said)
		c.log.Warn("webhook not set", "err", said)
		sleep(ctx, wait.next(err))
	}
	return nil
}

// open lets webhook requests in while deliver is not nil and ctx lasts.
func (c *Channel) open(ctx context.Context, deliver chat.Deliver) {
	c.door.Lock()
	defer c.door.Unlock()
	c.running, c.deliver = ctx, deliver
}

// Handler takes what Telegram brings to the webhook. It answers 200 only when
// the update cannot be lost (P1), and reads nothing from anyone who does not
// know the secret (R-S9).
func (c *Channel) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if code := c.receive(w, r); code != http.StatusOK {
			http.Error(w, http.StatusText(code), code)
		}
	})
}

func (c *Channel) receive(w http.ResponseWriter, r *http.Request) int {
	if c.cfg.Webhook == nil {
		return http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	got, want := sha256.Sum256([]byte(r.Header.Get("X-Telegram-Bot-Api-Secret-Token"))), sha256.Sum256([]byte(c.cfg.Webhook.Secret))
	if subtle.ConstantTimeCompare(got[:], want[:]) != 1 { // hashed, so that the time does not tell the length
		return http.StatusUnauthorized
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	c.door.RLock()
	defer c.door.RUnlock()
	if c.deliver == nil {
		return http.StatusServiceUnavailable
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(c.running, cancel)()
	p := open(raw)
	err = c.take(ctx, p, c.deliver)
	c.feel(err)
	if err != nil {
		c.log.Error("update not kept, telegram brings it again", "update", p.update.ID, "err", err)
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
