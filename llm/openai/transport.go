package openai

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/llm"
)

// A transport makes one HTTP request for go-openai. It sees what go-openai does not
// show: headers, and what vendors send between the chunks.
type transport struct {
	base     http.RoundTripper
	tools    []byte    // the end of the request, in place of its last brace; nil: it has no tools
	watchdog *watchdog // nil: the answer is not a stream
	body     *eventStream
}

// Do implements openai.HTTPDoer. It follows no redirects: the key is meant for the
// configured address only.
func (t *transport) Do(req *http.Request) (*http.Response, error) {
	if t.tools != nil {
		if err := t.addTools(req); err != nil {
			return nil, err
		}
	}
	resp, err := t.base.RoundTrip(req)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Unreachable, Err: err}
	}
	if err := checkResponse(resp); err != nil {
		return nil, err
	}
	if t.watchdog == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxAnswer)
		return resp, nil
	}
	t.body = newEventStream(resp.Body, t.watchdog)
	resp.Body = t.body
	return resp, nil
}

// addTools adds the tools to req, whose body is a JSON object that can be read again. Neither is copied: most
// requests wait long for their answers, and many at once.
func (t *transport) addTools(req *http.Request) (err error) {
	object := req.GetBody
	if object == nil || req.ContentLength <= 0 {
		return errors.New("add the tools to the request: its body is unknown")
	}
	length := req.ContentLength - int64(len("}"))
	req.GetBody = func() (io.ReadCloser, error) {
		body, err := object()
		if err != nil {
			return nil, err
		}
		return joinedBody{io.MultiReader(io.LimitReader(body, length), bytes.NewReader(t.tools)), body}, nil
	}
	req.ContentLength = length + int64(len(t.tools))
	req.Body, err = req.GetBody()
	return err
}

// A joinedBody reads several parts. It has no WriteTo: that of [io.MultiReader] makes a buffer of 32 KiB for each
// request, and one more to find out that nothing is left.
type joinedBody struct {
	io.Reader
	io.Closer
}

// checkResponse returns why resp is not an answer. It closes resp then.
func checkResponse(resp *http.Response) error {
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
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
	e, _ := parseError(body, resp.StatusCode)
	e.After = retryAfter(resp.Header, time.Now())
	return e
}

// retryAfter returns how long the provider asks to wait, in seconds or until a date.
func retryAfter(h http.Header, now time.Time) time.Duration {
	value := strings.TrimSpace(h.Get("Retry-After"))
	if delay, err := time.ParseDuration(value + "s"); err == nil {
		return max(0, delay)
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return max(0, date.Sub(now))
}
