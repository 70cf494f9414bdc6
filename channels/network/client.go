package network

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"parley/channels"
	"parley/store"
)

const idleConnsPerHost = 64

// NewClient returns an HTTP client that speaks HTTP/1.1 and follows no redirect.
// With HTTP/1.1, abandoning a request closes its connection; a dead HTTP/2
// connection would be used again (P24). It makes no request while usable, which may
// be nil, returns an error.
func NewClient(usable func() error) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.Protocols = new(http.Protocols)
	t.Protocols.SetHTTP1(true)
	t.TLSClientConfig = &tls.Config{} // the clone's own offers HTTP/2
	t.ForceAttemptHTTP2 = false
	t.MaxIdleConnsPerHost = idleConnsPerHost
	return &http.Client{
		Transport:     guarded{usable: usable, next: t},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// NewClient returns a client for the network. It makes no request once another gateway
// may have taken the store over, and speaks to the network for it.
func (h Host) NewClient() *http.Client {
	return NewClient(func() error { return store.Usable(h.Store) })
}

// A guarded transport makes requests unless usable returns an error.
type guarded struct {
	usable func() error // may be nil
	next   *http.Transport
}

// RoundTrip implements http.RoundTripper.
func (g guarded) RoundTrip(r *http.Request) (*http.Response, error) {
	if g.usable != nil {
		if err := g.usable(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close() // as a RoundTripper must; there is nothing to do about an error
			}
			return nil, err
		}
	}
	return g.next.RoundTrip(r)
}

// CloseIdleConnections is called by [http.Client].
func (g guarded) CloseIdleConnections() { g.next.CloseIdleConnections() }

// Bare returns err without the address that a client was to call, which may
// hold a secret (R-S26).
func Bare(err error) error {
	if ue, ok := errors.AsType[*url.Error](err); ok {
		return ue.Err
	}
	return err
}

const maxErrorBytes = 500 // of an error's text, which may quote an answer

// Plainly returns an error with the text of err, shortened and without secret
// (R-S26). It unwraps to nothing, unless err comes from the end of a context.
func Plainly(err error, secret string) error {
	for _, end := range []error{context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, end) {
			return end
		}
	}
	text := err.Error()
	if secret != "" {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return errors.New(strings.ToValidUTF8(text[:min(len(text), maxErrorBytes)], ""))
}

// Download returns the body of the resource at link. Its errors do not contain
// the link.
func Download(ctx context.Context, c *http.Client, link string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, link, nil)
	if err != nil {
		return nil, fmt.Errorf("download: %w", Bare(err))
	}
	resp, err := c.Do(req)
	if err != nil {
		return nil, fmt.Errorf("download: %w", Bare(err))
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		gone := []int{http.StatusForbidden, http.StatusNotFound, http.StatusGone}
		return nil, &channels.Error{
			Permanent: slices.Contains(gone, resp.StatusCode),
			Err:       fmt.Errorf("download: the server answered %d", resp.StatusCode),
		}
	}
	return resp.Body, nil
}
