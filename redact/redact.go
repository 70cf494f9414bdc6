// Package redact removes secrets from texts that people read: logs, and error
// messages (R-S26).
package redact

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"parley/chat"
)

const (
	hidden    = "[secret]"
	minSecret = 6 // bytes: a shorter one would redact ordinary words
)

// A Redactor knows secrets, and the forms that they have in URLs, JSON, Go strings
// and base64. User names and passwords in addresses are always redacted. The zero
// value knows no other secrets. All methods may be called concurrently.
type Redactor struct {
	mu    sync.Mutex
	forms map[string][]string // of each secret
	swap  atomic.Pointer[strings.Replacer]
}

// Add adds secrets. Anything shorter than 6 bytes is ignored.
func (r *Redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forms == nil {
		r.forms = map[string][]string{}
	}
	for _, s := range secrets {
		if len(s) >= minSecret && r.forms[s] == nil {
			r.forms[s] = disguises(s)
		}
	}
	r.makeReplacer()
}

// Remove has secrets that are valid no more be texts like any others.
func (r *Redactor) Remove(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range secrets {
		delete(r.forms, s)
	}
	r.makeReplacer()
}

// makeReplacer makes swap of forms. r.mu is held.
func (r *Redactor) makeReplacer() {
	all := map[string]bool{}
	for _, forms := range r.forms {
		for _, f := range forms {
			all[f] = true
		}
	}
	longest := func(a, b string) int { // first: one secret may begin another
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	}
	var pairs []string
	for _, f := range slices.SortedFunc(maps.Keys(all), longest) {
		pairs = append(pairs, f, hidden)
	}
	r.swap.Store(strings.NewReplacer(pairs...))
}

// String returns s without secrets.
func (r *Redactor) String(s string) string { return chat.HideLogins(r.Known(s)) }

// Known returns s without the secrets that were added. It leaves everything else as it is.
func (r *Redactor) Known(s string) string {
	if p := r.swap.Load(); p != nil {
		return p.Replace(s)
	}
	return s
}

// Writer returns a writer that passes its input on to w without secrets. A secret
// must not be split between two writes: a slog handler writes each record in one.
func (r *Redactor) Writer(w io.Writer) io.Writer { return writer{r, w} }

type writer struct {
	redactor *Redactor
	w        io.Writer
}

func (w writer) Write(p []byte) (int, error) {
	if _, err := io.WriteString(w.w, w.redactor.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// disguises returns the forms that s may have.
func disguises(s string) []string {
	forms := []string{s}
	for range 3 { // an error that quotes an error in quotes is quoted once more by the log
		for _, f := range forms {
			forms = append(forms, url.QueryEscape(f), url.PathEscape(f), quoted(f), inJSON(f))
		}
		slices.Sort(forms)
		forms = slices.Compact(forms)
	}
	for _, enc := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		forms = append(forms, base64Of(enc, s)...)
	}
	return forms
}

func quoted(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// base64Of returns the part that the base64 encodings of all texts with s have in
// common, for each of the three positions that s can have in a group of three
// bytes. An example is the user:password of basic authentication.
func base64Of(enc *base64.Encoding, s string) (forms []string) {
	for before := range 3 {
		text := strings.Repeat("x", before) + s
		whole := len(text) * 8 / 6 // the letters that depend on nothing after s
		forms = append(forms, enc.EncodeToString([]byte(text))[(before*8+5)/6:whole])
	}
	return forms
}
