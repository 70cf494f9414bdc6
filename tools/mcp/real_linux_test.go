package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
	"parley/tools/network/networktest"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/none"
	"parley/tools/sandbox/proxy"
	"parley/workspace"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proxy.RelayCommand {
		os.Exit(proxy.Relay(os.Args[2:]))
	}
	if len(os.Args) > 2 && os.Args[1] == conformanceClient {
		if err := beConformanceClient(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	if len(os.Args) > 2 && os.Args[1] == mcptest.HostileCommand {
		mcptest.Hostile(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

// A rig is Servers at work, and what calls their tools.
type rig struct {
	*mcp.Servers
	t       testing.TB
	scope   tools.Scope
	sources []tools.Source
}

// newRig has Servers at work until the test ends.
func newRig(t testing.TB, servers map[string]*mcp.Server, change ...func(*mcp.Config)) *rig {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	c := mcp.Config{
		Log:     slog.New(slog.NewTextHandler(testWriter{t}, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Sandbox: bwrap.New(bwrap.Config{Folder: t.TempDir(), Relay: self}),
		Bare:    none.Runner{},
		Folder:  t.TempDir(),

		Handshake: 5 * time.Minute, // no machine is too slow
	}
	for _, f := range change {
		f(&c)
	}
	r := &rig{Servers: mcp.New(c), t: t}
	r.sources = []tools.Source{r.Servers}
	at := chat.Address{Channel: "telegram", Chat: "1"}
	r.scope = tools.Scope{
		Session: at.Session(), At: at, From: chat.Sender{ID: "1", Role: chat.Owner}, Turn: "turn", Workspace: ws,
	}
	r.Use(servers)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return r
}

type testWriter struct{ t testing.TB }

func (w testWriter) Write(p []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(p)))
	return len(p), nil
}

// server returns an entry with the defaults of config, and what change does to it.
func server(change func(*mcp.Server)) *mcp.Server {
	s := &mcp.Server{
		EnabledTools: []string{"*"}, ToolTimeout: 30 * time.Second, Enabled: true, For: []string{"owners"}, Sandbox: "auto",
	}
	change(s)
	return s
}

func command(args ...string) *mcp.Server {
	return server(func(s *mcp.Server) { s.Command, s.Args = args[0], args[1:] })
}

// kit returns the tools of a turn.
func (r *rig) kit() *tools.Kit {
	r.t.Helper()
	kit, err := tools.NewKit(r.t.Context(), r.scope, r.sources, tools.Standard(tools.StandardConfig{
		Approve: func(context.Context, tools.Call, string) (bool, string, error) { return true, "telegram:1", nil },
	})...)
	if err != nil {
		r.t.Fatal(err)
	}
	return kit
}

// names returns the names of the tools.
func (r *rig) names() (list []string) {
	for _, t := range r.kit().Tools() {
		list = append(list, t.Name)
	}
	return list
}

// call calls a tool in a turn of its own.
func (r *rig) call(name string, input map[string]any) tools.Result {
	r.t.Helper()
	return r.callIn(r.kit(), name, input)
}

func (r *rig) callIn(kit *tools.Kit, name string, input map[string]any) tools.Result {
	r.t.Helper()
	args, err := json.Marshal(input)
	if err != nil {
		r.t.Fatal(err)
	}
	call := llm.ToolCall{ID: "1", Name: name, Args: string(args)}
	return callToEnd(r.t.Context(), kit, tools.Call{ToolCall: call, Scope: r.scope})
}

// D-103, D-105, D-106: the reference server for files works in the sandbox, and sees the folder that its
// arguments name and no other.
func TestFilesystemServer(t *testing.T) {
	index := mcptest.Package(t, "server-filesystem/dist/index.js")
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "a.txt"), []byte("the words"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, map[string]*mcp.Server{"files": command("node", index, folder)})
	kit := r.kit()
	got := r.callIn(kit, "mcp_files_read_text_file", map[string]any{"path": filepath.Join(folder, "a.txt")})
	if got.Failed || got.Text != "the words" || !got.Tainted {
		t.Errorf("%+v", got)
	}
	got = r.callIn(kit, "mcp_files_write_file", map[string]any{"path": filepath.Join(folder, "b.txt"), "content": "written"})
	if written, err := os.ReadFile(filepath.Join(folder, "b.txt")); err != nil || string(written) != "written" {
		t.Errorf("%+v, %s, %v", got, written, err)
	}
	got = r.callIn(kit, "mcp_files_read_text_file", map[string]any{"path": "/nowhere/b.txt"})
	if !got.Failed || !strings.Contains(got.Text, "denied") {
		t.Errorf("%+v", got)
	}
}

// D-103, D-108, D-110, D-111: the server that has everything, over all three transports.
func TestEverythingServer(t *testing.T) {
	index := mcptest.Package(t, "server-everything/dist/index.js")
	stdio := command("node", index)
	stdio.Env = map[string]string{"COLOUR": "red"}
	for name, s := range map[string]*mcp.Server{
		"stdio":      stdio,
		"streamable": server(func(s *mcp.Server) { s.URL = serveHTTP(t, index, "streamableHttp") + "/mcp" }),
		"sse":        server(func(s *mcp.Server) { s.URL = serveHTTP(t, index, "sse") + "/sse" }),
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, map[string]*mcp.Server{"every": s})
			kit := r.kit()
			for _, c := range []struct {
				name  string
				input map[string]any
				want  string
			}{
				{"echo", map[string]any{"message": "hello"}, "Echo: hello"},
				{"get-sum", map[string]any{"a": 1, "b": 2}, "The sum of 1 and 2 is 3."},
				{"get-tiny-image", nil, "[image saved to work/mcp/"},
				{"get-structured-content", map[string]any{"location": "Chicago"}, `"temperature":36`},
				{"get-resource-links", map[string]any{"count": 2}, "URI: demo://resource/dynamic/text/2]"},
				{"get-resource-reference", map[string]any{"resourceType": "Text", "resourceId": 1}, "This is a plaintext resource"},
				{"resource_architecture_md", nil, "# Everything Server"},
				{"resource_Dynamic_Text_Resource", map[string]any{"resourceId": "7"}, "Resource 7: This is a plaintext resource"},
				{"resource_Dynamic_Blob_Resource", map[string]any{"resourceId": "7"}, "[Binary resource: "},
				{"prompt_args-prompt", map[string]any{"city": "Oslo"}, "Oslo"},
			} {
				got := r.callIn(kit, "mcp_every_"+c.name, c.input)
				if got.Failed || !strings.Contains(got.Text, c.want) || !got.Tainted || got.Public {
					t.Errorf("%s: %+v", c.name, got)
				}
				if c.name == "get-tiny-image" && (len(got.Pictures) != 1 || len(got.Attached) != 1) {
					t.Errorf("%+v", got)
				}
			}
			if got := r.callIn(kit, "mcp_every_prompt_args-prompt", nil); got.Code != tools.CodeInvalid {
				t.Errorf("%+v", got)
			}
			if name != "stdio" {
				return
			}
			got := r.callIn(kit, "mcp_every_get-env", nil) // R-S17
			if !strings.Contains(got.Text, `"COLOUR": "red"`) || strings.Contains(got.Text, mcptest.PackagesVariable) {
				t.Errorf("%s", got.Text)
			}
		})
	}
}

// serveHTTP starts a server of that kind, and returns its address.
func serveHTTP(t *testing.T, index, kind string) string {
	t.Helper()
	address := networktest.FreeAddress(t)
	_, port, _ := net.SplitHostPort(address)
	node := exec.CommandContext(t.Context(), "node", index, kind)
	node.Env = append(os.Environ(), "PORT="+port)
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Process.Kill(); _ = node.Wait() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			conn.Close()
			return "http://" + address
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// D-103: other servers of the project work as their documents say.
func TestReferenceServers(t *testing.T) {
	memory := command("node", mcptest.Package(t, "server-memory/dist/index.js"))
	memory.Env = map[string]string{"MEMORY_FILE_PATH": filepath.Join(t.TempDir(), "memory.jsonl")}
	memory.Folders = []string{filepath.Dir(memory.Env["MEMORY_FILE_PATH"])}
	r := newRig(t, map[string]*mcp.Server{
		"memory":   memory,
		"thinking": command("node", mcptest.Package(t, "server-sequential-thinking/dist/index.js")),
	})
	kit := r.kit()
	got := r.callIn(kit, "mcp_memory_create_entities", map[string]any{"entities": []any{
		map[string]any{"name": "Ann", "entityType": "person", "observations": []any{"likes tea"}},
	}})
	if got.Failed {
		t.Errorf("%+v", got)
	}
	if got = r.callIn(kit, "mcp_memory_search_nodes", map[string]any{"query": "tea"}); !strings.Contains(got.Text, "Ann") {
		t.Errorf("%+v", got)
	}
	if written, err := os.ReadFile(memory.Env["MEMORY_FILE_PATH"]); err != nil || !strings.Contains(string(written), "Ann") {
		t.Errorf("%s, %v", written, err)
	}
	got = r.callIn(kit, "mcp_thinking_sequentialthinking", map[string]any{
		"thought": "one", "nextThoughtNeeded": false, "thoughtNumber": 1, "totalThoughts": 1,
	})
	if got.Failed || !strings.Contains(got.Text, "thoughtNumber") {
		t.Errorf("%+v", got)
	}
}

// R-S17: a server's program sees nothing of Parley's data, although a folder around it is granted.
func TestHiddenFolders(t *testing.T) {
	index := mcptest.Package(t, "server-filesystem/dist/index.js")
	folder := t.TempDir()
	data := filepath.Join(folder, "data")
	for name, text := range map[string]string{"data/secret.txt": "canary", "config.json": "canary", "open.txt": "open"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := newRig(t, map[string]*mcp.Server{"files": command("node", index, folder)}, func(c *mcp.Config) {
		c.Hidden = []string{data, filepath.Join(folder, "config.json")}
		c.Folder = filepath.Join(data, "mcp")
	})
	kit := r.kit()
	if got := r.callIn(kit, "mcp_files_read_text_file", map[string]any{"path": filepath.Join(folder, "open.txt")}); got.Text != "open" {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"data/secret.txt", "config.json"} {
		got := r.callIn(kit, "mcp_files_read_text_file", map[string]any{"path": filepath.Join(folder, name)})
		if strings.Contains(got.Text, "canary") {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// D-031: a program that is missing, and one that ends at once, are told of in words that help.
func TestExplanations(t *testing.T) {
	r := newRig(t, map[string]*mcp.Server{
		"a": command("no-such-program-anywhere"), "b": command("sh", "-c", "echo it is broken >&2; exit 7"),
	})
	r.names()
	for i, want := range []string{"there is no such program: no-such-program-anywhere in /usr", "exit code 7; it wrote: it is broken"} {
		if got := r.States()[i].LastError; !strings.Contains(got, want) {
			t.Errorf("%s", got)
		}
	}
}

// listen listens at an address of this machine.
func listen(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
