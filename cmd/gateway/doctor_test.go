package main

import (
	"bytes"
	"context"
	"encoding/binary"
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
	"parley/llm/llmtest"
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

// The doctor has the configured model transcribe a valid recording, and says what to do if it does not. A key that the
// provider repeats is not shown (R-S26).
func TestDoctorTriesTranscription(t *testing.T) {
	srv := llmtest.NewServer(nil)
	defer srv.Close()
	srv.Key = "sk-canary-voice"
	srv.Hear = func(_ context.Context, s llmtest.Speech) llmtest.Reply {
		if s.Model == "gone-1" {
			return llmtest.Reply{Status: 404, Body: `{"error": {"message": "no such model gone-1 for sk-canary-voice", "code": "model_not_found"}}`}
		}
		return llmtest.Reply{}
	}
	try := func(key, model string) (code int, out string) {
		return doctored(t, `{"http": {"listen": "127.0.0.1:0"}, "transcription": {"baseUrl": "`+srv.URL()+`", "apiKey": "`+key+`", "model": "`+model+`"}}`)
	}
	code, out := try("sk-canary-voice", "whisper-1")
	if code != 0 {
		t.Errorf("exit code %d:\n%s", code, out)
	}
	want(t, out, "ok    transcription ", "whisper-1 listened for")
	speeches := srv.Speeches()
	if len(speeches) != 1 || speeches[0].Refused != "" || speeches[0].Name != "voice.wav" {
		t.Fatalf("sent %+.300v", speeches)
	}
	riff := speeches[0].Audio
	if size := binary.LittleEndian.Uint32(riff[40:]); int(size) != len(riff)-44 || int(binary.LittleEndian.Uint32(riff[4:])) != len(riff)-8 || string(riff[36:40]) != "data" {
		t.Errorf("no WAV file of %d bytes: % x", len(riff), riff[:44])
	}

	code, wrongKey := try("sk-canary-other", "whisper-1")
	want(t, wrongKey, "FAIL  transcription ", "whisper-1: ", "key")
	want(t, wrongKey, strings.Repeat(" ", 24)+"-> put a valid key in transcription.apiKey")
	if code != exitFailure {
		t.Errorf("exit code %d", code)
	}
	_, wrongModel := try("sk-canary-voice", "gone-1")
	want(t, wrongModel, "FAIL  transcription ", "gone-1: ")
	want(t, wrongModel, strings.Repeat(" ", 24)+"-> check transcription.model")
	srv.Close()
	_, away := try("sk-canary-voice", "whisper-1")
	want(t, away, "FAIL  transcription ", string(llm.Unreachable))
	if strings.Contains(out+wrongKey+wrongModel+away, "canary") {
		t.Errorf("a secret is shown:\n%s\n%s\n%s", wrongKey, wrongModel, away)
	}
	_, without := doctored(t, `{"http": {"listen": "127.0.0.1:0"}}`)
	if strings.Contains(without, "transcription") {
		t.Errorf("without a model for it there is a line:\n%s", without)
	}
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
