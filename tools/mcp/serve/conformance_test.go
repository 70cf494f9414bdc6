package serve

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"parley/tools/mcp/mcptest"
)

// notTested are the scenarios that say nothing about the endpoint, by the beginning of their names.
var notTested = map[string]string{
	"dns-rebinding-protection": "the HTTP server checks hosts and origins: cmd/gateway has the test",
	"input-required-result-":   "Parley asks people in their chats, and never the client for further input",
	"tasks-":                   "Parley does not offer the extension of tasks",
}

// TestServerConformance: the official suite finds nothing wrong with an endpoint, in any version of the protocol.
// Servers of clients have no resources, prompts and completions, send no logs, and neither sample nor elicit: of
// these the scenarios show that the endpoint carries whatever the protocol has.
func TestServerConformance(t *testing.T) {
	mcptest.Package(t, "conformance/dist/index.js")
	mcptest.Package(t, "conformance-next/dist/index.js")
	e := newEndpoint(everything)
	serve := func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, anna) }
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	defer e.close()
	unused := maps.Clone(notTested)
	for name, run := range map[string]struct {
		suite string
		args  []string
		count int // scenarios
		known map[string]string
	}{
		"released": {suite: "conformance", args: []string{"--suite", "all"}, count: 32, known: map[string]string{
			"server-sse-polling": "it expects of 2025-03-26 what came with 2025-11-25, where it passes",
		}},
		"2025-11-25": {suite: "conformance-next", args: []string{"--requirements", "2025-11-25"}, count: 33},
		"2026-07-28": {suite: "conformance-next", args: []string{"--requirements", "2026-07-28"}, count: 50},
	} {
		t.Run(name, func(t *testing.T) {
			all := mcptest.TestServer(t, run.suite, server.URL+"/mcp", run.args...)
			if len(all) != run.count {
				t.Errorf("%d scenarios, want %d", len(all), run.count)
			}
			for _, s := range all {
				if run.known[s.Name] != "" {
					continue
				}
				skip := false
				for prefix := range notTested {
					if strings.HasPrefix(s.Name, prefix) {
						delete(unused, prefix)
						skip = true
					}
				}
				if !skip && (s.Passed == 0 || len(s.Faults) > 0) {
					t.Errorf("%s: %d checks passed; %s", s.Name, s.Passed, strings.Join(s.Faults, "\n\t"))
				}
			}
		})
	}
	for prefix := range unused {
		t.Errorf("there is no scenario %s", prefix)
	}
}
