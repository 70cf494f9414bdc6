package openai

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/llm"
)

// An exchange is one HTTP request and its answer. It is what go-openai sends
// through, and sees what go-openai does not show: headers, and what vendors
// put between the lines.
type exchange struct {
	transport http.RoundTripper
	watch     *watch // nil: the answer is no stream
	body      *events
}

// Do implements openai.HTTPDoer. Redirects are not followed: the key is meant
// for the address that was configured.
func (x *exchange) Do(req *http.Request) (*http.Response, error) {
	resp, err := x.transport.RoundTrip(req)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Unreachable, Err: err}
	}
	if err := refused(resp); err != nil {
		return nil, err
	}
	if x.watch == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
		return resp, nil
	}
	x.body = newEvents(resp.Body, x.watch)
	resp.Body = x.body
	return resp, nil
}

// refused returns why resp is no answer, and closes it then.
func refused(resp *http.Response) error {
	if resp.StatusCode < 300 {
		return nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		return &llm.Error{
			Kind:   llm.BadRequest,
			Status: resp.StatusCode,
			Err:    errors.New("baseUrl leads elsewhere: set the address it leads to"),
		}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))
	e, _ := complaintIn(body, resp.StatusCode)
	e.After = retryAfter(resp.Header, time.Now())
	return e
}

// retryAfter is how long the provider asks to wait, in seconds or until a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	v := strings.TrimSpace(h.Get("Retry-After"))
	d, err := time.ParseDuration(v + "s")
	if err != nil {
		t, err := http.ParseTime(v)
		if err != nil {
			return 0
		}
		d = t.Sub(now)
	}
	return max(0, d)
}

const (
	afterFinish = 2 * time.Second       // for the token count, once the answer is whole
	afterDone   = 20 * time.Millisecond // for the end of the body, so that the connection can be used again
)

// A watch ends an exchange in which nothing happens. The first byte of an
// answer may take as long as the first piece of it: a model without a graphics
// card reads for minutes before it says anything.
type watch struct {
	ctx    context.Context
	cancel context.CancelCauseFunc
	idle   time.Duration
	due    time.Time // when the next piece of the answer must have come
	timer  *time.Timer
}

func newWatch(ctx context.Context) *watch {
	w := &watch{idle: maxIdle}
	w.ctx, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(maxSilent, func() {
		w.cancel(&llm.Error{Kind: llm.TimedOut, Err: errors.New("the provider fell silent")})
	})
	w.answered()
	return w
}

// alive tells that something came, a comment maybe.
func (w *watch) alive() { w.timer.Reset(min(w.idle, time.Until(w.due))) }

// answered tells that a piece of the answer came.
func (w *watch) answered() { w.due = time.Now().Add(maxSilent) }

// hurry leaves less time from now on.
func (w *watch) hurry(idle time.Duration) {
	w.idle = min(w.idle, idle)
	w.alive()
}

func (w *watch) stop() {
	w.timer.Stop()
	w.cancel(nil)
}

// blame returns the reason for which the watch ended the exchange, or else err.
func (w *watch) blame(err error) error {
	if e, ok := errors.AsType[*llm.Error](context.Cause(w.ctx)); ok {
		return e
	}
	return err
}
