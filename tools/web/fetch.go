package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html/charset"

	"parley/lazyregexp"
)

const (
	patience  = 30 * time.Second // for one page
	maxBody   = 10 << 20         // bytes of a page after decompression
	maxText   = 50_000           // characters of a page (D-081)
	demoText  = 20_000           // characters of a page in a demonstration (E-017)
	userAgent = "Mozilla/5.0 (compatible; Parley/1.0)"
)

// A fetcher reads pages.
type fetcher struct {
	client   *http.Client
	patience time.Duration
	maxBody  int64
	most     int // characters of a page, whatever the model asks for
}

func newFetcher(c Config) *fetcher {
	f := &fetcher{
		client:   Client(c),
		patience: cmp.Or(c.patience, patience),
		maxBody:  cmp.Or(c.maxBody, maxBody),
		most:     math.MaxInt,
	}
	if c.Demo {
		f.most = demoText
	}
	return f
}

// A page is the document at a URL.
type page struct {
	at     *url.URL
	status int
	media  string // media type without parameters, such as text/html
	text   string // in UTF-8
	cut    bool   // parse has only seen the beginning
}

func (p *page) html() bool { return p.media == "text/html" || p.media == "application/xhtml+xml" }

// readable matches the media types of pages that are text, or may be.
var readable = lazyregexp.New(
	`^$|^text/|^application/(octet-stream|(x-)?(json|javascript|xml|yaml|toml)|.+\+(json|xml))$`,
)

// get reads the page at raw. An error is for the model to read.
func (f *fetcher) get(ctx context.Context, raw string) (*page, error) {
	ctx, cancel := context.WithTimeout(ctx, f.patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSpace(raw), nil)
	if err != nil {
		return nil, errors.New("this is not a URL")
	}
	req.Header.Set("User-Agent", userAgent)
	req.Header.Set("Accept", "text/html,application/xhtml+xml,application/json;q=0.9,text/*;q=0.8,*/*;q=0.1")
	resp, err := f.client.Do(req)
	if err != nil {
		return nil, f.explain(err)
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch enc := resp.Header.Get("Content-Encoding"); {
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return nil, fmt.Errorf("HTTP %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case enc != "" && enc != "identity":
		return nil, errors.New("the page is compressed in a way that was not asked for")
	case !readable.MatchString(media):
		return nil, unreadable(media)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, f.maxBody+1))
	switch {
	case err != nil:
		return nil, f.explain(err)
	case int64(len(body)) > f.maxBody:
		return nil, fmt.Errorf("the page is larger than %d MB", f.maxBody>>20)
	}
	p := &page{at: resp.Request.URL, status: resp.StatusCode, media: media}
	return p, p.decode(body, resp.Header.Get("Content-Type"))
}

func unreadable(media string) error {
	return fmt.Errorf("cannot read %s: only HTML, JSON and plain text can be read", media)
}

// decode converts body to text, whatever its encoding.
func (p *page) decode(body []byte, contentType string) error {
	sniffed, _, _ := mime.ParseMediaType(http.DetectContentType(body))
	if p.media == "" || p.media == "application/octet-stream" {
		p.media = sniffed
	}
	p.text = toUTF8(body, contentType)
	if strings.IndexByte(p.text[:min(len(p.text), 1024)], 0) >= 0 || sniffed == "application/pdf" ||
		!readable.MatchString(p.media) {
		return unreadable(sniffed)
	}
	return nil
}

// toUTF8 converts body to UTF-8. It trusts the bytes more than the declared
// encoding.
func toUTF8(body []byte, contentType string) string {
	if !utf8.Valid(body) || utf8.RuneCount(body) == len(body) {
		enc, name, _ := charset.DetermineEncoding(body, contentType)
		if name == "utf-8" { // the declared encoding is wrong, or was only assumed
			enc, _, _ = charset.DetermineEncoding(body, "")
		}
		body, _ = enc.NewDecoder().Bytes(body) // invalid bytes become U+FFFD
	}
	return strings.ToValidUTF8(strings.TrimPrefix(string(body), "\ufeff"), "\ufffd")
}

// explain says in a few words why a page could not be read.
func (f *fetcher) explain(err error) error {
	var no refusal
	var dns *net.DNSError
	var whole *url.Error
	switch {
	case errors.As(err, &no):
		return no
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("no answer within %v", f.patience)
	case errors.As(err, &dns):
		return fmt.Errorf("cannot find the host %s", dns.Name)
	case errors.As(err, &whole):
		return whole.Err
	}
	return err
}
