package telegram

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/url"

	"github.com/go-telegram/bot"

	"parley/channels/network"
	"parley/chat"
)

const (
	maxUpdateSize = 1 << 20 // bytes of a webhook request (R-S9)
	defaultListen = "127.0.0.1:8081"
	secretHeader  = "X-Telegram-Bot-Api-Secret-Token"
)

// A webhookReceiver receives the updates that Telegram sends to our HTTP server.
type webhookReceiver struct {
	cfg      *Webhook // nil while the bot polls
	api      *botAPI
	receiver *receiver
	intake   network.Intake
	health   *network.HealthState
	log      *slog.Logger
}

// register tells Telegram where to send updates, and waits until ctx ends.
func (h *webhookReceiver) register(ctx context.Context) error {
	_, err := h.api.bot.SetWebhook(ctx, &bot.SetWebhookParams{
		URL: h.cfg.URL, SecretToken: h.cfg.Secret, AllowedUpdates: updateKinds,
	})
	if err != nil {
		return err
	}
	h.health.SetHealth(nil)
	<-ctx.Done()
	return nil
}

// path returns where Telegram sends its requests.
func (h *webhookReceiver) path() string {
	if h.cfg == nil { // the bot polls
		return "/"
	}
	u, err := url.Parse(h.cfg.URL)
	if err != nil {
		return "/"
	}
	return cmp.Or(u.Path, "/")
}

// ServeHTTP implements [http.Handler].
func (h *webhookReceiver) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if status := h.receive(w, r); status != http.StatusOK {
		http.Error(w, http.StatusText(status), status)
	}
}

// receive delivers the update in r and returns the status of the answer.
func (h *webhookReceiver) receive(w http.ResponseWriter, r *http.Request) (status int) {
	if h.cfg == nil {
		return http.StatusNotFound
	}
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return http.StatusMethodNotAllowed
	}
	if subtle.ConstantTimeCompare([]byte(r.Header.Get(secretHeader)), []byte(h.cfg.Secret)) != 1 {
		return http.StatusUnauthorized
	}
	raw, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxUpdateSize))
	if err != nil {
		return http.StatusRequestEntityTooLarge
	}
	u := decodeUpdate(raw)
	h.receiver.noteMessage(u.update, 0)
	deliver := func(_ context.Context, m chat.Message) error { return h.intake.Deliver(m) }
	err = h.receiver.deliver(r.Context(), u, deliver)
	if errors.Is(err, network.ErrShut) {
		return http.StatusServiceUnavailable
	}
	h.health.SetHealth(err)
	if err != nil {
		h.log.Error("update not kept, telegram sends it again", "update", u.update.ID, "err", err)
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
