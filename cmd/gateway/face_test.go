package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sashabaranov/go-openai"

	"parley/llm"
	"parley/llm/llmtest"
)

const adminToken = "canary-admin-0123456789abcdef"

// A visitor is a browser without a screen at the web face of a testGateway.
type visitor struct {
	t    testing.TB
	base string
	http.Client
}

var (
	startLink = regexp.MustCompile(`(http://127\.0\.0\.1:[0-9]+)/signin#(\S+)`)
	startLine = regexp.MustCompile(`(?m)^web +(http://127\.0\.0\.1:[0-9]+) `)
)

// face returns where the web face is, and the code of a new sign-in link.
func (w *testGateway) face() (base, code string) {
	w.t.Helper()
	w.base()
	out, _ := w.run("", "link")
	link := startLink.FindStringSubmatch(out)
	if link == nil {
		w.t.Fatalf("link: %s", out)
	}
	return link[1], link[2]
}

// base waits until the web face is open and returns where it is.
func (w *testGateway) base() string {
	w.t.Helper()
	w.logs("web       http", w.starts)
	all := startLine.FindAllStringSubmatch(w.log.String(), -1)
	return all[len(all)-1][1]
}

// visit signs the owner in with the start link.
func (w *testGateway) visit() *visitor {
	w.t.Helper()
	return w.signIn(w.face())
}

// invite lets a person in, and returns them signed in.
func (w *testGateway) invite(name string) *visitor {
	w.t.Helper()
	out, _ := w.run("", "link", name)
	link := startLink.FindStringSubmatch(out)
	if link == nil {
		w.t.Fatalf("link: %s", out)
	}
	return w.signIn(link[1], link[2])
}

func (w *testGateway) signIn(base, code string) *visitor {
	w.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		w.t.Fatal(err)
	}
	v := &visitor{t: w.t, base: base, Client: http.Client{Jar: jar, Timeout: waitTime, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
	if status, body := v.do("POST", "/signin", map[string]string{"code": code}); status >= 300 {
		w.t.Fatalf("sign in: %d %s", status, body)
	}
	return v
}

// do sends say as JSON, as the page does, and returns what came back.
func (v *visitor) do(method, path string, say any) (status int, body string) {
	v.t.Helper()
	var b bytes.Buffer
	if say != nil {
		if err := json.NewEncoder(&b).Encode(say); err != nil {
			v.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(v.t.Context(), method, v.base+path, &b)
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("X-Parley", "1")
	req.Header.Set("Origin", v.base)
	resp, err := v.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(text)
}

// upload sends a file as the page does.
func (v *visitor) upload(name, content string) (status int, body string) {
	v.t.Helper()
	req, err := http.NewRequestWithContext(v.t.Context(), "PUT", v.base+"/files?name="+url.QueryEscape(name), strings.NewReader(content))
	if err != nil {
		v.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/octet-stream")
	req.Header.Set("X-Parley", "1")
	resp, err := v.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		v.t.Fatal(err)
	}
	return resp.StatusCode, string(text)
}

// say says text in the conversation under an id of its own, until it is taken.
func (v *visitor) say(conversation, id, text string) {
	v.t.Helper()
	for late := time.Now().Add(waitTime); ; {
		status, body := v.do("POST", "/c/"+conversation+"/messages", map[string]any{"id": id, "text": text})
		if status == http.StatusAccepted {
			return
		}
		if time.Now().After(late) {
			v.t.Fatalf("say %q: %d %s", text, status, body)
		}
	}
}

// A line is a message of a conversation in the browser.
type line struct {
	Seq      uint64
	Who, ID  string
	Text     string
	Edits    uint64
	Finished bool
	Ask      *struct {
		ID      string
		Choices []string
	}
	Files []struct{ Name, URL string }
}

// reads returns what the conversation shows once ok is true of it.
func (v *visitor) reads(conversation, what string, ok func(lines []line) bool) (lines []line) {
	v.t.Helper()
	ctx, cancel := context.WithTimeout(v.t.Context(), waitTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, "GET", v.base+"/c/"+conversation+"/events?after=0", nil)
	if err != nil {
		v.t.Fatal(err)
	}
	resp, err := v.Do(req)
	if err != nil {
		v.t.Fatal(err)
	}
	defer resp.Body.Close()
	var event string
	for in := bufio.NewScanner(resp.Body); in.Scan(); {
		if name, found := strings.CutPrefix(in.Text(), "event: "); found {
			event = name
		}
		data, found := strings.CutPrefix(in.Text(), "data: ")
		if !found || event != "message" {
			continue
		}
		var l line
		if err := json.Unmarshal([]byte(data), &l); err != nil {
			v.t.Fatal(err)
		}
		if lines = append(lines, l); ok(lines) {
			return lines
		}
	}
	v.t.Fatalf("waiting for %s: %d, %+v", what, resp.StatusCode, lines)
	return nil
}

func (v *visitor) conversation() string {
	v.t.Helper()
	status, body := v.do("POST", "/c", map[string]any{})
	var made struct{ ID string }
	if err := json.Unmarshal([]byte(body), &made); status != http.StatusCreated || err != nil {
		v.t.Fatalf("new conversation: %d %s", status, body)
	}
	return made.ID
}

// TestWebFace: the whole way of a person on the web page, and of strangers, who
// see nothing (R-S2, R-S3).
func TestWebFace(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if strings.HasPrefix(spokenLast(r), "list") && !used(r) {
			return llmtest.Reply{Calls: []llm.ToolCall{{ID: "c1", Name: "list_dir", Args: `{"path": "."}`}}}
		}
		return echo(ctx, r)
	})
	w.more = map[string]any{"http": map[string]any{"listen": "127.0.0.1:0", "adminToken": adminToken}}
	w.start()
	base := w.base()
	stranger := &visitor{t: t, base: base}
	for path, want := range map[string]int{
		"/healthz": 200, "/readyz": 200, "/signin": 200,
		"/": 401, "/c/1": 401, "/owner": 401, "/metrics": 401, "/api/status": 401, "/api/backup": 401, "/v1/models": 401, "/files/1/a": 401, "/nothing": 401,
	} {
		if status, body := stranger.do("GET", path, nil); status != want || strings.Contains(body, "channels") {
			t.Errorf("stranger at %s: %d %s", path, status, body)
		}
	}
	v := w.visit()
	c := v.conversation()
	v.say(c, "message-1", "list the files")
	v.say(c, "message-1", "list the files") // again: nothing happens (P3)
	v.reads(c, "the answer", func(ls []line) bool { return ls[len(ls)-1].Who == "parley" })
	if n := len(w.llm.Requests()); n != 2 {
		t.Errorf("%d requests of the model, want 2", n)
	}
	soon := time.Now().Add(waitTime)
	for path, want := range map[string]string{
		"/owner": "telegram", "/api/status": `"channels"`, "/api/sessions": "web:owner/" + c, "/api/usage": `"web:owner"`,
		"/api/audit": "list_dir", "/api/audit?verify=yes": `"whole":true`, "/metrics": "parley_turns_total",
		"/api/sessions/" + url.PathEscape("web:owner/"+c): "list_dir", "/api/sessions?q=files": c,
	} {
		status, body := v.do("GET", path, nil)
		for status == 200 && !strings.Contains(body, want) && t.Context().Err() == nil && time.Now().Before(soon) {
			status, body = v.do("GET", path, nil) // the turn ends a moment after its answer is read
		}
		if status != 200 || !strings.Contains(body, want) {
			t.Errorf("%s: %d, without %q: %.500s", path, status, want, body)
		}
	}
	if _, body := v.do("GET", "/metrics", nil); strings.Contains(body, "parley_store_commit_seconds_count 0\n") {
		t.Error("no commit of the store was measured")
	}
	if out, code := w.run("", "sessions", "show", "web:owner/"+c); code != 0 || !strings.Contains(out, "list_dir") {
		t.Errorf("sessions show: %d: %s", code, out)
	}
	if out, code := w.run("", "status"); code != 0 || !strings.Contains(out, "telegram") {
		t.Errorf("status: %d: %s", code, out)
	}
	for _, args := range [][]string{
		{"status", "--json"}, {"usage", "--json"}, {"audit", "--json"}, {"sessions", "list", "--json"},
		{"sessions", "search", "--json", "notes"}, {"sessions", "show", "--json", "web:owner/" + c},
	} {
		var answer map[string]any
		out, code := w.run("", args...)
		if err := json.Unmarshal([]byte(out), &answer); code != 0 || err != nil || len(answer) == 0 {
			t.Errorf("%q: %d, %v: %s", args, code, err, out)
		}
	}
	if out, code := w.run("", "usage"); code != 0 || !strings.Contains(out, "By person") || !strings.Contains(out, " turn") {
		t.Errorf("usage: %d: %s", code, out)
	}
	if status, _ := v.do("DELETE", "/c/"+c, nil); status >= 300 {
		t.Errorf("delete: %d", status)
	}
	if out, _ := w.run("", "sessions", "list"); strings.Contains(out, c) {
		t.Errorf("a deleted conversation is listed: %s", out)
	}
	if out, code := w.run("", "sessions", "delete", "--yes", "web:owner/"+c); code != exitFailure {
		t.Errorf("what is gone is deleted once more: %d: %s", code, out)
	}
	if strings.Contains(w.log.String(), adminToken) {
		t.Error("the log holds the admin token")
	}
	if w.stop() != 0 {
		t.Error("it did not end well")
	}
	if out, code := w.run("", "status"); code != 0 || !strings.Contains(out, "telegram") {
		t.Errorf("status without a gateway: %d: %s", code, out)
	}
	if out, code := w.run("", "link"); code != 0 || !strings.Contains(out, "http://127.0.0.1:") {
		t.Errorf("link without a gateway: %d: %s", code, out)
	}
}

func spokenLast(r llmtest.Request) string {
	if said := spoken(r); len(said) > 0 {
		return said[len(said)-1]
	}
	return ""
}

// TestOpenAIClient: an ordinary client of OpenAI's talks to the agent, and its
// key opens nothing else.
func TestOpenAIClient(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, echo)
	w.start()
	base := w.base()
	out, code := w.run("", "key", "owner", "laptop")
	key, _, _ := strings.Cut(out, "\n")
	if code != 0 || key == "" {
		t.Fatalf("key: %d: %s", code, out)
	}
	cfg := openai.DefaultConfig(key)
	cfg.BaseURL = base + "/v1"
	client := openai.NewClientWithConfig(cfg)
	said := []openai.ChatCompletionMessage{{Role: "user", Content: "one"}}
	first, err := client.CreateChatCompletion(t.Context(), openai.ChatCompletionRequest{Model: "parley", Messages: said})
	if err != nil || first.Choices[0].Message.Content != "heard one" {
		t.Fatalf("%+v, %v", first, err)
	}
	if u := first.Usage; u.PromptTokens == 0 || u.CompletionTokens == 0 || u.TotalTokens != u.PromptTokens+u.CompletionTokens {
		t.Errorf("usage: %+v", u)
	}
	if m, err := client.GetModel(t.Context(), "parley"); err != nil || m.ID != "parley" {
		t.Errorf("model: %+v %v", m, err)
	}
	said = append(said, first.Choices[0].Message, openai.ChatCompletionMessage{Role: "user", Content: "two"})
	stream, err := client.CreateChatCompletionStream(t.Context(), openai.ChatCompletionRequest{Model: "parley", Messages: said})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	var text strings.Builder
	for {
		chunk, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range chunk.Choices {
			text.WriteString(c.Delta.Content)
		}
	}
	if text.String() != "heard two" {
		t.Errorf("streamed %q", text.String())
	}
	if out, _ := w.run("", "sessions", "list"); strings.Count(out, "api:owner/laptop") != 1 {
		t.Errorf("the second request did not go on with the first: %s", out)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "GET", base+"/api/status", nil)
	req.Header.Set("Authorization", "Bearer "+key)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode < 400 {
		t.Errorf("an API key opens the admin API: %d", resp.StatusCode)
	}
	if b, _ := os.ReadFile(w.dir + "/parley.db"); bytes.Contains(b, []byte(key)) {
		t.Error("the store holds the key (R-S6)")
	}
}

// TestOpenAIClientOfAModelThatFails: the apology is no answer; a client reads
// of the failure as of any other, streaming and not.
func TestOpenAIClientOfAModelThatFails(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(context.Context, llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Status: http.StatusUnauthorized}
	})
	w.start()
	base := w.base()
	out, _ := w.run("", "key", "owner")
	key, _, _ := strings.Cut(out, "\n")
	cfg := openai.DefaultConfig(key)
	cfg.BaseURL = base + "/v1"
	client := openai.NewClientWithConfig(cfg)
	ask := openai.ChatCompletionRequest{Model: "parley", Messages: []openai.ChatCompletionMessage{{Role: "user", Content: "hello"}}}
	_, err := client.CreateChatCompletion(t.Context(), ask)
	fault, ok := errors.AsType[*openai.APIError](err)
	if !ok || fault.HTTPStatusCode != http.StatusBadGateway || fault.Message == "" {
		t.Errorf("not streaming: %v", err)
	}
	stream, err := client.CreateChatCompletionStream(t.Context(), ask)
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	for err == nil {
		_, err = stream.Recv()
	}
	if errors.Is(err, io.EOF) {
		t.Error("streaming: it ends as an answer does")
	}
}
