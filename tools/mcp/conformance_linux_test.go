package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
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

// TestConformance: the official suite finds nothing wrong with the client. The scenarios about signing in are
// run in package signin.
func TestConformance(t *testing.T) {
	suite := mcptest.Package(t, "conformance/dist/index.js")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, scenario := range mcptest.ClientScenarios(t, suite) {
		if strings.HasPrefix(scenario, "auth/") {
			continue
		}
		t.Run(scenario, func(t *testing.T) {
			t.Parallel()
			run := exec.CommandContext(t.Context(), mcptest.Node(), suite, "client",
				"--command", self+" "+conformanceClient, "--scenario", scenario, "--timeout", "120000", "--output-dir", t.TempDir())
			if out, err := run.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// beConformanceClient connects to the server at url as Parley does, and calls each tool once.
func beConformanceClient(url string) error {
	ctx, stop := context.WithTimeout(context.Background(), 110*time.Second)
	defer stop()
	servers := mcp.New(mcp.Config{Log: slog.New(slog.NewTextHandler(os.Stderr, nil)), Inputs: new(agreeable)})
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
		if got := callToEnd(ctx, kit, tools.Call{ToolCall: call, Scope: scope}); got.Failed {
			return fmt.Errorf("%s: %s", t.Name, got.Text)
		}
	}
	return nil
}

// agreeable answers all questions with yes, and leaves the details to their defaults.
type agreeable struct{ kept sync.Map } // call -> mcp.Questions

func (*agreeable) Begin(context.Context) {}

func (*agreeable) Capabilities() *sdk.ClientCapabilities {
	form := &sdk.FormElicitationCapabilities{}
	return &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{Form: form}}
}

func (a *agreeable) Keep(_ context.Context, _ string, c tools.Call, q mcp.Questions) error {
	a.kept.Store(c.Key(), q)
	return nil
}

func (a *agreeable) Kept(c tools.Call) bool {
	_, ok := a.kept.Load(c.Key())
	return ok
}

func (a *agreeable) Answer(_ context.Context, c tools.Call) (mcp.Answers, error) {
	asked, _ := a.kept.LoadAndDelete(c.Key())
	q := asked.(mcp.Questions)
	given := mcp.Answers{All: sdk.InputResponseMap{}, State: q.State, Round: q.Round}
	for name := range q.All {
		given.All[name] = &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}
	}
	return given, nil
}

func (*agreeable) AnswerNow(context.Context, string, tools.Call, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	return &sdk.ElicitResult{Action: "accept", Content: map[string]any{}}, nil
}

func (*agreeable) SampleNow(
	context.Context, string, tools.Call, *mcp.SamplingRequest,
) (*mcp.SamplingResult, error) {
	return nil, errors.New("there is no model")
}

// callToEnd calls a tool, and again while the call waits for an answer.
func callToEnd(ctx context.Context, kit *tools.Kit, c tools.Call) tools.Result {
	for {
		if got := kit.Call(ctx, c); got.Code != tools.CodeWaiting {
			return got
		}
	}
}
