package main

import (
	"bytes"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	want(t, out, "warn  model demo", "no real one")
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

func TestDoctorOfDisksAndProcesses(t *testing.T) {
	dir := t.TempDir()
	c, err := parseText(`{"dataDir": "` + dir + `"}`)
	if err != nil {
		t.Fatal(err)
	}
	sick := errors.New("it is cut off")
	probe := func(context.Context, string) ([]string, error) { return nil, sick }
	spotted := func(context.Context, string) ([]string, error) { return []string{"a log"}, nil }
	if err := os.WriteFile(filepath.Join(dir, "parley.db"), []byte("a store"), 0o600); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := errors.Join(os.WriteFile(file, nil, 0o600), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	mem, empty, gone := *c, *c, *c
	mem.Store.Type = "mem"
	empty.DataDir, gone.DataDir = t.TempDir(), t.TempDir()
	for _, f := range []string{filepath.Join(empty.DataDir, "parley.db"), filepath.Join(gone.DataDir, "parley.db.mark")} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	usual, err := parseText(`{}`)
	if err != nil {
		t.Fatal(err)
	}
	if l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", config.DefaultListen); err == nil { // else another program has it
		defer l.Close()
	}
	for _, tt := range []struct {
		got   finding
		state state
		text  string
	}{
		{lookAtStore(t.Context(), c, 0, probe), bad, "cut off"},
		{lookAtStore(t.Context(), c, 0, spotted), bad, "damaged values in"},
		{lookAtStore(t.Context(), c, 7, probe), odd, "in use by the gateway"},
		{lookAtStore(t.Context(), &mem, 0, probe), odd, "forgotten"},
		{lookAtStore(t.Context(), &empty, 0, probe), bad, "is empty"},
		{lookAtStore(t.Context(), &gone, 0, probe), bad, "is missing"},
		{lookAtHolder(t.Context(), c, 7), fine, "process id 7"},
		{lookAtFolder(dir, ""), odd, "is open to others"},
		{lookAtFolder(t.TempDir(), ""), odd, "is open to others"},
		{lookAtFolder(file, ""), bad, "no folder"},
		{lookAtPort(t.Context(), "127.0.0.1:1", 7), fine, "left to the gateway"},
		{lookAtWebPort(t.Context(), usual, 0), odd, "127.0.0.1:18790 is in use by another program, so the web page gets another port"},
	} {
		if tt.got.state != tt.state || !strings.Contains(tt.got.text, tt.text) || (tt.state == fine) != (tt.got.todo == "") {
			t.Errorf("%+v, want %s %s", tt.got, tt.state, tt.text)
		}
	}
}

// TestAdvice: there is something to do about every way a model can fail.
func TestAdvice(t *testing.T) {
	kinds := []llm.Kind{llm.Auth, llm.Quota, llm.BadRequest, llm.TooLong, llm.RateLimited, llm.Overloaded, llm.Cut, llm.TimedOut, llm.Unreachable}
	for _, k := range kinds {
		m := llm.ModelFunc(func(context.Context, llm.Request, func(llm.Delta)) (llm.Message, error) {
			return llm.Message{}, &llm.Error{Kind: k, Err: errors.New("because")}
		})
		f := lookAtModel(t.Context(), "x", &config.Model{Type: "openai", Model: "m"}, m)
		if f.state != bad || f.todo == "" || !strings.Contains(f.text, string(k)) || !strings.Contains(f.text, "because") {
			t.Errorf("%s: %+v", k, f)
		}
	}
}

// TestDoctorIsPatientForTenSeconds: whatever hangs, all examinations end together.
func TestDoctorIsPatientForTenSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hang := examination{"hangs", func(ctx context.Context) finding {
			<-ctx.Done()
			return finding{bad, ctx.Err().Error(), "wait"}
		}}
		start := time.Now()
		for _, f := range lookAll(t.Context(), slices.Repeat([]examination{hang}, 20)) {
			if found := <-f; found.state != bad {
				t.Error(found)
			}
		}
		if d := time.Since(start); d != 10*time.Second {
			t.Errorf("it took %s", d)
		}
	})
}
