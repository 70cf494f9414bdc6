package telegram

import (
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"net/http"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/chat"
)

const maxUpdate = 1 << 20 // bytes a webhook request may bring (R-S9)

// listen tells Telegram where to bring the updates, and waits until ctx ends.
func (c *Channel) listen(ctx context.Context) error {
	_, err := c.api.SetWebhook(ctx, &bot.SetWebhookParams{
		URL: c.cfg.Webhook.URL, SecretToken: c.cfg.Webhook.Secret, AllowedUpdates: wanted,
	})
	if err == nil {
		c.Feel(nil)
		<-ctx.Done()
	}
	return err
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
	if subtle.ConstantTimeCompare([]byte(r.Header.Get("X-Telegram-Bot-Api-Secret-Token")), []byte(c.cfg.Webhook.Secret)) != 1 {
		return http.StatusUnauthorized
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdate))
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	p := open(raw)
	err = c.take(r.Context(), p, func(_ context.Context, m chat.Message) error { return c.gate.Deliver(m) })
	if errors.Is(err, channels.ErrShut) {
		return http.StatusServiceUnavailable
	}
	c.Feel(err)
	if err != nil {
		c.log.Error("update not kept, telegram brings it again", "update", p.update.ID, "err", err)
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
