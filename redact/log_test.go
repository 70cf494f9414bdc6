package redact_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/config"
	"parley/redact"
)

// awkward secrets change their looks when they are quoted or put in a URL.
var awkward = []string{"123456:AAH-canary_x", `pa"ss\wo/rd+1`, "zwei wörter", "tab\tand\nline", "<a&b>=%41", "sixsix"}

type stringer struct{ s string }

func (s stringer) String() string { return "I hold " + s.s }

type valuer struct{ s string }

func (v valuer) LogValue() slog.Value { return slog.GroupValue(slog.String("deep", v.s)) }

// TestNoSecretIsLogged pushes secrets through every shape that slog takes (R-S26).
func TestNoSecretIsLogged(t *testing.T) {
	for _, s := range awkward {
		var r redact.Redactor
		r.Add("another-secret", s)
		var out bytes.Buffer
		log := redact.NewLog(&out, slog.LevelDebug, &r, new(redact.Recent))
		urlErr := get(t, "http://127.0.0.1:1/bot"+url.PathEscape(s)+"/getMe?k="+url.QueryEscape(s))
		js, err := json.Marshal(map[string]string{"k": s})
		if err != nil || urlErr == nil {
			t.Fatal(err, urlErr)
		}
		shapes := []any{
			s, "x" + s + "y", []byte(s), errors.New(s), fmt.Errorf("a: %w", fmt.Errorf("b %q", s)), urlErr,
			stringer{s}, &stringer{s}, valuer{s}, struct{ A, b string }{s, s}, []string{s}, map[string]any{"k": []any{s}},
			json.RawMessage(js), string(js), fmt.Sprintf("%q", s), fmt.Sprintf("%q", fmt.Sprintf("%q", s)),
			slog.GroupValue(slog.String("a", s), slog.Group("b", "c", s)), config.Secret(s), url.Values{"k": {s}}.Encode(),
			"Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+s)), base64.RawURLEncoding.EncodeToString([]byte(s + "tail")),
		}
		for _, v := range shapes {
			log.Info("shape", "value", v)
			log.With("value", v).WithGroup("g").Info("shape", slog.Group("h", "value", v))
			log.Info(fmt.Sprint("text ", v))
		}
		log.Info("as a key", s, 1)
		log.WithGroup(s).Info("as a group", "k", 1)
		for line := range strings.Lines(out.String()) {
			if shows(line, s) {
				t.Errorf("%q is shown: %s", s, line)
			}
		}
		if n := strings.Count(out.String(), config.Hidden); n < 3*len(shapes) {
			t.Errorf("%q: %d of at least %d places hidden", s, n, 3*len(shapes))
		}
	}
}

// shows says whether line, or what it stands for once it is no longer quoted
// or encoded, holds s.
func shows(line, s string) bool {
	open := func(l string) []string {
		q, _ := url.QueryUnescape(l)
		u := strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\n`, "\n", `\t`, "\t", `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(l)
		return []string{l, q, u}
	}
	all := open(line)
	for _, l := range slices.Clone(all) {
		for _, m := range open(l) {
			all = append(all, open(m)...)
		}
	}
	for word := range strings.FieldsFuncSeq(line, func(r rune) bool { return strings.ContainsRune(" \"=\n", r) }) {
		for n := range len(word) + 1 { // base64 may be cut anywhere
			for _, e := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
				if b, err := e.DecodeString(word[:n]); err == nil {
					all = append(all, string(b))
				}
			}
		}
	}
	return slices.ContainsFunc(all, func(l string) bool { return strings.Contains(l, s) })
}

// get returns the error of a request, which shows its URL.
func get(t *testing.T, url string) error {
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err == nil {
		resp.Body.Close()
	}
	return err
}

// R-S26: the user and password of an address are secrets that no config names.
func TestLogHidesLogins(t *testing.T) {
	var r redact.Redactor
	var out bytes.Buffer
	last := new(redact.Recent)
	redact.NewLog(&out, slog.LevelInfo, &r, last).Warn("no page", "err", errors.New(`Get "https://user:hunter2@example.com/": no such host`), "at", "https://hunter2@example.com")
	for _, text := range []string{out.String(), last.Lines()[0].Text} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "user") || !strings.Contains(text, "https://…@example.com/") {
			t.Error(text)
		}
	}
}

// TestAddWhileLogging: a reload adds secrets while others log.
func TestAddWhileLogging(t *testing.T) {
	var r redact.Redactor
	var out bytes.Buffer
	log := redact.NewLog(&out, slog.LevelInfo, &r, new(redact.Recent))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s := fmt.Sprintf("canary-%d", i)
			r.Add(s)
			log.Info("now", "k", s)
		})
	}
	all.Wait()
	if strings.Contains(out.String(), "canary") {
		t.Error(out.String())
	}
}

// What is no secret any more is a text like any other, unless another secret has it in it. Known hides what was
// added, and leaves logins in addresses as they are.
func TestRemove(t *testing.T) {
	var r redact.Redactor
	r.Add("token-one", "token-two")
	r.Remove("token-one")
	const text = "token-one token-two https://user:pass@example.com"
	if got := r.Known(text); got != "token-one "+config.Hidden+" https://user:pass@example.com" {
		t.Error(got)
	}
	if got := r.String(text); strings.Contains(got, "token-two") || strings.Contains(got, "pass") {
		t.Error(got)
	}
}

// Who watched an earlier process is shown the lines of this one from the first.
func TestAfterOfAnEarlierProcess(t *testing.T) {
	var r redact.Recent
	log := redact.NewLog(io.Discard, &slog.LevelVar{}, &redact.Redactor{}, &r)
	log.Info("one")
	log.Info("two")
	all, _ := r.After(0)
	for n, want := range map[uint64]int{0: 2, all[0].N: 1, all[1].N: 0, all[1].N + 5000: 2} {
		if got, _ := r.After(n); len(got) != want {
			t.Errorf("after %d there are %d lines, want %d", n, len(got), want)
		}
	}
}
