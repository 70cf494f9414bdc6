package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"time"

	"parley/llm"
)

// post asks for the answer to r, as a stream.
func (c Config) post(ctx context.Context, r request) (io.ReadCloser, error) {
	r.Stream = true
	body, err := json.Marshal(r)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(c.BaseURL, "/")+"/chat/completions", bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream")
	if c.APIKey != "" {
		req.Header.Set("Authorization", "Bearer "+c.APIKey)
	}
	resp, err := send(c.Transport, req)
	if err != nil {
		return nil, err
	}
	return resp.Body, nil
}

// send returns the answer to req if it is one. Redirects are not followed: the
// key is meant for the address that was configured.
func send(transport http.RoundTripper, req *http.Request) (*http.Response, error) {
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, &llm.Error{Kind: llm.Unreachable, Err: err}
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	if resp.StatusCode < 400 {
		return nil, &llm.Error{Kind: llm.BadRequest, Status: resp.StatusCode, Err: errors.New("baseUrl leads elsewhere: set the address it leads to")}
	}
	body, _ := io.ReadAll(io.LimitReader(resp.Body, maxComplaint))
	e, _ := complaintIn(body, resp.StatusCode)
	e.After = retryAfter(resp.Header, time.Now())
	return nil, e
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
