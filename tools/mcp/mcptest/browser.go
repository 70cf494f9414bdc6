package mcptest

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"testing"
)

// A Browser is a person's browser.
type Browser struct {
	*http.Client
	t testing.TB
}

// NewBrowser returns a browser without cookies, which trusts what client does if that is not nil.
func NewBrowser(t testing.TB, client *http.Client) Browser {
	t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	c := &http.Client{Jar: jar}
	if client != nil {
		c.Transport = client.Transport
	}
	return Browser{c, t}
}

// Open returns the page at address, and where redirects led to.
func (b Browser) Open(address string) (status int, page, at string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(b.t.Context(), http.MethodGet, address, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	r.Header.Set("Accept", "text/html")
	resp, err := b.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(raw), resp.Request.URL.String()
}

var onward = regexp.MustCompile(`href="(/oauth/go/[^"]+)"`)

// Digits matches the digits of the last page.
var Digits = regexp.MustCompile(`[0-9]{3} [0-9]{3}`)

// SignIn opens the link and goes on to the end; it returns the digits of the last page.
func (b Browser) SignIn(link string) string {
	b.t.Helper()
	_, page, _ := b.Open(link)
	m := onward.FindStringSubmatch(page)
	if m == nil {
		b.t.Fatalf("the page at %s has no link:\n%s", link, page)
	}
	u, _ := url.Parse(link)
	_, page, at := b.Open(u.Scheme + "://" + u.Host + m[1])
	code := Digits.FindString(page)
	if code == "" {
		b.t.Logf("no digits at %s:\n%s", at, page)
	}
	return code
}
