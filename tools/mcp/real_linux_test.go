package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
	"parley/tools/sandbox/bwrap"
	"parley/tools/sandbox/none"
	"parley/tools/sandbox/proxy"
	"parley/workspace"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == proxy.RelayCommand {
		os.Exit(proxy.Relay(os.Args[2:]))
	}
	os.Exit(m.Run())
}

// A rig is Servers at work, and what calls their tools.
type rig struct {
	*mcp.Servers
	t     *testing.T
	scope tools.Scope
	log   *strings.Builder
}

// newRig has Servers at work until the test ends.
func newRig(t *testing.T, servers map[string]*mcp.Server, change ...func(*mcp.Config)) *rig {
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
		Sandbox: bwrap.New(bwrap.Config{Relay: self}),
		Bare:    none.Runner{},
		Folder:  t.TempDir(),
	}
	for _, f := range change {
		f(&c)
	}
	r := &rig{Servers: mcp.New(c), t: t}
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

type testWriter struct{ t *testing.T }

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
	kit, err := tools.NewKit(r.t.Context(), r.scope, []tools.Source{r.Servers}, tools.Standard(tools.StandardConfig{
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
	return kit.Call(r.t.Context(), tools.Call{
		ToolCall: llm.ToolCall{ID: "1", Name: name, Args: string(args)}, Scope: r.scope,
	})
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

// D-103, D-110, D-111: the server that has everything.
func TestEverythingServer(t *testing.T) {
	index := mcptest.Package(t, "server-everything/dist/index.js")
	r := newRig(t, map[string]*mcp.Server{"every": command("node", index)})
	kit := r.kit()
	t.Log(r.names())
	for name, input := range map[string]map[string]any{
		"mcp_every_echo":                   {"message": "hello"},
		"mcp_every_get-sum":                {"a": 1, "b": 2},
		"mcp_every_get-tiny-image":         nil,
		"mcp_every_get-structured-content": {"location": "Chicago"},
		"mcp_every_get-resource-links":     {"count": 2},
		"mcp_every_get-env":                nil,
		"mcp_every_get-resource-reference": {"resourceType": "Text", "resourceId": 1},
	} {
		got := r.callIn(kit, name, input)
		t.Logf("%s: %+v", name, got)
	}
}
