package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
)

const (
	sendTimeout   = 30 * time.Second  // of one request (P9)
	uploadTimeout = 100 * time.Second // of one that is large, without news
	largeLoad     = 1 << 20           // bytes
	watchdog      = 90 * time.Second  // of one poll: one that takes longer is dead (P24)
	maxAnswer     = 32 << 20          // bytes of one answer of the API
)

// errSilent ends a request that takes too long.
var errSilent = errors.New("no answer in time")

// A client does HTTP requests to the API. Its errors never hold the token,
// which is part of every address (R-S26).
type client struct{ *http.Client }

// newClient returns a client that does requests by h.
func newClient(h *http.Client) client {
	if h == nil {
		return client{channels.NewClient()}
	}
	c := *h
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client{&c}
}

// Do is how the library does a request.
func (c client) Do(req *http.Request) (*http.Response, error) {
	body, err := c.answer(req, sendTimeout)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

// answer does req and returns the whole answer. One that is not the API's, such
// as the page of a proxy, is an error.
func (c client) answer(req *http.Request, patience time.Duration) (body []byte, err error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	req = req.WithContext(ctx)
	req.Body = &load{req.Body, 0, silence}
	resp, err := c.Client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return nil, cause
	}
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		err = fmt.Errorf("the server answered %s, and not as the Bot API does", resp.Status)
	}
	return body, channels.Bare(err)
}

// A load is the body of a request. What is large may take its time, and then
// Telegram has to do with it, as long as it goes on.
type load struct {
	io.ReadCloser
	size    int
	silence *time.Timer
}

func (l *load) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.size += n; l.size > largeLoad {
		l.silence.Reset(uploadTimeout)
	}
	return n, err
}

// plainly returns err without the token.
func (c *Channel) plainly(doing string, err error) error {
	_, secret, _ := strings.Cut(c.cfg.Token, ":")
	return fmt.Errorf("%s: %w", doing, channels.Plainly(err, secret))
}

// refused turns an error of the API into one of a channel.
func (c *Channel) refused(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := c.plainly(doing, err)
	if held, ok := errors.AsType[*channels.Error](err); ok {
		return &channels.Error{Permanent: held.Permanent, After: held.After, Err: said}
	}
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return &channels.Error{After: time.Duration(busy.RetryAfter) * time.Second, Err: said}
	}
	_, moved := errors.AsType[*bot.MigrateError](err)
	tooLarge := strings.Contains(said.Error(), " 413 ") // the library has no name for it
	if moved || tooLarge || errors.Is(err, bot.ErrorBadRequest) || errors.Is(err, bot.ErrorForbidden) {
		return channels.ForGood("%w", said)
	}
	return said
}

// advice says what to do about err where that is known.
func (c *Channel) advice(err error) error {
	switch {
	case errors.Is(err, bot.ErrorUnauthorized):
		return fmt.Errorf("telegram refuses the token of channels.%s: it was revoked or mistyped: copy it anew from @BotFather", c.cfg.Name)
	case errors.Is(err, bot.ErrorNotFound):
		return fmt.Errorf("no bot with the token of channels.%s at %s: check token and apiUrl", c.cfg.Name, c.cfg.APIURL)
	case errors.Is(err, bot.ErrorConflict):
		return errors.New("another process polls this bot: stop it, or give it a bot of its own")
	}
	return c.plainly("call telegram", err)
}
