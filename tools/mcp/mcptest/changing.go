package mcptest

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// A Changing is a server, reached by HTTP, whose tools change.
type Changing struct {
	URL    string
	server *sdk.Server
}

// NewChanging returns a server without tools, which ends with the test.
func NewChanging(t testing.TB) *Changing { return NewInstructing(t, "") }

// NewInstructing is NewChanging for a server that has instructions.
func NewInstructing(t testing.TB, instructions string) *Changing {
	o := &sdk.ServerOptions{Instructions: instructions}
	server := sdk.NewServer(&sdk.Implementation{Name: "changing", Version: "1"}, o)
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	t.Cleanup(func() {
		at.CloseClientConnections()
		at.Close()
	})
	return &Changing{URL: at.URL, server: server}
}

// Offer adds a tool, or changes the one of that name. It only reads, and says its own name.
func (c *Changing) Offer(name, description string) {
	tool := &sdk.Tool{
		Name:        name,
		Description: description,
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
		InputSchema: map[string]any{"type": "object"},
	}
	c.server.AddTool(tool, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "this is " + name}}}, nil
	})
}

// OfferPrompt adds a prompt with arguments, of which the first is required. It repeats them.
func (c *Changing) OfferPrompt(name, description string, arguments ...string) {
	prompt := &sdk.Prompt{Name: name, Description: description}
	for n, argument := range arguments {
		prompt.Arguments = append(prompt.Arguments, &sdk.PromptArgument{Name: argument, Required: n == 0})
	}
	c.server.AddPrompt(prompt, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		text := "this is " + name
		for _, argument := range arguments {
			text += ", " + argument + " " + r.Params.Arguments[argument]
		}
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{{Role: "user", Content: &sdk.TextContent{Text: text}}}}, nil
	})
}

// Remove removes a tool.
func (c *Changing) Remove(name string) { c.server.RemoveTools(name) }
