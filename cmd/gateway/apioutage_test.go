package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/llm/llmtest"
)

// key makes an API key for somebody.
func (w *testGateway) key(person string) string {
	w.t.Helper()
	out, code := w.run("", "key", person)
	secret, _, _ := strings.Cut(out, "\n")
	if code != 0 || !strings.HasPrefix(secret, "parley_") {
		w.t.Fatalf("key: %d %s", code, out)
	}
	return secret
}

// askAPI asks as a client of the API does. With a key it can ask for the same again.
func (w *testGateway) askAPI(base, apiKey, idempotencyKey, body string) (status int, answer string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), waitTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, base+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+apiKey)
	r.Header.Set("Content-Type", "application/json")
	if idempotencyKey != "" {
		r.Header.Set("Idempotency-Key", idempotencyKey)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		w.t.Error(err)
	}
	return resp.StatusCode, string(b)
}

// TestAPIDuringOutage: clients of the API are told that the model is out of reach
// as soon as that is known. Who asks again under the same key gets the answer
// that came when it was back.
func TestAPIDuringOutage(t *testing.T) {
	t.Parallel()
	var up atomic.Bool
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		if !up.Load() {
			return llmtest.Reply{Status: http.StatusServiceUnavailable}
		}
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	base := w.base()
	key := w.key("owner")
	const body = `{"model":"parley","messages":[{"role":"user","content":"one"}]}`
	began := time.Now()
	status, answer := w.askAPI(base, key, "k1", body)
	if status != http.StatusBadGateway || !strings.Contains(answer, "overloaded") {
		t.Errorf("during the outage: %d %s", status, answer)
	}
	if status, answer := w.askAPI(base, key, "", `{"model":"parley","stream":true,"messages":[{"role":"user","content":"two"}]}`); !strings.Contains(answer, "overloaded") {
		t.Errorf("in a stream: %d %s", status, answer)
	}
	if d := time.Since(began); d > waitTime/2 {
		t.Errorf("the clients were told after %v", d)
	}
	up.Store(true)
	if status, answer := w.askAPI(base, key, "", `{"model":"parley","messages":[{"role":"user","content":"three"}]}`); status != http.StatusOK || strings.Contains(answer, "overloaded") {
		t.Errorf("when it was back: %d %s", status, answer)
	}
	if status, answer := w.askAPI(base, key, "k1", body); status != http.StatusOK || !strings.Contains(answer, "answer to ") || strings.Contains(answer, "overloaded") {
		t.Errorf("asked again: %d %s", status, answer)
	}
}
