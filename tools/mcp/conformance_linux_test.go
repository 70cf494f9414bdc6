package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/mcptest"
)

// conformanceClient is the first argument with which this program is the client that the conformance suite
// tests.
const conformanceClient = "conformance-client"

// TestConformance: the official suite finds nothing wrong with the client, sign-in aside.
func TestConformance(t *testing.T) {
	suite := mcptest.Package(t, "conformance/dist/index.js")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range []string{"initialize", "tools_call", "sse-retry", "elicitation-sep1034-client-defaults"} {
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), mcptest.Node(), suite, "client",
				"--command", self+" "+conformanceClient, "--scenario", scenario, "--output-dir", t.TempDir())
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// beConformanceClient connects to the server at url as Parley does, and calls each tool once.
func beConformanceClient(url string) error {
	ctx, stop := context.WithTimeout(context.Background(), 25*time.Second)
	defer stop()
	servers := mcp.New(mcp.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Inputs: agreeable{}})
	servers.Use(map[string]*mcp.Server{"suite": server(func(s *mcp.Server) { s.URL = url })})
	running, end := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		servers.Run(running)
	}()
	defer func() {
		end()
		<-done
	}()
	scope := tools.Scope{At: chat.Address{Channel: "console"}, From: chat.Sender{Role: chat.Owner}, Turn: "turn"}
	kit, err := tools.NewKit(ctx, scope, []tools.Source{servers}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		return err
	}
	if state := servers.States()[0]; state.Phase != mcp.Connected {
		return fmt.Errorf("not connected: %s", state.LastError)
	}
	for i, t := range kit.Tools() {
		args, err := json.Marshal(map[string]int{"a": 5, "b": 3})
		if err != nil {
			return err
		}
		if t.Name != "mcp_suite_add_numbers" {
			args = []byte("{}")
		}
		call := llm.ToolCall{ID: fmt.Sprint(i), Name: t.Name, Args: string(args)}
		if got := kit.Call(ctx, tools.Call{ToolCall: call, Scope: scope}); got.Failed {
			return fmt.Errorf("%s: %s", t.Name, got.Text)
		}
	}
	return nil
}

// agreeable answers all questions with yes, and leaves the details to their defaults.
type agreeable struct{}

func (agreeable) Capabilities() *sdk.ClientCapabilities {
	form := &sdk.FormElicitationCapabilities{}
	return &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: form}}
}

func (agreeable) Answer(
	_ context.Context, _ string, _ *tools.Call, asked sdk.InputRequestMap, _ string,
) (sdk.InputResponseMap, error) {
	all := sdk.InputResponseMap{}
	for name := range asked {
		all[name] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}
	}
	return all, nil
}

func (agreeable) Resume(context.Context, string, tools.Call) (sdk.InputResponseMap, string, bool, error) {
	return nil, "", false, nil
}
