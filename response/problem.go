package response

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	g "maragu.dev/gomponents"
	h "maragu.dev/gomponents/html"
)

// A Problem is an error that the client can do something about.
type Problem struct {
	Status     int
	Text       string        // for people, in one sentence
	RetryAfter time.Duration // 0 if trying again does not help
	Code       string        // for programs, such as "invalid_api_key"; "" for none
	Param      string        // the field of the request that is wrong; "" for none
}

func (p Problem) Error() string { return p.Text }

// BadRequest returns the problem of a request that is wrong.
func BadRequest(text string) error { return Problem{Status: http.StatusBadRequest, Text: text} }

// Write answers r with p: browsers get a page, programs get JSON.
func (p Problem) Write(w http.ResponseWriter, r *http.Request) {
	if !WantsPage(r) {
		p.WriteJSON(w)
		return
	}
	p.setRetryAfter(w)
	_ = Page(w, p.Status, p.page()) // what is rendered in memory does not fail
}

// WriteJSON answers with p as JSON.
func (p Problem) WriteJSON(w http.ResponseWriter) {
	p.setRetryAfter(w)
	JSON(w, p.Status, p.Body())
}

func (p Problem) setRetryAfter(w http.ResponseWriter) {
	if p.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	}
}

// WantsPage reports whether r was made by somebody who looks at a browser, and not
// by a script or another program.
func WantsPage(r *http.Request) bool {
	return r.Method == http.MethodGet && strings.Contains(r.Header.Get("Accept"), "text/html")
}

// Body returns p in OpenAI's format, which all programs get.
func (p Problem) Body() any {
	return map[string]any{"error": map[string]any{
		"message": p.Text,
		"type":    p.kind(),
		"param":   nullable(p.Param),
		"code":    nullable(p.Code),
	}}
}

func nullable(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (p Problem) kind() string {
	switch {
	case p.Status == http.StatusTooManyRequests:
		return "rate_limit_error"
	case p.Status >= http.StatusInternalServerError:
		return "server_error"
	}
	return "invalid_request_error"
}

func (p Problem) page() g.Node {
	title := http.StatusText(p.Status)
	return Document(title, nil,
		h.Main(h.ID("main"), h.Class("small"),
			h.H1(g.Text(title)),
			h.P(g.Text(sentence(p.Text))),
			h.P(h.A(h.Href("/"), g.Text("To the start page"))),
		),
	)
}

// sentence returns text with a capital letter and a full stop.
func sentence(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	if size == 0 {
		return text
	}
	text = string(unicode.ToUpper(first)) + text[size:]
	return strings.TrimSuffix(text, ".") + "."
}
