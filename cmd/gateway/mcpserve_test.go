package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm/llmtest"
)

// A bearer sends requests with a key.
type bearer string

// RoundTrip implements [http.RoundTripper].
func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b != "" {
		r.Header.Set("Authorization", "Bearer "+string(b))
	}
	return http.DefaultTransport.RoundTrip(r)
}

// An mcpClient is a client of the gateway's MCP server.
type mcpClient struct {
	t        *testing.T
	session  *mcp.ClientSession
	progress chan string
}

// newMCPClient returns the options of a client, which note progress.
func newMCPClient(t *testing.T) (*mcpClient, *mcp.Client) {
	c := &mcpClient{t: t, progress: make(chan string, 100)}
	return c, mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			c.progress <- r.Params.Message
		},
	})
}

// dialMCP connects to the gateway at base with a key, in a version of the protocol.
func dialMCP(t *testing.T, base, key, version string) (*mcpClient, error) {
	c, client := newMCPClient(t)
	transport := &mcp.StreamableClientTransport{
		Endpoint: base + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, MaxRetries: -1, DisableStandaloneSSE: true,
	}
	var err error
	c.session, err = client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err == nil {
		t.Cleanup(func() { _ = c.session.Close() })
	}
	return c, err
}

// mcpOverStdio runs parley mcp serve.
func (w *testGateway) mcpOverStdio(t *testing.T, args ...string) *mcpClient {
	t.Helper()
	c, client := newMCPClient(t)
	cmd := w.command(append([]string{"mcp", "serve"}, args...)...)
	var err error
	if c.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.session.Close() })
	return c
}

// call calls a tool, and returns its structured content, or its text if it failed.
func (c *mcpClient) call(ctx context.Context, tool string, args map[string]any) (out map[string]any, failure string) {
	c.t.Helper()
	params := &mcp.CallToolParams{Name: tool, Arguments: args}
	params.SetProgressToken("p" + tool)
	r, err := c.session.CallTool(ctx, params)
	if err != nil {
		return nil, err.Error()
	}
	if r.IsError {
		return nil, r.Content[0].(*mcp.TextContent).Text
	}
	return r.StructuredContent.(map[string]any), ""
}

// do is call of what must not fail.
func (c *mcpClient) do(tool string, args map[string]any) map[string]any {
	c.t.Helper()
	out, failure := c.call(c.t.Context(), tool, args)
	if failure != "" {
		c.t.Fatalf("%s %v: %s", tool, args, failure)
	}
	return out
}

// refuses returns why a call is refused.
func (c *mcpClient) refuses(tool string, args map[string]any) string {
	c.t.Helper()
	out, failure := c.call(c.t.Context(), tool, args)
	if failure == "" {
		c.t.Errorf("%s %v: %v, and nothing is refused", tool, args, out)
	}
	return failure
}

// TestMCPServer: a client of the SDK does everything that there is to do, over HTTP in the versions of the
// protocol with and without sessions, and over standard input and output.
func TestMCPServer(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	base := w.base()
	w.tg.Say(person, "hello")
	w.says(person, "answer to hello")
	key := w.key("owner")
	for name, connect := range map[string]func(t *testing.T) *mcpClient{
		"2026-07-28": func(t *testing.T) *mcpClient { return mustDial(t, base, key, "2026-07-28") },
		"2025-11-25": func(t *testing.T) *mcpClient { return mustDial(t, base, key, "2025-11-25") },
		"2025-03-26": func(t *testing.T) *mcpClient { return mustDial(t, base, key, "2025-03-26") },
		"stdio":      func(t *testing.T) *mcpClient { return w.mcpOverStdio(t) },
	} {
		t.Run(name, func(t *testing.T) {
			c := connect(t)
			checkTools(t, c)
			first := c.do("ask_agent", map[string]any{"message": "tea " + name, "key": "k1"})
			again := c.do("ask_agent", map[string]any{"message": "tea " + name, "key": "k1"})
			if first["answer"] != "answer to tea "+name || first["session"] == "" || fmt.Sprint(again) != fmt.Sprint(first) {
				t.Errorf("%v, and again %v", first, again)
			}
			more := c.do("ask_agent", map[string]any{"message": "more", "session": first["session"]})
			if more["session"] != first["session"] {
				t.Errorf("%v does not go on with %v", more, first)
			}
			found := fmt.Sprint(c.do("search_conversations", map[string]any{"query": "tea " + name}))
			if !strings.Contains(found, "tea "+name) {
				t.Errorf("found %s", found)
			}
			if out := c.do("search_memory", map[string]any{"query": "elephants"}); fmt.Sprint(out) != "map[passages:[]]" {
				t.Errorf("memory: %v", out)
			}
			for range 2 {
				c.do("send_message", map[string]any{"text": "hello from " + name, "key": "m1"})
			}
			w.sentOnce(person, "hello from "+name)
			for range 2 {
				c.do("add_job", map[string]any{"message": "stretch", "name": "job " + name, "every_seconds": 86400, "key": "j1"})
			}
			id := w.jobIn(c, "job "+name, true)
			c.do("set_job_enabled", map[string]any{"job_id": id, "enabled": false})
			w.jobIn(c, "job "+name, false)
			c.do("remove_job", map[string]any{"job_id": id})
			if why := c.refuses("remove_job", map[string]any{"job_id": id}); !strings.Contains(why, "there is no job") {
				t.Errorf("removed twice: %s", why)
			}
			if why := c.refuses("add_job", map[string]any{"message": "x", "cron_expr": "nonsense"}); strings.Contains(why, "Analyze") {
				t.Errorf("a wrong job: %s", why)
			}
			if why := c.refuses("ask_agent", map[string]any{"message": " "}); why != "The message must not be empty." {
				t.Errorf("nothing asked: %s", why)
			}
		})
	}
}

func mustDial(t *testing.T, base, key, version string) *mcpClient {
	t.Helper()
	c, err := dialMCP(t, base, key, version)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkTools checks that all tools say what they take, what they give and what they change.
func checkTools(t *testing.T, c *mcpClient) {
	t.Helper()
	list, err := c.session.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	reads := map[string]bool{
		"list_jobs": true, "search_memory": true, "search_conversations": true, "wait_for_message": true,
	}
	if len(list.Tools) != 12 {
		t.Errorf("%d tools", len(list.Tools))
	}
	for _, tool := range list.Tools {
		a := tool.Annotations
		if tool.OutputSchema == nil || tool.Description == "" || a == nil || a.ReadOnlyHint != reads[tool.Name] {
			t.Errorf("%s: %+v", tool.Name, tool)
		}
		if removes := tool.Name == "remove_job" || tool.Name == "ask_agent"; a != nil && !a.ReadOnlyHint && *a.DestructiveHint != removes {
			t.Errorf("%s: %+v", tool.Name, a)
		}
	}
}

// sentOnce checks that text was sent to a chat once.
func (w *testGateway) sentOnce(chat int64, text string) {
	w.t.Helper()
	all := w.told(chat, text, func(texts []string) bool { return strings.Contains(strings.Join(texts, "\n"), text) })
	if n := strings.Count(strings.Join(all, "\n"), text); n != 1 {
		w.t.Errorf("%q was sent %d times", text, n)
	}
}

// jobIn returns the ID of the one job of that name.
func (w *testGateway) jobIn(c *mcpClient, name string, enabled bool) (id string) {
	c.t.Helper()
	n := 0
	for _, j := range c.do("list_jobs", nil)["jobs"].([]any) {
		if j := j.(map[string]any); j["name"] == name {
			n++
			id = j["id"].(string)
			if j["enabled"] != enabled || j["schedule"] != "every 24h" || j["chat"] != fmt.Sprintf("telegram:%d", person) {
				w.t.Errorf("job %v", j)
			}
		}
	}
	if n != 1 {
		w.t.Fatalf("%d jobs named %s", n, name)
	}
	return id
}

// TestMCPGuards: R-S1 to R-S6, R-S14: without a key and with a wrong one, under the name of another host, from a
// page of another site and with too large a request nothing is served, and a guest sees and does what is theirs.
func TestMCPGuards(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	base := w.base()
	owner := w.key("owner")
	w.invite("anna")
	w.invite("bob")
	anna, bob := w.key("anna"), w.key("bob")
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`
	post := func(key, body string, header map[string]string) (int, http.Header, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/mcp", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		for k, v := range header {
			r.Header.Set(k, v)
		}
		r.Host = header["Host"]
		resp, err := (&http.Client{Transport: bearer(key)}).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, resp.Header, string(b)
	}
	for name, c := range map[string]struct {
		key, body string
		header    map[string]string
		status    int
	}{
		"no key":          {"", hello, nil, http.StatusUnauthorized},
		"no key, read":    {"", hello, map[string]string{"X-Parley": "1"}, http.StatusUnauthorized},
		"wrong key":       {"parley_" + strings.Repeat("A", 52), hello, nil, http.StatusUnauthorized},
		"other host":      {owner, hello, map[string]string{"Host": "evil.example"}, http.StatusForbidden},
		"other site":      {owner, hello, map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"more than 1 MiB": {owner, hello + strings.Repeat(" ", 1<<20), nil, http.StatusRequestEntityTooLarge},
		"no JSON":         {owner, "nonsense", nil, http.StatusBadRequest},
		"as it should be": {owner, hello, nil, http.StatusOK},
	} {
		if status, _, answer := post(c.key, c.body, c.header); status != c.status {
			t.Errorf("%s: %d %s", name, status, answer)
		}
	}
	_, header, _ := post(anna, hello, nil)
	session := map[string]string{"Mcp-Session-Id": header.Get("Mcp-Session-Id")}
	const list = `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`
	if status, _, answer := post(bob, list, session); status != http.StatusNotFound {
		t.Errorf("the session of another: %d %s", status, answer)
	}
	if status, _, answer := post(anna, list, session); status != http.StatusOK {
		t.Errorf("a session of one's own: %d %s", status, answer)
	}

	a, b, o := mustDial(t, base, anna, ""), mustDial(t, base, bob, ""), mustDial(t, base, owner, "")
	o.do("add_job", map[string]any{"message": "x", "name": "of the owner", "every_seconds": 86400})
	o.do("ask_agent", map[string]any{"message": "the owner's secret"})
	a.do("ask_agent", map[string]any{"message": "anna's secret"})
	a.do("add_job", map[string]any{"message": "x", "name": "of anna", "every_seconds": 86400})
	a.do("send_message", map[string]any{"text": "a note to myself"})
	for name, c := range map[string]*mcpClient{"of the owner, of anna": o, "of anna": a, "": b} {
		got := fmt.Sprint(c.do("list_jobs", nil))
		for _, job := range []string{"of the owner", "of anna"} {
			if strings.Contains(got, job) != strings.Contains(name, job) {
				t.Errorf("%q: %s", name, got)
			}
		}
	}
	for who, c := range map[string]*mcpClient{"anna's owner's": o, "anna's": a, "": b} {
		got := fmt.Sprint(c.do("search_conversations", map[string]any{"query": "secret"}))
		for _, text := range []string{"anna's", "owner's"} {
			if strings.Contains(got, text) != strings.Contains(who, text) {
				t.Errorf("%q finds %s", who, got)
			}
		}
	}
	chat := fmt.Sprintf("telegram:%d", person)
	for _, why := range []string{
		a.refuses("send_message", map[string]any{"text": "x", "chat": chat}),
		a.refuses("add_job", map[string]any{"message": "x", "every_seconds": 86400, "chat": chat}),
	} {
		if !strings.Contains(why, "only an owner may") {
			t.Errorf("a guest's refusal: %s", why)
		}
	}
	if why := b.refuses("remove_job", map[string]any{"job_id": "of anna"}); !strings.Contains(why, "there is no job") {
		t.Errorf("another's job: %s", why)
	}
}

// TestMCPKilledWhileAsked: P3, P6: the gateway is killed while a client waits for an answer. A client that asks
// again under the same key gets one, and so does one that waits at parley mcp serve, which asks again by itself.
func TestMCPKilledWhileAsked(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	began := make(chan struct{}, 10)
	w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
		if asked.Add(1) <= 2 {
			began <- struct{}{}
			<-ctx.Done()
		}
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	base := w.base()
	key := w.key("owner")
	overHTTP := mustDial(t, base, key, "")
	piped := w.mcpOverStdio(t)
	question := map[string]any{"message": "one", "session": "s", "key": "k"}
	var waiting sync.WaitGroup
	waiting.Go(func() { overHTTP.refuses("ask_agent", question) })
	var answer map[string]any
	waiting.Go(func() { answer = piped.do("ask_agent", map[string]any{"message": "two"}) })
	<-began
	<-began
	w.kill()
	w.start()
	waiting.Wait()
	if answer["answer"] != "answer to two" {
		t.Errorf("over standard input and output: %v", answer)
	}
	again := mustDial(t, w.base(), key, "")
	for range 2 {
		if out := again.do("ask_agent", question); out["answer"] != "answer to one" {
			t.Errorf("asked again: %v", out)
		}
	}
	if n := asked.Load(); n != 4 {
		t.Errorf("the model was asked %d times", n)
	}
}

// TestMCPCancelAndProgress: tools at work are progress, and a call that is cancelled stops the turn.
func TestMCPCancelAndProgress(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-11-25", "2026-07-28", "stdio"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			began, ended := make(chan struct{}), make(chan struct{})
			w := newTestGateway(t, func(ctx context.Context, r llmtest.Request) llmtest.Reply {
				if !used(r) {
					return llmtest.Reply{Calls: call("list_dir", `{"path": "."}`)}
				}
				close(began)
				<-ctx.Done()
				close(ended)
				return llmtest.Reply{Text: "too late"}
			})
			w.start()
			var c *mcpClient
			if version == "stdio" {
				c = w.mcpOverStdio(t)
			} else {
				c = mustDial(t, w.base(), w.key("owner"), version)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var waiting sync.WaitGroup
			waiting.Go(func() {
				if out, failure := c.call(ctx, "ask_agent", map[string]any{"message": "work"}); failure == "" {
					t.Errorf("a cancelled call: %v", out)
				}
			})
			<-began
			if text := <-c.progress; !strings.Contains(text, "List files") {
				t.Errorf("progress %q", text)
			}
			cancel()
			waiting.Wait()
			select {
			case <-ended:
			case <-time.After(waitTime):
				t.Error("the turn goes on")
			}
		})
	}
}

// TestMCPManySessions: a hundred sessions are open at the same time, and a client that does not read what it is
// sent hinders nobody.
func TestMCPManySessions(t *testing.T) {
	t.Parallel()
	w := newTestGateway(t, func(_ context.Context, r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "answer to " + spokenLast(r)}
	})
	w.start()
	base := w.base()
	key := w.key("owner")
	var all sync.WaitGroup
	for i := range 100 {
		all.Go(func() {
			c, err := dialMCP(t, base, key, "2025-11-25")
			if err != nil {
				t.Error(err)
				return
			}
			if i%10 == 0 {
				out, failure := c.call(t.Context(), "ask_agent", map[string]any{"message": fmt.Sprint("n", i)})
				if out["answer"] != fmt.Sprint("answer to n", i) {
					t.Errorf("%d: %v %s", i, out, failure)
				}
			}
		})
	}
	all.Wait()
	lazy, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+"/mcp", strings.NewReader(
		`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
	if err != nil {
		t.Fatal(err)
	}
	lazy.Header.Set("Content-Type", "application/json")
	lazy.Header.Set("Accept", "application/json, text/event-stream")
	lazy.Header.Set("MCP-Protocol-Version", "2026-07-28")
	resp, err := (&http.Client{Transport: bearer(key)}).Do(lazy)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() // and nothing is read
	if out := mustDial(t, base, key, "").do("ask_agent", map[string]any{"message": "last"}); out["answer"] != "answer to last" {
		t.Errorf("beside a client that does not read: %v", out)
	}
}
