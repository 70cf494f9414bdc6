package main

import (
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/config"
	"parley/llm"
)

// doctored runs the doctor on a config.
func doctored(t *testing.T, src string) (code int, out string) {
	t.Helper()
	dir := t.TempDir()
	if err := errors.Join(os.Chmod(dir, 0o700), os.WriteFile(filepath.Join(dir, "config.json"), []byte(src), 0o600)); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	p := &program{stdout: &b, stderr: &b, data: dir, environ: config.Environ{"HOME": dir}, drivers: drivers()}
	err := p.doctor(t.Context())
	if end, ok := errors.AsType[exit](err); ok {
		code = end.code
	}
	return code, b.String()
}

// want checks that each text is on the line of out that begins with start.
func want(t *testing.T, out, start string, texts ...string) {
	t.Helper()
	for _, part := range strings.Split("\n"+out, "\n") {
		if strings.HasPrefix(part, start) {
			for _, text := range texts {
				if !strings.Contains(part, text) {
					t.Errorf("%s: not %q", part, text)
				}
			}
			return
		}
	}
	t.Errorf("no line begins with %q:\n%s", start, out)
}

func TestDoctorOnAFreshMachine(t *testing.T) {
	code, out := doctored(t, `{"http": {"listen": "127.0.0.1:0"}}`) // another may run here
	if code != 0 {
		t.Errorf("exit code %d", code)
	}
	want(t, out, "ok    config", "config.json")
	want(t, out, "ok    data", "MiB free")
	want(t, out, "ok    workspace", "is not there yet")
	want(t, out, "ok    gateway", "does not run")
	want(t, out, "ok    store", "is not there yet")
	want(t, out, "warn  model demo", "not a real one")
}

const twoServers = `{
	"http": {"listen": "127.0.0.1:0"},
	"models": {"main": {"type": "openai", "baseUrl": "%URL%/v1", "apiKey": "sk-canary-key", "model": "m1"}, "spare": {"type": "demo"}},
	"agent": {"model": "main", "fallback": ["spare"]},
	"channels": {"telegram": {"token": "123:canary-token", "apiUrl": "%URL%", "allow": ["*"],
		"webhook": {"url": "https://example.com", "secret": "canary-canary-canary-22", "listen": "%LISTEN%"}}},
}`

// TestDoctorAsksForReal talks to loopback servers through the real clients.
func TestDoctorAsksForReal(t *testing.T) {
	refuse := false
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case refuse:
			http.Error(w, `{"ok": false, "error_code": 401, "description": "Unauthorized", "error": {"message": "wrong key"}}`, http.StatusUnauthorized)
		case strings.HasSuffix(r.URL.Path, "/getMe"):
			_, _ = w.Write([]byte(`{"ok": true, "result": {"id": 123, "is_bot": true, "first_name": "P", "username": "parleybot"}}`))
		default:
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = w.Write([]byte("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"OK\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n"))
		}
	}))
	defer srv.Close()
	busy, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer busy.Close()

	src := strings.ReplaceAll(twoServers, "%URL%", srv.URL)
	code, out := doctored(t, strings.Replace(src, "%LISTEN%", "127.0.0.1:0", 1))
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	want(t, out, "ok    model main", "m1 answered in")
	want(t, out, "warn  model spare")
	want(t, out, "ok    telegram ", "@parleybot")
	want(t, out, "ok    telegram port", "is free")
	want(t, out, "warn  config", `has "*"`)

	refuse = true
	code, out = doctored(t, strings.Replace(src, "%LISTEN%", busy.Addr().String(), 1))
	if code != exitFailure {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	want(t, out, "FAIL  model main", "m1: model refused the key")
	want(t, out, "FAIL  telegram ")
	want(t, out, "FAIL  telegram port", "address already in use")
	for _, todo := range []string{"models.main.apiKey", "channels.telegram.token", "another in the config"} {
		if !strings.Contains(out, "-> ") || !strings.Contains(out, todo) {
			t.Errorf("does not say what to do about %s:\n%s", todo, out)
		}
	}
	srv.Close()
	_, more := doctored(t, strings.Replace(src, "%LISTEN%", "127.0.0.1:0", 1))
	want(t, more, "FAIL  model main", string(llm.Unreachable))
	if strings.Contains(out+more, "canary") { // R-S26
		t.Errorf("a secret is shown:\n%s\n%s", out, more)
	}
}
