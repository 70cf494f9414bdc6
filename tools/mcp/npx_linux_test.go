package mcp_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha512"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"golang.org/x/net/dns/dnsmessage"

	"parley/requiretest"
	"parley/tools/mcp"
	"parley/tools/network/networktest"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/proxy"
)

const packageJSON = `{"name":"tiny-mcp","version":"1.0.0","bin":{"tiny-mcp":"server.js"}}`

// tinyServer is an MCP server with the tool ok.
const tinyServer = `#!/usr/bin/env node
const tools = [{ name: "ok", description: "It is there.", inputSchema: { type: "object" } }]
const results = {
  initialize: { protocolVersion: "2025-06-18", capabilities: { tools: {} }, serverInfo: { name: "tiny", version: "1" } },
  "tools/list": { tools },
  "tools/call": { content: [{ type: "text", text: "fine" }] },
}
require("readline").createInterface({ input: process.stdin }).on("line", line => {
  const { id, method } = JSON.parse(line)
  if (id === undefined) return
  const answer = results[method] ? { result: results[method] } : { error: { code: -32601, message: "Method not found" } }
  console.log(JSON.stringify({ jsonrpc: "2.0", id, ...answer }))
})
`

// tarball returns a package as npm packs it.
func tarball(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var out bytes.Buffer
	z := gzip.NewWriter(&out)
	w := tar.NewWriter(z)
	for name, text := range files {
		if err := w.WriteHeader(&tar.Header{Name: "package/" + name, Mode: 0o755, Size: int64(len(text))}); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// R-S22: a server that npx fetches comes from a host that network names, through the sandbox's proxy. Of another
// host, the error says that it may not be reached.
func TestServerByNpx(t *testing.T) {
	t.Parallel()
	requiretest.Program(t, "npx")
	const host = "registry.example"
	resolver := networktest.NameServer(t, func(q dnsmessage.Question) []dnsmessage.ResourceBody {
		if q.Type != dnsmessage.TypeA {
			return nil
		}
		return []dnsmessage.ResourceBody{&dnsmessage.AResource{A: [4]byte{93, 184, 215, 14}}} // which the proxy below does not reach
	})
	packed := tarball(t, map[string]string{"package.json": packageJSON, "server.js": tinyServer})
	sum := sha512.Sum512(packed)
	version := map[string]any{}
	if err := json.Unmarshal([]byte(packageJSON), &version); err != nil {
		t.Fatal(err)
	}
	version["dist"] = map[string]any{
		"tarball": "http://" + host + "/tiny-mcp.tgz", "integrity": "sha512-" + base64.StdEncoding.EncodeToString(sum[:]),
	}
	packument, err := json.Marshal(map[string]any{
		"name": "tiny-mcp", "dist-tags": map[string]string{"latest": "1.0.0"}, "versions": map[string]any{"1.0.0": version},
	})
	if err != nil {
		t.Fatal(err)
	}
	registry := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/tiny-mcp":
			_, _ = w.Write(packument)
		case "/tiny-mcp.tgz":
			_, _ = w.Write(packed)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(registry.Close)
	entry := func(network ...string) *mcp.Server {
		s := command("npx", "-y", "tiny-mcp")
		s.Env = map[string]string{"npm_config_registry": "http://" + host + "/", "npm_config_fetch_retries": "0"}
		s.Network = network
		return s
	}
	r := newRig(t, map[string]*mcp.Server{"bad": entry("other.example"), "tiny": entry(host)}, func(c *mcp.Config) {
		self, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		toRegistry := func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, registry.Listener.Addr().String())
		}
		c.Sandbox = bwrap.New(bwrap.Config{Relay: self, Proxy: proxy.Config{Resolver: resolver, Dial: toRegistry}})
	})
	r.names()
	r.awaitPhase("tiny", mcp.Connected)
	if got := r.call("mcp_tiny_ok", map[string]any{}); got.Failed || !strings.Contains(got.Text, "fine") {
		t.Errorf("%+v", got)
	}
	r.failsWith("it may not reach " + host + ":80: \"network\" does not name it")
}
