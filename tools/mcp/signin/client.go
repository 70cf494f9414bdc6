package signin

import (
	"bytes"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// safeClient returns client for requests to authorization servers. It follows no redirect of a request
// that carries secrets.
func safeClient(client *http.Client) *http.Client {
	c := *client
	c.Transport = publicClients{client.Transport}
	c.CheckRedirect = func(r *http.Request, via []*http.Request) error {
		if via[0].Method != http.MethodGet {
			return http.ErrUseLastResponse
		}
		if client.CheckRedirect != nil {
			return client.CheckRedirect(r, via)
		}
		return nil
	}
	return &c
}

// publicClients has clients without a secret name themselves in the body of a token request, as OAuth
// wants it. Package oauth2 tries a header first, and a strict server has used up the code then.
type publicClients struct{ next http.RoundTripper }

// maxForm is how long the form of a token request may be, in bytes.
const maxForm = 64 << 10

// RoundTrip implements [http.RoundTripper].
func (p publicClients) RoundTrip(r *http.Request) (*http.Response, error) {
	next := p.next
	if next == nil {
		next = http.DefaultTransport
	}
	id, secret, basic := r.BasicAuth()
	isForm := strings.HasPrefix(r.Header.Get("Content-Type"), "application/x-www-form-urlencoded")
	if !basic || secret != "" || !isForm || r.Body == nil {
		return next.RoundTrip(r)
	}
	raw, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	_ = r.Body.Close()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(raw))
	if err != nil {
		return nil, err
	}
	if id, err = url.QueryUnescape(id); err != nil {
		return nil, err
	}
	form.Set("client_id", id)
	body := []byte(form.Encode())
	r = r.Clone(r.Context())
	r.Header.Del("Authorization")
	r.Body = io.NopCloser(bytes.NewReader(body))
	r.GetBody = nil
	r.ContentLength = int64(len(body))
	return next.RoundTrip(r)
}
