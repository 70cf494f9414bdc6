package serve

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/timetest"
)

// A codingClient speaks the channel extension with a Bridge as coding agents do: line by line.
type codingClient struct {
	t      *testing.T
	bridge *testBridge
	to     io.Writer
	lines  *bufio.Scanner
}

// newCodingClient returns a client that has not said anything yet.
func newCodingClient(t *testing.T) *codingClient {
	b := &testBridge{gateway: timetest.NewListener()}
	_ = b.gateway.Close()
	to, from := b.run(t, "code")
	c := &codingClient{t: t, bridge: b, to: to, lines: bufio.NewScanner(from)}
	t.Cleanup(func() { _ = to.Close() })
	return c
}

func (c *codingClient) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c.to, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

// hears returns the next line.
func (c *codingClient) hears() string {
	c.t.Helper()
	if !c.lines.Scan() {
		c.t.Fatal("the bridge has ended")
	}
	return c.lines.Text()
}

// begin says what Claude Code 2.1 says first, and returns the answer to its handshake.
func (c *codingClient) begin() string {
	c.t.Helper()
	c.say(`{"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"roots":{},"elicitation":{}},` +
		`"clientInfo":{"name":"claude-code","version":"2.1.197"}},"jsonrpc":"2.0","id":0}`)
	answer := c.hears()
	c.say(`{"method":"notifications/initialized","jsonrpc":"2.0"}`)
	c.say(`{"method":"tools/list","jsonrpc":"2.0","id":1}`)
	c.hears()
	return answer
}

// serveCoding begins a Server with one message to the coding session, whose questions to people are answered by
// answer, and returns what ends it.
func (b *testBridge) serveCoding(answer func(ctx context.Context, question string) (choice string)) (end func()) {
	var once sync.Once
	ended := make(chan struct{})
	kill := b.serveTools(func(server *mcp.Server) {
		type call = *mcp.CallToolRequest
		wait := func(ctx context.Context, _ call, _ waitInput) (*mcp.CallToolResult, codingMessages, error) {
			got := codingMessages{Messages: []codingMessage{}}
			once.Do(func() {
				when := time.Date(2026, 11, 23, 1, 59, 51, 0, time.UTC)
				got.Messages = []codingMessage{{ID: "m1", From: "Ann", Chat: "telegram:42", Time: when, Text: "hello"}}
			})
			if len(got.Messages) == 0 {
				select {
				case <-ctx.Done():
				case <-ended:
				}
			}
			return nil, got, nil
		}
		ask := func(ctx context.Context, _ call, in personInput) (*mcp.CallToolResult, personOutput, error) {
			return nil, personOutput{Choice: answer(ctx, in.Question)}, nil
		}
		mcp.AddTool(server, &mcp.Tool{Name: "wait_for_message"}, wait)
		mcp.AddTool(server, &mcp.Tool{Name: "ask_person"}, ask)
	})
	return func() {
		close(ended)
		kill()
	}
}

// TestChannelExtension: what is sent is what Claude Code 2.1.197 takes: capabilities that are there, text in content,
// meta of texts under names that it takes as attributes, and nothing before it listens. That was up to 1.3 seconds
// after it was told the tools; it drops what is sent earlier.
func TestChannelExtension(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCodingClient(t)
		defer c.bridge.serveCoding(func(context.Context, string) string { return allow })()
		if answer := c.begin(); !strings.Contains(answer,
			`"experimental":{"claude/channel":{},"claude/channel/permission":{}}`) {
			t.Errorf("capabilities: %s", answer)
		}
		listed := time.Now()
		got := c.hears()
		if early := time.Since(listed); early < listenTime {
			t.Errorf("pushed %v after the tools were listed, when the client does not listen yet", early)
		}
		var pushed struct {
			Method string
			Params struct {
				Content string            `json:"content"`
				Meta    map[string]string `json:"meta"`
			}
		}
		want := `{"jsonrpc":"2.0","method":"notifications/claude/channel","params":{"content":"hello","meta":` +
			`{"chat_id":"telegram:42","message_id":"m1","ts":"2026-11-23T01:59:51Z","user":"Ann"}}}`
		if err := json.Unmarshal([]byte(got), &pushed); err != nil || got != want {
			t.Errorf("pushed %s, %v\nwant   %s", got, err, want)
		}
		attribute := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
		for name := range pushed.Params.Meta {
			if !attribute.MatchString(name) {
				t.Errorf("the client drops %q", name)
			}
		}
		c.say(`{"method":"notifications/claude/channel/permission_request","params":{"request_id":"abcde",` +
			`"tool_name":"Bash","description":"list files","input_preview":"{\"command\":\"ls\"}"},"jsonrpc":"2.0"}`)
		want = `{"jsonrpc":"2.0","method":"notifications/claude/channel/permission","params":` +
			`{"behavior":"allow","request_id":"abcde"}}`
		if got := c.hears(); got != want {
			t.Errorf("permission %s\nwant       %s", got, want)
		}
	})
}

// TestPermissionQuestion: R-S22: what a coding session says of what it wants to do is shown to the person as what it
// says: quoted, cut, and without markup.
func TestPermissionQuestion(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		asked permission
		want  string
	}{
		"usual": {
			permission{Tool: "Bash", Description: "List files", Preview: `{"command":"ls"}`},
			"💻 The coding session `code` wants to use `Bash`. It says:\n> `List files`\n> `{\"command\":\"ls\"}`",
		},
		"nothing said": {permission{Tool: "Bash"}, "💻 The coding session `code` wants to use `Bash`."},
		"no name":      {permission{}, "💻 The coding session `code` wants to use `?`."},
		"markup": {
			permission{
				Tool:        "Bash`\n\n# Parley",
				Description: "safe`\n\n**Parley:** [allow this](https://evil.example)\n@everyone",
				Preview:     "```\n\u202exyz\x1b[31m",
			},
			"💻 The coding session `code` wants to use `Bash' # Parley`. It says:\n> `safe'`\n" +
				"> `**Parley:** [allow this](https://evil.example)`\n> `@everyone`\n> `'''`\n> `xyz [31m`",
		},
		"long": {
			permission{Tool: strings.Repeat("t", 500), Description: strings.Repeat("d", 9000), Preview: strings.Repeat("p", 9000)},
			"💻 The coding session `code` wants to use `" + strings.Repeat("t", 100) + "…`. It says:\n> `" +
				strings.Repeat("d", 500) + "…`\n> `" + strings.Repeat("p", 1000) + "…`",
		},
	} {
		if got := c.asked.question("code"); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", name, got, c.want)
		}
	}
}

// TestManyPermissions: a coding session that asks for one permission after another has eight questions open, and the
// oldest is taken back for the next. The same request is asked once.
func TestManyPermissions(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := newCodingClient(t)
		var mu sync.Mutex
		open, asked := map[string]bool{}, 0
		finish := make(chan struct{})
		defer c.bridge.serveCoding(func(ctx context.Context, question string) string {
			mu.Lock()
			open[question] = true
			asked++
			mu.Unlock()
			select {
			case <-ctx.Done():
			case <-finish:
			}
			mu.Lock()
			defer mu.Unlock()
			delete(open, question)
			return ""
		})()
		defer close(finish)
		c.begin()
		c.hears()
		for n := range 20 {
			request := `{"method":"notifications/claude/channel/permission_request","params":{"request_id":"%d",` +
				`"tool_name":"tool-%[1]d","description":"","input_preview":""},"jsonrpc":"2.0"}`
			c.say(fmt.Sprintf(request, n))
			synctest.Wait()
			c.say(fmt.Sprintf(request, n))
			synctest.Wait()
		}
		mu.Lock()
		defer mu.Unlock()
		if asked != 20 || len(open) != 8 {
			t.Errorf("%d questions were asked, want 20; %d are open, want 8", asked, len(open))
		}
		for n := 12; n < 20; n++ {
			if text := fmt.Sprintf("💻 The coding session `code` wants to use `tool-%d`.", n); !open[text] {
				t.Errorf("%q is not open", text)
			}
		}
	})
}
