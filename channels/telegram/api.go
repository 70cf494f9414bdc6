package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/channels/network"
	"parley/chat"
	"parley/workspace"
)

// A botAPI is one bot's access to Telegram's Bot API.
type botAPI struct {
	bot     *bot.Bot
	client  client
	channel string // name in config.json, for advice
	url     string
	token   string
}

func newBotAPI(cfg *Config) (*botAPI, error) {
	client := newClient(cfg.Client)
	library, err := bot.New(cfg.Token, bot.WithSkipGetMe(), bot.WithServerURL(cfg.APIURL),
		bot.WithHTTPClient(requestTimeout, client), bot.WithErrorsHandler(func(error) {}))
	if err != nil {
		return nil, err
	}
	return &botAPI{bot: library, client: client, channel: cfg.Name, url: cfg.APIURL, token: cfg.Token}, nil
}

// getUpdates waits for updates from offset on, which confirms all before it. The
// library's own loop confirms too early.
func (a *botAPI) getUpdates(
	ctx context.Context, offset int64, limit int, wait time.Duration,
) ([]json.RawMessage, error) {
	query, err := json.Marshal(map[string]any{
		"offset": offset, "limit": limit, "timeout": wait / time.Second, "allowed_updates": updateKinds,
	})
	if err != nil {
		return nil, err
	}
	address := a.url + "/bot" + a.token + "/getUpdates"
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(query))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	body, err := a.client.answer(req, pollTimeout)
	if err != nil {
		return nil, err
	}
	raws, err := decodeUpdates(body)
	if errors.Is(err, errMalformed) && limit == 1 && updateIDForm.Match(body) {
		return []json.RawMessage{body}, nil
	}
	return raws, err
}

// errMalformed says that an answer is not valid JSON.
var errMalformed = errors.New("the answer is malformed")

// decodeUpdates reads an answer to getUpdates. Errors are errMalformed and those of the library.
func decodeUpdates(body []byte) ([]json.RawMessage, error) {
	var answer struct {
		OK          bool              `json:"ok"`
		Result      []json.RawMessage `json:"result"`
		Code        int               `json:"error_code"`
		Description string            `json:"description"`
		Parameters  struct {
			RetryAfter int `json:"retry_after"` // seconds
		} `json:"parameters"`
	}
	if json.Unmarshal(body, &answer) != nil {
		return nil, errMalformed
	}
	if answer.OK {
		return answer.Result, nil
	}
	if answer.Parameters.RetryAfter > 0 {
		return nil, &bot.TooManyRequestsError{Message: answer.Description, RetryAfter: answer.Parameters.RetryAfter}
	}
	known := map[int]error{401: bot.ErrorUnauthorized, 404: bot.ErrorNotFound, 409: bot.ErrorConflict}
	if err := known[answer.Code]; err != nil {
		return nil, fmt.Errorf("%w: %s", err, answer.Description)
	}
	return nil, fmt.Errorf("%d %s", answer.Code, answer.Description)
}

func (a *botAPI) deleteWebhook(ctx context.Context) error {
	if _, err := a.bot.DeleteWebhook(ctx, &bot.DeleteWebhookParams{}); err != nil {
		return a.redactedError("delete webhook", err)
	}
	return nil
}

const acknowledgeTimeout = 5 * time.Second

// acknowledgePress stops a button from looking pressed. It is best effort: a press
// that arrives again after a restart may have been acknowledged before.
func (a *botAPI) acknowledgePress(ctx context.Context, id string, log *slog.Logger) {
	ctx, cancel := context.WithTimeout(ctx, acknowledgeTimeout)
	defer cancel()
	if _, err := a.bot.AnswerCallbackQuery(ctx, &bot.AnswerCallbackQueryParams{CallbackQueryID: id}); err != nil {
		log.Debug("button press not acknowledged", "err", a.redactedError("answer callback query", err))
	}
}

// download returns the content of a file that somebody sent.
func (a *botAPI) download(ctx context.Context, f chat.File) (io.ReadCloser, error) {
	got, err := a.bot.GetFile(ctx, &bot.GetFileParams{FileID: f.Ref})
	switch {
	case isBadRequest(err, "file is too big"):
		return nil, channels.ForGood("telegram lets no bot download a file over 20 MB: %w", workspace.ErrTooBig)
	case isBadRequest(err, "temporarily unavailable"):
		return nil, a.redactedError("get file", err)
	case err != nil:
		return nil, a.channelError("get file", err)
	}
	filePath := (&url.URL{Path: got.FilePath}).EscapedPath()
	return network.Download(ctx, a.client.http, a.url+"/file/bot"+a.token+"/"+filePath)
}

// redactedError returns err, which occurred while doing that, without the token (R-S26).
func (a *botAPI) redactedError(doing string, err error) error {
	_, secret, _ := strings.Cut(a.token, ":")
	return fmt.Errorf("%s: %w", doing, network.Plainly(err, secret))
}

// channelError returns err, which occurred while doing that, as a
// *channels.Error if it is known whether to try again.
func (a *botAPI) channelError(doing string, err error) error {
	if err == nil {
		return nil
	}
	redacted := a.redactedError(doing, err)
	if e, ok := errors.AsType[*channels.Error](err); ok {
		return &channels.Error{Permanent: e.Permanent, After: e.After, Unsent: e.Unsent, Err: redacted}
	}
	if delay, ok := retryAfter(err); ok {
		return &channels.Error{After: delay, Err: redacted}
	}
	_, moved := errors.AsType[*bot.MigrateError](err)
	tooLarge := strings.Contains(redacted.Error(), " 413 ") // for which the library has no error
	if moved || tooLarge || isAny(err, bot.ErrorBadRequest, bot.ErrorForbidden) {
		return channels.ForGood("%w", redacted)
	}
	_, unsent := errors.AsType[unsentError](err)
	if unsent || isAny(err, bot.ErrorUnauthorized, bot.ErrorNotFound, bot.ErrorConflict) {
		return &channels.Error{Unsent: true, Err: redacted}
	}
	return redacted
}

// adviseOn returns what the operator can do about err, where that is known.
func (a *botAPI) adviseOn(err error) error {
	switch {
	case errors.Is(err, bot.ErrorUnauthorized):
		return fmt.Errorf("telegram refuses the token of channels.%s: it was revoked or mistyped:"+
			" copy it anew from @BotFather", a.channel)
	case errors.Is(err, bot.ErrorNotFound):
		return fmt.Errorf("no bot with the token of channels.%s at %s: check token and apiUrl", a.channel, a.url)
	case errors.Is(err, bot.ErrorConflict):
		return errors.New("another process polls this bot: stop it, or give it a bot of its own")
	}
	return a.redactedError("call telegram", err)
}

func isAny(err error, targets ...error) bool {
	for _, target := range targets {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// isBadRequest reports whether Telegram rejected a request for that reason.
func isBadRequest(err error, reason string) bool {
	return errors.Is(err, bot.ErrorBadRequest) && strings.Contains(err.Error(), reason)
}

// retryAfter returns how long Telegram asks to wait. It is not ok if it does not ask.
func retryAfter(err error) (delay time.Duration, ok bool) {
	busy, ok := errors.AsType[*bot.TooManyRequestsError](err)
	if !ok {
		return 0, false
	}
	return time.Duration(busy.RetryAfter) * time.Second, true
}
