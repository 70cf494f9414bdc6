package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/chat"
)

const (
	pollFor  = 50 * time.Second // how long Telegram may wait for something to tell
	watchdog = 90 * time.Second // a poll that takes longer is dead (P24)
	crowded  = 30 * time.Second // wait while another process polls this bot
	batch    = 100              // updates in one answer, the most there can be
)

// wanted names the kinds of updates that are heard.
var wanted = []string{"message", "edited_message"}

// errSilent ends a poll that takes too long.
var errSilent = fmt.Errorf("no answer in %v", watchdog)

// poll asks for updates and delivers them. The offset that confirms them is
// sent only after each one is delivered or in Dead (P1).
func (c *Channel) poll(ctx context.Context, deliver chat.Deliver) error {
	var wait backoff
	offset, limit := int64(0), batch
	for ctx.Err() == nil {
		raws, err := c.getUpdates(ctx, offset, limit)
		if bad, ok := errors.AsType[*malformed](err); ok {
			if limit == 1 && bad.id != 0 {
				raws, err = []json.RawMessage{bad.body}, nil
			}
			limit = 1 // the next answer is about one update only
		} else if err == nil {
			limit = batch
		}
		if err != nil {
			if fatal(err) {
				return c.advice(err)
			}
			c.mend(ctx, err, &wait)
			continue
		}
		last := c.takeAll(ctx, raws, deliver)
		if len(raws) > 0 && last < offset { // nothing in it has an id
			sleep(ctx, wait.next(nil))
			continue
		}
		wait.reset()
		if ctx.Err() == nil {
			offset = max(offset, last+1)
		}
	}
	return nil
}

// mend does what can be done about a failed poll, and waits.
func (c *Channel) mend(ctx context.Context, err error, wait *backoff) {
	if ctx.Err() != nil {
		return
	}
	switch {
	case errors.Is(err, bot.ErrorConflict) && strings.Contains(err.Error(), "webhook"):
		c.log.Warn("telegram still brings the updates to a webhook: removing it")
		if _, err := c.api.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err != nil {
			c.log.Warn("webhook not removed", "err", c.plainly("delete webhook", err))
		}
		sleep(ctx, wait.next(err))
	case errors.Is(err, bot.ErrorConflict):
		c.log.Error("another process polls this bot: stop it, or give it a bot of its own", "again in", crowded)
		sleep(ctx, crowded)
	case errors.Is(err, errSilent):
		c.http.CloseIdleConnections()
		c.log.Warn("telegram fell silent: connecting anew", "after", watchdog)
	default:
		d := wait.next(err)
		c.log.Warn("poll failed", "err", c.plainly("get updates", err), "again in", d)
		sleep(ctx, d)
	}
}

// malformed is an answer that is no JSON.
type malformed struct {
	id   int64 // of the first update in it; 0 if none can be seen
	body []byte
}

func (*malformed) Error() string { return "the answer is malformed" }

var updateID = regexp.MustCompile(`"update_id"\s*:\s*([0-9]{1,18})`)

// idIn finds the id of the update that raw holds or is a ruin of, 0 if there is none.
func idIn(raw []byte) int64 {
	var u struct {
		ID int64 `json:"update_id"`
	}
	if json.Unmarshal(raw, &u) == nil && u.ID != 0 {
		return u.ID
	}
	if m := updateID.FindSubmatch(raw); m != nil {
		id, _ := strconv.ParseInt(string(m[1]), 10, 64)
		return id
	}
	return 0
}

// getUpdates waits for updates from offset on, which confirms all before it.
// The library cannot do it without confirming too early.
func (c *Channel) getUpdates(ctx context.Context, offset int64, limit int) ([]json.RawMessage, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, watchdog, errSilent)
	defer cancel()
	ask, err := json.Marshal(map[string]any{
		"offset": offset, "limit": limit, "timeout": pollFor / time.Second, "allowed_updates": wanted,
	})
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.cfg.APIURL+"/bot"+c.cfg.Token+"/getUpdates", bytes.NewReader(ask))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			return nil, cause
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return updatesIn(body)
}

// updatesIn reads an answer to getUpdates. Errors are those of the library.
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
	if err := json.Unmarshal(body, &a); err != nil {
		return nil, &malformed{id: idIn(body), body: body}
	}
	if a.OK {
		return a.Result, nil
	}
	switch a.Code {
	case http.StatusUnauthorized:
		return nil, bot.ErrorUnauthorized
	case http.StatusNotFound:
		return nil, bot.ErrorNotFound
	case http.StatusConflict:
		return nil, fmt.Errorf("%w: %s", bot.ErrorConflict, a.Description)
	case http.StatusTooManyRequests:
		return nil, &bot.TooManyRequestsError{Message: a.Description, RetryAfter: a.Parameters.RetryAfter}
	}
	return nil, fmt.Errorf("%d %s", a.Code, a.Description)
}
