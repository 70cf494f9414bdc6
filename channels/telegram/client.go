package telegram

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
)

const (
	sendTimeout = 30 * time.Second // P9
	maxAnswer   = 32 << 20         // bytes of one answer of the API
)

// A client does HTTP requests to the API. Its errors never hold the token,
// which is part of every address (R-S26).
type client struct {
	*http.Client
	token string
}

// newClient returns a client that speaks HTTP/1.1, so that giving up a request
// gives up its connection too: a dead HTTP/2 connection would be used again (P24).
func newClient(h *http.Client, token string) client {
	c := http.Client{}
	if h != nil {
		c = *h
	} else {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.ForceAttemptHTTP2 = false
		t.Protocols = new(http.Protocols)
		t.Protocols.SetHTTP1(true)
		t.MaxIdleConnsPerHost = 64
		c.Transport = t
	}
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return client{&c, token}
}

// Do reads the whole answer. An answer that is not the API's, such as the
// error page of a proxy, is an error with its status.
func (c client) Do(req *http.Request) (*http.Response, error) {
	resp, err := c.Client.Do(req)
	if err != nil {
		if ue, ok := errors.AsType[*url.Error](err); ok {
			err = ue.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return nil, fmt.Errorf("the server answered %s", resp.Status)
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

// hide takes the token out of text.
func (c client) hide(text string) string {
	_, secret, _ := strings.Cut(c.token, ":")
	for _, s := range []string{c.token, url.QueryEscape(c.token), secret} {
		if len(s) >= 8 {
			text = strings.ReplaceAll(text, s, "***")
		}
	}
	return text
}

// plainly returns err without the token. Of its causes only the end of a context is kept.
func (c *Channel) plainly(doing string, err error) error {
	text := doing + ": " + c.http.hide(err.Error())
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return fmt.Errorf("%s: %w", strings.TrimSuffix(text, ": "+end.Error()), end)
		}
	}
	return errors.New(text)
}

// refused turns an error of the API into one of a channel.
func (c *Channel) refused(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := c.plainly(doing, err)
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return &channels.Error{After: time.Duration(busy.RetryAfter) * time.Second, Err: said}
	}
	_, moved := errors.AsType[*bot.MigrateError](err)
	if moved || errors.Is(err, bot.ErrorBadRequest) || errors.Is(err, bot.ErrorForbidden) {
		return &channels.Error{Permanent: true, Err: said}
	}
	return said
}

// fatal reports whether err says that the token is wrong.
func fatal(err error) bool {
	return errors.Is(err, bot.ErrorUnauthorized) || errors.Is(err, bot.ErrorNotFound)
}

// advice says what to do about err where that is known.
func (c *Channel) advice(err error) error {
	switch {
	case errors.Is(err, bot.ErrorUnauthorized):
		return fmt.Errorf("telegram refuses the token of channels.%s: it was revoked or mistyped: copy it anew from @BotFather", c.cfg.Name)
	case errors.Is(err, bot.ErrorNotFound):
		return fmt.Errorf("no bot with the token of channels.%s at %s: check token and apiUrl", c.cfg.Name, c.cfg.APIURL)
	}
	return c.plainly("call telegram", err)
}

// A backoff says how long to wait between attempts: 1 s, doubling to 30 s.
type backoff struct{ d time.Duration }

// next returns the next wait, which is the one err asks for if it does.
func (b *backoff) next(err error) time.Duration {
	b.d = min(max(2*b.d, time.Second), 30*time.Second)
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return max(b.d, time.Duration(busy.RetryAfter)*time.Second)
	}
	return b.d
}

func (b *backoff) reset() { b.d = 0 }

func sleep(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
