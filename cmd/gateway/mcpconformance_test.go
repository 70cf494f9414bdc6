package main

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	"parley/llm/llmtest"
	"parley/tools/mcp/mcptest"
)

// TestMCPServerConformance: R-S2: the official suite finds nothing wrong with what the gateway serves. It has no
// key, so a proxy adds one. Scenarios that need tools of the suite's own are in tools/mcp/serve.
func TestMCPServerConformance(t *testing.T) {
	t.Parallel()
	mcptest.Package(t, "conformance-next/dist/index.js")
	w := newTestGateway(t, func(context.Context, llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "yes"} })
	w.start()
	gateway, err := url.Parse(w.base())
	if err != nil {
		t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Transport:     bearer(w.key("owner")),
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			own, _ := r.In.Context().Value(http.LocalAddrContextKey).(net.Addr)
			r.SetURL(gateway)
			r.Out.Host = strings.ReplaceAll(r.In.Host, own.String(), gateway.Host)
			if origin := r.In.Header.Get("Origin"); origin != "" {
				r.Out.Header.Set("Origin", strings.ReplaceAll(origin, own.String(), gateway.Host))
			}
		},
	})
	defer proxy.Close()
	for version, scenarios := range map[string][]string{
		"2025-11-25": {
			"server-initialize", "server-session-lifecycle", "logging-set-level", "ping", "tools-list",
			"server-sse-multiple-streams", "dns-rebinding-protection",
		},
		"2026-07-28": {
			"tools-list", "server-sse-multiple-streams", "dns-rebinding-protection", "http-header-validation",
			"caching",
		},
	} {
		for _, scenario := range scenarios {
			t.Run(version+" "+scenario, func(t *testing.T) {
				for _, s := range mcptest.TestServer(t, "conformance-next", proxy.URL+"/mcp",
					"--scenario", scenario, "--spec-version", version) {
					if s.Passed == 0 || len(s.Faults) > 0 {
						t.Errorf("%d checks passed; %s", s.Passed, strings.Join(s.Faults, "\n\t"))
					}
				}
			})
		}
	}
}
