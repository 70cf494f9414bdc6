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
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"parley/channels/network"
	"parley/lazyregexp"
)

const (
	requestTimeout = 30 * time.Second  // of one request (P9)
	uploadTimeout  = 100 * time.Second // without progress, of a request with a large body
	largeBody      = 1 << 20           // bytes
	maxAnswer      = 32 << 20          // bytes of one answer of the API
)

// errTimeout ends a request that takes too long.
var errTimeout = errors.New("no answer in time")

// A client makes HTTP requests to the API. Its errors never hold the token,
// which is part of every address (R-S26).
type client struct {
	http  *http.Client
	clock *network.ServerClock // Telegram's, as its answers tell it
}

// newClient returns a client with the transport of base, or one of its own if base is nil.
func newClient(base *http.Client) client {
	if base == nil {
		base = network.NewClient(nil)
	}
	copied := *base
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	clock := &network.ServerClock{}
	clock.Watch(&copied)
	return client{http: &copied, clock: clock}
}

// Do makes the requests of the library. A request that Telegram has accepted
// stays accepted even if the rest of the answer does not arrive or cannot be
// decoded: otherwise the library would return an error, and the message would be
// sent again.
func (c client) Do(req *http.Request) (*http.Response, error) {
	body, err := c.answer(req, requestTimeout)
	method := path.Base(req.URL.Path)
	if acceptedForm.Match(body) && !strings.HasPrefix(method, "get") {
		body = acceptance(method, body)
		err = nil
	}
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(body))}, nil
}

var (
	acceptedForm = lazyregexp.New(`^\s*\{\s*"ok"\s*:\s*true\b`)
	messageForm  = lazyregexp.New(`"message_id"\s*:\s*([0-9]{1,18})\b`)
)

// acceptance returns body, the answer that accepts a request for method, with its
// result reduced to what the driver reads: the numbers of the messages sent.
func acceptance(method string, body []byte) []byte {
	result := "true"
	switch {
	case method == "sendChatAction":
	case method == "sendMediaGroup":
		result = "[" + strings.Join(sentMessages(body), ",") + "]"
	case strings.HasPrefix(method, "send"):
		result = "{}"
		if sent := sentMessages(body); len(sent) > 0 {
			result = sent[0]
		}
	case strings.HasPrefix(method, "edit"):
		result = "{}"
	}
	return []byte(`{"ok":true,"result":` + result + `}`)
}

// sentMessages returns the messages in the result of body as JSON objects with
// nothing but their number. If body is not valid JSON, the first number found
// counts: it precedes everything that could hold another.
func sentMessages(body []byte) (objects []string) {
	type message struct {
		ID int64 `json:"message_id"`
	}
	var single struct {
		Result message `json:"result"`
	}
	var album struct {
		Result []message `json:"result"`
	}
	var ids []int64
	switch {
	case json.Unmarshal(body, &single) == nil:
		ids = append(ids, single.Result.ID)
	case json.Unmarshal(body, &album) == nil:
		for _, m := range album.Result {
			ids = append(ids, m.ID)
		}
	default:
		if id := messageForm.FindSubmatch(body); id != nil {
			n, _ := strconv.ParseInt(string(id[1]), 10, 64) // 18 digits at most
			ids = append(ids, n)
		}
	}
	for _, id := range ids {
		if id > 0 {
			objects = append(objects, fmt.Sprintf(`{"message_id":%d}`, id))
		}
	}
	return objects
}

// An unsentError is that of a request for which no connection was made.
type unsentError struct{ err error }

// Error implements error.
func (e unsentError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e unsentError) Unwrap() error { return e.err }

// answer makes the request and returns the whole answer, or with an error as much
// of it as arrived. An answer that is not the API's, such as the page of a proxy,
// is an error.
func (c client) answer(req *http.Request, timeout time.Duration) (body []byte, err error) {
	ctx, cancel := context.WithCancelCause(req.Context())
	defer cancel(nil)
	timer := time.AfterFunc(timeout, func() { cancel(errTimeout) })
	defer timer.Stop()
	req = req.WithContext(ctx)
	sent := &requestBody{body: req.Body, timer: timer}
	req.Body = sent
	body, err = c.roundTrip(req)
	if err == nil {
		return body, nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if !sent.begun.Load() {
		return body, unsentError{err}
	}
	return body, err
}

// roundTrip makes the request and reads the answer.
func (c client) roundTrip(req *http.Request) (body []byte, err error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, network.Bare(err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return body, network.Bare(err)
	}
	if !bytes.HasPrefix(bytes.TrimSpace(body), []byte("{")) {
		return body, fmt.Errorf("the server answered %s, and not as the Bot API does", resp.Status)
	}
	return body, nil
}

// A requestBody is the body of a request. While a large one makes progress, and
// until Telegram has processed it, it has more time than other requests.
type requestBody struct {
	body  io.ReadCloser
	size  int // bytes read so far
	timer *time.Timer
	begun atomic.Bool // some of it was read, so there was a connection to send it over
}

// Read implements [io.Reader].
func (b *requestBody) Read(p []byte) (int, error) {
	n, err := b.body.Read(p)
	b.size += n
	if b.size > largeBody {
		b.timer.Reset(uploadTimeout)
	}
	b.begun.Store(true)
	return n, err
}

// Close implements [io.Closer].
func (b *requestBody) Close() error { return b.body.Close() }
