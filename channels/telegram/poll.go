package telegram

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
)

const (
	pollFor = 50 * time.Second // how long Telegram may wait for something to tell
	crowded = 30 * time.Second // wait while another process polls this bot
	batch   = 100              // updates in one answer, the most there can be
)

// wanted names the kinds of updates that are heard.
var wanted = []string{"message", "edited_message", "callback_query"}

// errMalformed says that an answer is no JSON.
var errMalformed = errors.New("the answer is malformed")

// poll returns what asks once for updates and delivers them. The offset that
// confirms them is sent only after each one is delivered or in Dead (P1). After
// a quiet week Telegram may number updates from below: the last one counts, not
// the highest.
func (c *Channel) poll(deliver chat.Deliver) func(context.Context) error {
	offset, limit := int64(0), batch
	wait := pollFor
	var after uint64 // the updates of the next answer are from after that moment; 0 while some may be older
	return func(ctx context.Context) error {
		began := c.numbers.begin()
		raws, err := c.getUpdates(ctx, offset, limit, wait)
		drained := err == nil && len(raws) < limit
		limit = batch
		if errors.Is(err, errMalformed) {
			limit = 1 // the next answer is about one update only
		}
		if wait = pollFor; err != nil {
			wait = 0 // so that the answer tells at once that Telegram is back
		}
		last := c.takeAll(ctx, raws, after, deliver)
		if after = 0; drained {
			after = began // the next ones are not in this answer
		}
		if err == nil && len(raws) > 0 && last == 0 {
			err = errors.New("the updates have no ids")
		}
		if last != 0 && ctx.Err() == nil { // else takeAll may not have ended
			offset = last + 1
		}
		return err
	}
}

// mend does what can be done about a failed attempt to hear, and waits.
func (c *Channel) mend(ctx context.Context, err error, pause time.Duration) {
	said, conflict := c.advice(err), errors.Is(err, bot.ErrorConflict)
	switch {
	case conflict && strings.Contains(err.Error(), "webhook"):
		said = errors.New("telegram still brings the updates to a webhook, which is removed now")
		if _, err := c.api.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err != nil {
			said = c.plainly("delete webhook", err)
		}
	case conflict:
		pause = crowded
	case errors.Is(err, errSilent):
		c.http.CloseIdleConnections()
		said, pause = fmt.Errorf("telegram fell silent for %v", watchdog), 0
	}
	what := "poll failed"
	if c.cfg.Webhook != nil {
		what = "webhook not set"
	}
	c.SetHealth(said)
	c.log.Warn(what, "err", said, "again in", pause)
	channels.Sleep(ctx, pause)
}

// getUpdates waits for updates from offset on, which confirms all before it.
// The library cannot do it without confirming too early.
func (c *Channel) getUpdates(ctx context.Context, offset int64, limit int, wait time.Duration) ([]json.RawMessage, error) {
	ask, err := json.Marshal(map[string]any{
		"offset": offset, "limit": limit, "timeout": wait / time.Second, "allowed_updates": wanted,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.APIURL+"/bot"+c.cfg.Token+"/getUpdates", bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	body, err := c.http.answer(req, watchdog)
	if err != nil {
		return nil, err
	}
	raws, err := updatesIn(body)
	if errors.Is(err, errMalformed) && limit == 1 && updateID.Match(body) {
		return []json.RawMessage{body}, nil
	}
	return raws, err
}

// updatesIn reads an answer to getUpdates. Errors are errMalformed and those of the library.
func updatesIn(body []byte) ([]json.RawMessage, error) {
	var a struct {
		OK          bool              `json:"ok"`
		Result      []json.RawMessage `json:"result"`
		Code        int               `json:"error_code"`
		Description string            `json:"description"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"`
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &a) != nil {
		return nil, errMalformed
	}
	if a.OK {
		return a.Result, nil
	}
	if a.Parameters.RetryAfter > 0 {
		return nil, &bot.TooManyRequestsError{Message: a.Description, RetryAfter: a.Parameters.RetryAfter}
	}
	known := map[int]error{401: bot.ErrorUnauthorized, 404: bot.ErrorNotFound, 409: bot.ErrorConflict}
	if err := known[a.Code]; err != nil {
		return nil, fmt.Errorf("%w: %s", err, a.Description)
	}
	return nil, fmt.Errorf("%d %s", a.Code, a.Description)
}

const maxUpdate = 1 << 20 // bytes a webhook request may bring (R-S9)

// listen tells Telegram where to bring the updates, and waits until ctx ends.
func (c *Channel) listen(ctx context.Context) error {
	_, err := c.api.SetWebhook(ctx, &bot.SetWebhookParams{
		URL: c.cfg.Webhook.URL, SecretToken: c.cfg.Webhook.Secret, AllowedUpdates: wanted,
	})
	if err == nil {
		c.SetHealth(nil)
		<-ctx.Done()
	}
	return err
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
	c.noteMessage(p.update, 0)
	err = c.take(r.Context(), p, func(_ context.Context, m chat.Message) error { return c.gate.Deliver(m) })
	if errors.Is(err, network.ErrShut) {
		return http.StatusServiceUnavailable
	}
	c.SetHealth(err)
	if err != nil {
		c.log.Error("update not kept, telegram brings it again", "update", p.update.ID, "err", err)
		return http.StatusInternalServerError
	}
	return http.StatusOK
}
