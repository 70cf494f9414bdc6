package mcp

import (
	"strings"
	"testing"

	"parley/chat"
	"parley/tools"
)

// D-102: how a server is talked to follows from its entry, unless that says it.
func TestTransport(t *testing.T) {
	for want, servers := range map[string][]Server{
		typeStdio: {{Command: "x"}, {Command: "x", URL: "https://a/sse", Type: "stdio"}},
		typeSSE:   {{URL: "https://a/sse"}, {URL: "https://a/b/sse/"}, {URL: "https://a/mcp", Type: "sse"}},
		typeHTTP:  {{URL: "https://a/mcp"}, {URL: "https://a/sse", Type: "streamableHttp"}, {URL: "https://a", Type: "http"}, {URL: "https://a/?x=/sse"}},
	} {
		for _, s := range servers {
			if got := s.transport(); got != want {
				t.Errorf("%+v: %s", s, got)
			}
		}
	}
}

// D-105: names have nothing that providers refuse, and at most 64 characters, and stay different.
func TestWrapName(t *testing.T) {
	for _, c := range []struct{ server, name, want string }{
		{"filesystem", "read_file", "mcp_filesystem_read_file"},
		{"my server", "get.weather/now", "mcp_my_server_get_weather_now"},
		{"é", "x", "mcp___x"},
	} {
		if got := WrapName(c.server, c.name); got != c.want {
			t.Errorf("%s, not %s", got, c.want)
		}
	}
	long := strings.Repeat("n", 100)
	a, b := WrapName("s", long+"a"), WrapName("s", long+"b")
	if len(a) != 64 || len(b) != 64 || a == b || a[:55] != b[:55] || a[55] != '_' {
		t.Errorf("%s, %s", a, b)
	}
}

// The tools of a server exist for those whom its entry names.
func TestIsFor(t *testing.T) {
	owner, ann := chat.Sender{ID: "1", Role: chat.Owner}, chat.Sender{ID: "2", Role: chat.User}
	private := tools.Scope{At: chat.Address{Channel: "telegram", Chat: "2"}}
	group := tools.Scope{At: chat.Address{Channel: "telegram", Chat: "-9"}, Group: true}
	for _, c := range []struct {
		whom  string
		scope tools.Scope
		from  chat.Sender
		want  bool
	}{
		{"owners", private, owner, true}, {"owners", private, ann, false}, {"owners", group, owner, true},
		{"everyone", private, ann, true}, {"everyone", group, ann, true}, {"", private, owner, false},
		{"telegram:2", private, ann, true}, {"telegram:2", group, ann, false}, {"telegram:3", private, ann, false},
		{"telegram:1", private, owner, true}, {"telegram:-9", group, ann, true}, {"owners telegram:2", private, ann, true},
	} {
		s := Server{For: strings.Fields(c.whom)}
		if got := s.isFor(c.scope, c.from); got != c.want {
			t.Errorf("for %q: %v in %+v: %v", c.whom, c.from, c.scope.At, got)
		}
	}
}

// R-S12: in an untrusted turn, calls with effects are held back, and those that may tell a service something.
func TestGuard(t *testing.T) {
	service := &supervisor{server: &Server{URL: "https://example.com"}}
	confined := &supervisor{server: &Server{Command: "x", Sandbox: "auto"}}
	input := map[string]any{"q": []any{map[string]any{"a": "the secret word"}}}
	for _, c := range []struct {
		v        *supervisor
		readOnly bool
		tainted  bool
		held     bool
	}{
		{service, false, false, false}, {service, false, true, true}, {confined, false, true, true},
		{service, true, true, true}, {service, true, false, false}, {confined, true, true, false},
	} {
		guard := c.v.guard(c.readOnly)
		call := tools.Call{Scope: tools.Scope{Tainted: c.tainted}, Input: input}
		if got := guard != nil && guard(call); got != c.held {
			t.Errorf("%+v: %v", c, got)
		}
	}
}
