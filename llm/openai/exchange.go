package openai

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"parley/llm"
)

// An exchange is one HTTP request and its answer. It is what go-openai sends
// through, and sees what go-openai does not show: headers, and what vendors
// put between the lines.
type exchange struct {
	transport http.RoundTripper
	watch     *watch
	fields    string // JSON fields to put into the request's body, each with a comma after it
	body      *events
}

// Do implements openai.HTTPDoer. Redirects are not followed: the key is meant
// for the address that was configured.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	if err := x.patch(req); err != nil {
		return nil, err
	}
	resp, err := x.transport.RoundTrip(req)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Unreachable, Err: err}
	}
	x.watch.alive()
	if resp.StatusCode < 300 {
		x.body = newEvents(resp, x.watch)
		resp.Body = x.body
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		return nil, &llm.Error{Kind: llm.BadRequest, Status: resp.StatusCode,
			Err: fmt.Errorf("baseUrl leads elsewhere, to %s", place(resp.Header.Get("Location")))}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))
	e := complaintIn(body).failure(resp.StatusCode)
	e.After = retryAfter(resp.Header, time.Now())
	return nil, e
}

// patch puts x.fields into the body of req.
func (x *exchange) patch(req *http.Request) error {
	if x.fields == "" {
		return nil
	}
	old, err := io.ReadAll(req.Body)
	if err != nil {
		return fmt.Errorf("read the request: %w", err)
	}
	body := append([]byte("{"+x.fields), old[1:]...)
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, err = req.GetBody()
	return err
}

// place is a URL less what may be secret in it.
func place(location string) string {
	u, err := url.Parse(location)
	if err != nil {
		return "an address that cannot be read"
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}).String()
}

// retryAfter is how long the provider asks to wait: in milliseconds, in
// seconds, or until a date. Rounded up, so that we are never early.
func retryAfter(h http.Header, now time.Time) time.Duration {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil {
		return seconds(ms / 1000)
	}
	v := strings.TrimSpace(h.Get("Retry-After"))
	if s, err := strconv.ParseFloat(v, 64); err == nil {
		return seconds(s)
	}
	if t, err := http.ParseTime(v); err == nil {
		return max(0, t.Sub(now))
	}
	return 0
}

func seconds(s float64) time.Duration {
	if !(s > 0) {
		return 0
	}
	return time.Duration(min(s, 7*24*3600) * float64(time.Second))
}

const (
	afterFinish = 2 * time.Second       // for the token count, once the answer is whole
	afterDone   = 20 * time.Millisecond // for the end of the body, so that the connection can be used again
)

// A watch ends an exchange in which nothing happens.
type watch struct {
	cancel context.CancelCauseFunc
	ctx    context.Context
	idle   time.Duration
	bytes  *time.Timer // since the last byte
	data   *time.Timer // since the last piece of an answer
}

func newWatch(ctx context.Context, idle time.Duration) (context.Context, *watch) {
	w := &watch{idle: idle}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.bytes = time.AfterFunc(idle, func() { w.end("sent nothing for %v", idle) })
	w.data = time.AfterFunc(max(maxSilent, idle), func() { w.end("kept the line open for %v without an answer", max(maxSilent, idle)) })
	return w.ctx, w
}

func (w *watch) end(format string, d time.Duration) {
	w.cancel(&llm.Error{Kind: llm.TimedOut, Err: fmt.Errorf(format, d)})
}

func (w *watch) alive() { w.bytes.Reset(w.idle) }

func (w *watch) answered() { w.data.Reset(max(maxSilent, w.idle)) }

// hurry leaves less time from now on.
func (w *watch) hurry(idle time.Duration) {
	w.idle = min(w.idle, idle)
	w.alive()
}

func (w *watch) stop() {
	w.bytes.Stop()
	w.data.Stop()
	w.cancel(nil)
}

// blame returns the reason for which the watch ended the exchange, or else err.
func (w *watch) blame(err error) error {
	if e, ok := context.Cause(w.ctx).(*llm.Error); ok {
		return e
	}
	return err
}
