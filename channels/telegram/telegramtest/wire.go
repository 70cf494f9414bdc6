package telegramtest

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
)

// A memoryTransport takes requests to a Server without a network.
type memoryTransport struct{ s *Server }

var errBroken = errors.New("connection reset by peer")

// RoundTrip implements http.RoundTripper.
func (w memoryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if w.s.closed.Err() != nil {
		return nil, errors.New("connection refused")
	}
	rec := httptest.NewRecorder()
	done := make(chan error, 1)
	r = r.Clone(r.Context())
	if r.Body == nil {
		r.Body = http.NoBody
	}
	go func() {
		defer func() {
			switch p := recover(); p {
			case nil:
				done <- nil
			case http.ErrAbortHandler:
				done <- errBroken
			default:
				done <- fmt.Errorf("panic: %v", p)
			}
			_, _ = io.Copy(io.Discard, r.Body)
			r.Body.Close()
		}()
		w.s.ServeHTTP(rec, r)
	}()
	select {
	case err := <-done:
		if err != nil {
			return nil, err
		}
		return rec.Result(), nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}
