package main

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/chat"
	"parley/config"
	"parley/web"
)

const (
	minSecret = 6 // characters: shorter ones would blot out ordinary words
)

// A redactor takes secrets out of what people read: the log, and errors shown
// to a person (R-S26). It knows each secret also as it looks in a URL, in JSON,
// in Go quotes and in base64; the user and password of an address are secret
// always. The zero value knows no others. Its methods may be called by many
// goroutines.
type redactor struct {
	mu    sync.Mutex
	forms map[string]struct{}
	swap  atomic.Pointer[strings.Replacer]
}

// Add makes r know secrets too. What is shorter than 6 characters is no secret.
func (r *redactor) Add(secrets ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forms == nil {
		r.forms = map[string]struct{}{}
	}
	for _, s := range secrets {
		if len(s) >= minSecret {
			disguises(s, r.forms)
		}
	}
	longest := func(a, b string) int { // first: one secret may begin another
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	}
	var pairs []string
	for _, f := range slices.SortedFunc(maps.Keys(r.forms), longest) {
		pairs = append(pairs, f, config.Hidden)
	}
	r.swap.Store(strings.NewReplacer(pairs...))
}

// String returns s without secrets.
func (r *redactor) String(s string) string {
	if p := r.swap.Load(); p != nil {
		s = p.Replace(s)
	}
	return chat.HideLogins(s)
}

// Writer returns a writer that passes on to w what it is given, without
// secrets. A secret must not be spread over two writes: a slog handler writes
// each record at once.
func (r *redactor) Writer(w io.Writer) io.Writer { return redacting{r, w} }

type redacting struct {
	*redactor
	w io.Writer
}

func (r redacting) Write(p []byte) (int, error) {
	if _, err := io.WriteString(r.w, r.String(string(p))); err != nil {
		return 0, err
	}
	return len(p), nil
}

// disguises adds the forms of s to all.
func disguises(s string, all map[string]struct{}) {
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
	for _, f := range forms {
		all[f] = struct{}{}
	}
}

func quoted(s string) string {
	q := strconv.Quote(s)
	return q[1 : len(q)-1]
}

func inJSON(s string) string {
	b, _ := json.Marshal(s)
	return string(b[1 : len(b)-1])
}

// base64Of returns what is the same in the base64 of every text that holds s,
// for each of the three places where s can begin in a group of three bytes, as
// in the user:password of basic authentication.
func base64Of(enc *base64.Encoding, s string) (forms []string) {
	for before := range 3 {
		text := strings.Repeat("x", before) + s
		whole := len(text) * 8 / 6 // the letters that depend on nothing after s
		forms = append(forms, enc.EncodeToString([]byte(text))[(before*8+5)/6:whole])
	}
	return forms
}

// newLog returns a log that writes to w, without secrets, and remembers in last
// what went wrong.
func newLog(w io.Writer, level slog.Leveler, r *redactor, last *recent) *slog.Logger {
	return slog.New(slog.NewMultiHandler(
		slog.NewTextHandler(r.Writer(w), &slog.HandlerOptions{Level: level}),
		slog.NewTextHandler(r.Writer(last), recentOptions()),
	))
}

// mostRecent is how many lines of the log the owner's page shows.
const mostRecent = 100

// recent keeps the latest warnings and errors, as a log without secrets wrote them.
type recent struct {
	mu    sync.Mutex
	lines []web.LogLine // oldest first
}

// Write takes one line of the log.
func (r *recent) Write(p []byte) (int, error) {
	line := web.LogLine{Time: time.Now(), Level: slog.LevelWarn.String(), Text: string(bytes.TrimSpace(p))}
	if bytes.HasPrefix(p, []byte("level=ERROR")) {
		line.Level = slog.LevelError.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lines = append(r.lines, line)
	r.lines = r.lines[max(0, len(r.lines)-mostRecent):]
	return len(p), nil
}

// Lines returns them, newest first.
func (r *recent) Lines() []web.LogLine {
	r.mu.Lock()
	defer r.mu.Unlock()
	lines := slices.Clone(r.lines)
	slices.Reverse(lines)
	return lines
}

// options of a log whose lines recent takes.
func recentOptions() *slog.HandlerOptions {
	return &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}
}
