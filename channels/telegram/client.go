package telegram

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"regexp"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-telegram/bot"

	"parley/channels"
	"parley/channels/network"
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
type client struct {
	*http.Client
	server *network.ServerClock
}

// newClient returns a client that does requests by h.
func newClient(h *http.Client) client {
	if h == nil {
		h = network.NewClient()
	}
	c := client{&http.Client{}, &network.ServerClock{}}
	*c.Client = *h
	c.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	c.server.Watch(c.Client)
	return c
}

// Do is how the library does a request. What Telegram has accepted stays
// accepted, whether the rest of the answer arrives and can be decoded or not:
// the library would return an error, and the message would be sent again.
func (c client) Do(req *http.Request) (*http.Response, error) {
	body, err := c.answer(req, sendTimeout)
	if method := path.Base(req.URL.Path); acceptedForm.Match(body) && !strings.HasPrefix(method, "get") {
		body, err = acceptance(method, body), nil
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

var (
	acceptedForm = regexp.MustCompile(`^\s*\{\s*"ok"\s*:\s*true\b`)
	messageForm  = regexp.MustCompile(`"message_id"\s*:\s*([0-9]{1,18})\b`)
)

// acceptance returns the answer body, which accepts a request for method, with
// no more in its result than we read of it: the numbers of the messages sent.
func acceptance(method string, body []byte) []byte {
	result := "true"
	switch {
	case method == "sendChatAction":
	case method == "sendMediaGroup":
		result = "[" + strings.Join(messages(body), ",") + "]"
	case strings.HasPrefix(method, "send"):
		result = "{}"
		if sent := messages(body); len(sent) > 0 {
			result = sent[0]
		}
	case strings.HasPrefix(method, "edit"):
		result = "{}"
	}
	return []byte(`{"ok":true,"result":` + result + `}`)
}

// messages returns the messages that the result in body is, each with its
// number and nothing else. In what is no JSON the first number found is taken:
// it comes before everything that could hold another.
func messages(body []byte) (all []string) {
	type message struct {
		ID int64 `json:"message_id"`
	}
	var one struct {
		Result message `json:"result"`
	}
	var album struct {
		Result []message `json:"result"`
	}
	if json.Unmarshal(body, &one) == nil {
		album.Result = []message{one.Result}
	} else if json.Unmarshal(body, &album) != nil {
		album.Result = nil
		if id := messageForm.FindSubmatch(body); id != nil {
			n, _ := strconv.ParseInt(string(id[1]), 10, 64) // 18 digits at most
			album.Result = []message{{n}}
		}
	}
	for _, m := range album.Result {
		if m.ID > 0 {
			all = append(all, fmt.Sprintf(`{"message_id":%d}`, m.ID))
		}
	}
	return all
}

// An unsent error is that of a request for which no connection was made.
type unsent struct{ error }

// Unwrap returns the cause.
func (u unsent) Unwrap() error { return u.error }

// answer does req and returns the whole answer, or with an error as much of it
// as came. One that is not the API's, such as the page of a proxy, is an error.
func (c client) answer(req *http.Request, patience time.Duration) (body []byte, err error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	silence := time.AfterFunc(patience, func() { cancel(errSilent) })
	defer silence.Stop()
	req = req.WithContext(ctx)
	sent := &load{ReadCloser: req.Body, silence: silence}
	req.Body = sent
	resp, err := c.Client.Do(req)
	if err == nil {
		defer resp.Body.Close()
		body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	}
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	if err == nil && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		err = fmt.Errorf("the server answered %s, and not as the Bot API does", resp.Status)
	}
	if err = network.Bare(err); err != nil && !sent.begun.Load() {
		err = unsent{err}
	}
	return body, err
}

// A load is the body of a request. What is large may take its time, and then
// Telegram has to do with it, as long as it goes on.
type load struct {
	io.ReadCloser
	size    int
	silence *time.Timer
	begun   atomic.Bool // some of it was read, because there was a connection to send it by
}

func (l *load) Read(p []byte) (int, error) {
	n, err := l.ReadCloser.Read(p)
	if l.size += n; l.size > largeLoad {
		l.silence.Reset(uploadTimeout)
	}
	l.begun.Store(true)
	return n, err
}

// plainly returns err without the token.
func (c *Channel) plainly(doing string, err error) error {
	_, secret, _ := strings.Cut(c.cfg.Token, ":")
	return fmt.Errorf("%s: %w", doing, network.Plainly(err, secret))
}

// refused turns an error of the API into one of a channel.
func (c *Channel) refused(doing string, err error) error {
	if err == nil {
		return nil
	}
	said := c.plainly(doing, err)
	if held, ok := errors.AsType[*channels.Error](err); ok {
		return &channels.Error{Permanent: held.Permanent, After: held.After, Unsent: held.Unsent, Err: said}
	}
	if busy, ok := errors.AsType[*bot.TooManyRequestsError](err); ok {
		return &channels.Error{After: time.Duration(busy.RetryAfter) * time.Second, Err: said}
	}
	_, moved := errors.AsType[*bot.MigrateError](err)
	tooLarge := strings.Contains(said.Error(), " 413 ") // the library has no name for it
	if moved || tooLarge || errors.Is(err, bot.ErrorBadRequest) || errors.Is(err, bot.ErrorForbidden) {
		return channels.ForGood("%w", said)
	}
	_, lost := errors.AsType[unsent](err)
	if lost || errors.Is(err, bot.ErrorUnauthorized) || errors.Is(err, bot.ErrorNotFound) || errors.Is(err, bot.ErrorConflict) {
		return &channels.Error{Unsent: true, Err: said}
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
