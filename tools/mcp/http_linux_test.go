package mcp_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
	"parley/tools/network/networktest"
)

// service returns the handler of a server with the tool hello, which counts its calls, and asks for input
// first if it is called ask.
func service(calls *atomic.Int64) http.Handler {
	return serviceOf(calls, nil)
}

func serviceOf(calls *atomic.Int64, o *sdk.StreamableHTTPOptions) http.Handler {
	s := sdk.NewServer(&sdk.Implementation{Name: "service", Version: "1"}, nil)
	type in struct {
		Text string `json:"text,omitempty"`
	}
	sdk.AddTool(s, &sdk.Tool{Name: "hello", Description: "Say hello."},
		func(_ context.Context, _ *sdk.CallToolRequest, i in) (*sdk.CallToolResult, any, error) {
			n := calls.Add(1)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprintf("hello %s %d", i.Text, n)}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "large", Description: "Return a lot.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
			calls.Add(1)
			text := strings.Repeat("x", 50<<20)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "nothing", Description: "Return nothing."},
		func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "fail", Description: "Fail."},
		func(context.Context, *sdk.CallToolRequest, in) (*sdk.CallToolResult, any, error) {
			return nil, nil, fmt.Errorf("it did not work")
		})
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Description: "Ask first."},
		func(_ context.Context, r *sdk.CallToolRequest, _ in) (*sdk.CallToolResult, any, error) {
			if r.Params.RequestState != "halfway" {
				question := &sdk.ElicitParams{Message: "Really?", RequestedSchema: map[string]any{"type": "object"}}
				return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": question}, RequestState: "halfway"}, nil, nil
			}
			answer, _ := r.Params.InputResponses["q"].(*sdk.ElicitResult)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "answered: " + answer.Action}}}, nil, nil
		})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o)
}

// R-S22: no server has tools under names that belong to another one, whichever of them is connected.
func TestNamesOfOtherServers(t *testing.T) {
	t.Parallel()
	s := sdk.NewServer(&sdk.Implementation{Name: "shadow", Version: "1"}, nil)
	for _, name := range []string{"search", "b_search"} {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{}, nil, nil
		})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	t.Cleanup(web.Close)
	at := func(address string) *mcp.Server { return server(func(s *mcp.Server) { s.URL = address }) }
	r := newRig(t, map[string]*mcp.Server{"a": at(web.URL), "a_b": at("http://127.0.0.1:1/mcp")})
	names := r.names()
	if !slices.Contains(names, "mcp_a_search") || slices.Contains(names, "mcp_a_b_search") {
		t.Errorf("there are %q", names)
	}
}

// D-103, D-107, D-109: headers are passed, and results are told as they are.
func TestService(t *testing.T) {
	t.Parallel()
	t.Run("with sessions", func(t *testing.T) { testService(t, nil) })
	t.Run("stateless", func(t *testing.T) { testService(t, &sdk.StreamableHTTPOptions{Stateless: true}) })
}

func testService(t *testing.T, o *sdk.StreamableHTTPOptions) {
	var calls atomic.Int64
	var denied atomic.Bool
	inner := serviceOf(&calls, o)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer good" {
			denied.Store(true)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	s := server(func(s *mcp.Server) {
		s.URL = web.URL
		s.Headers = map[string]string{"Authorization": "Bearer good"}
	})
	r := newRig(t, map[string]*mcp.Server{"web": s}, func(c *mcp.Config) { c.Inputs = new(agreeable) })
	kit := r.kit()
	for name, want := range map[string]string{
		"hello": "hello  1", "nothing": "(no output)", "ask": "answered: accept", "fail": "Error: it did not work",
	} {
		got := r.callIn(kit, "mcp_web_"+name, map[string]any{})
		if !strings.HasPrefix(got.Text, want) || got.Failed != (name == "fail") {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := r.callIn(kit, "mcp_web_large", map[string]any{}); !got.Failed || len(got.Text) > 5000 {
		t.Errorf("%.300s", got.Text)
	}
	if denied.Load() {
		t.Error("a request came without the header")
	}
	state := r.States()[0]
	t.Log(state.Protocol)
	if state.Calls < 5 || state.Latency <= 0 || o != nil && state.Protocol != "2026-07-28" {
		t.Errorf("%+v", state)
	}
}

// D-114: a service that begins anew, and so knows no session, is connected to again.
func TestServiceRestarts(t *testing.T) {
	t.Parallel()
	address := networktest.FreeAddress(t)
	l := listen(t, address)
	var calls atomic.Int64
	first := &http.Server{Handler: service(&calls)}
	go func() { _ = first.Serve(l) }()
	r := newRig(t, map[string]*mcp.Server{"web": server(func(s *mcp.Server) { s.URL = "http://" + address })})
	if got := r.call("mcp_web_hello", map[string]any{}); got.Failed {
		t.Fatalf("%+v", got)
	}
	first.Close()
	got := r.call("mcp_web_hello", map[string]any{})
	if !got.Failed || !strings.Contains(got.Text, "(MCP tool call failed: ") {
		t.Errorf("%+v", got)
	}
	l = listen(t, address)
	second := &http.Server{Handler: service(&calls)}
	t.Cleanup(func() { second.Close() })
	go func() { _ = second.Serve(l) }()
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		if got = r.call("mcp_web_hello", map[string]any{}); !got.Failed {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%+v; %+v", got, r.States())
		}
	}
}

// D-031: a service that is down at the first message has its tools at a later one, when it is up. That it is
// down costs the first message no time.
func TestServiceComesUp(t *testing.T) {
	t.Parallel()
	address := networktest.FreeAddress(t)
	r := newRig(t, map[string]*mcp.Server{"web": server(func(s *mcp.Server) { s.URL = "http://" + address })})
	begin := time.Now()
	if names := r.names(); len(names) > 0 || time.Since(begin) > 5*time.Second {
		t.Errorf("after %v there are %q", time.Since(begin), names)
	}
	want := "cannot reach http://" + address + ": dial tcp " + address
	if got := r.States()[0].LastError; !strings.HasPrefix(got, want) {
		t.Errorf("the owner reads %q, want %q", got, want)
	}
	l := listen(t, address)
	var calls atomic.Int64
	up := &http.Server{Handler: service(&calls)}
	t.Cleanup(func() { up.Close() })
	go func() { _ = up.Serve(l) }()
	for end := time.Now().Add(time.Minute); len(r.names()) == 0; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%+v", r.States())
		}
	}
}

// R-S19, R-S22: a service may be on this machine, because config names it; it cannot send Parley to another
// address there.
func TestServiceThatRedirects(t *testing.T) {
	t.Parallel()
	var reached atomic.Bool
	inside := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	t.Cleanup(inside.Close)
	outside := httptest.NewServer(http.RedirectHandler(inside.URL, http.StatusTemporaryRedirect))
	t.Cleanup(outside.Close)
	r := newRig(t, map[string]*mcp.Server{"web": server(func(s *mcp.Server) { s.URL = outside.URL })})
	if names := r.names(); len(names) > 0 || reached.Load() {
		t.Errorf("there are %q; reached: %v", names, reached.Load())
	}
	if got := r.States()[0].LastError; !strings.Contains(got, "private network") {
		t.Errorf("%s", got)
	}
}

// R-S22: events without end are read slowly until the connection is ended: those that answer a call, and
// those that come by themselves.
func TestFloodOfEvents(t *testing.T) {
	t.Parallel()
	for _, of := range []string{http.MethodPost, http.MethodGet} {
		t.Run(of, func(t *testing.T) {
			t.Parallel()
			testFloodOfEvents(t, of)
		})
	}
}

func testFloodOfEvents(t *testing.T, of string) {
	var calls, sent atomic.Int64
	inner := service(&calls)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		switch {
		case bytes.Contains(body, []byte("server/discover")): // an older server, whose sessions have a stream of events
			w.WriteHeader(http.StatusBadRequest)
			return
		case r.Method != of, r.Method == http.MethodPost && !bytes.Contains(body, []byte("tools/call")):
			inner.ServeHTTP(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for {
			if _, err := io.WriteString(w, "event: message\ndata: "+mcptest.FloodMessage+"\n\n"); err != nil {
				return
			}
			sent.Add(1)
		}
	}))
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
	})
	begin := time.Now()
	r := newRig(t, map[string]*mcp.Server{"bad": server(func(s *mcp.Server) {
		s.URL = web.URL
		s.ToolTimeout = 3 * time.Minute // which a busy machine needs to read so much
	})})
	if of == http.MethodGet {
		r.names()
		r.failsWith("it sends messages without end")
	} else if got := r.call("mcp_bad_hello", nil); !got.Failed || !strings.Contains(got.Text, "it sends messages without end") {
		t.Errorf("%+v", got)
	}
	const unread = 5 << 20 // what the buffers of a connection hold
	most := mostFlooded(time.Since(begin)) + unread/int64(len(mcptest.FloodMessage))
	if sent := sent.Load(); sent < 5000 || sent > most {
		t.Errorf("%d events were sent in %v, at most %d may be", sent, time.Since(begin), most)
	}
}

// D-031: first turns at the same time connect once, and wait for the same connection.
func TestFirstTurnsTogether(t *testing.T) {
	t.Parallel()
	var calls, sessions atomic.Int64
	inner := service(&calls)
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" && r.Header.Get("Mcp-Method") != "tools/list" {
			sessions.Add(1)
		}
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(web.Close)
	r := newRig(t, map[string]*mcp.Server{"web": server(func(s *mcp.Server) { s.URL = web.URL })})
	found := make(chan int, 10)
	for range cap(found) {
		go func() {
			all, _ := r.Tools(t.Context(), r.scope)
			found <- len(all)
		}()
	}
	for range cap(found) {
		if n := <-found; n != 5 {
			t.Errorf("a turn has %d tools", n)
		}
	}
	if n := sessions.Load(); n > 3 {
		t.Errorf("%d requests began sessions", n)
	}
}

// D-104, D-113: only the tools that config enables are there, by their names or those that models see.
func TestEnabledTools(t *testing.T) {
	t.Parallel()
	var calls atomic.Int64
	web := httptest.NewServer(service(&calls))
	t.Cleanup(web.Close)
	for list, want := range map[string]string{
		"*": "mcp_web_ask mcp_web_fail mcp_web_hello mcp_web_large mcp_web_nothing", "": "",
		"hello": "mcp_web_hello", "mcp_web_hello unknown": "mcp_web_hello",
	} {
		s := server(func(s *mcp.Server) { s.URL, s.EnabledTools = web.URL, strings.Fields(list) })
		r := newRig(t, map[string]*mcp.Server{"web": s})
		if got := strings.Join(r.names(), " "); got != want {
			t.Errorf("%q: %s", list, got)
		}
	}
}

// BenchmarkCall compares a call of a tool of an MCP server with one of a built-in tool.
func BenchmarkCall(b *testing.B) {
	var calls atomic.Int64
	web := httptest.NewServer(service(&calls))
	b.Cleanup(web.Close)
	r := newRig(b, map[string]*mcp.Server{
		"web": server(func(s *mcp.Server) { s.URL = web.URL }), "bad": hostile(b, "plain"),
	})
	r.sources = append(r.sources, tools.Fixed{tools.New("built_in", "Say hello.",
		func(context.Context, tools.Call, struct{}) (tools.Result, error) {
			return tools.Result{Text: "hello"}, nil
		})})
	kit := r.kit()
	for _, name := range []string{"built_in", "mcp_bad_pid", "mcp_web_hello"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if got := r.callIn(kit, name, map[string]any{}); got.Failed {
					b.Fatal(got.Text)
				}
			}
		})
	}
}
