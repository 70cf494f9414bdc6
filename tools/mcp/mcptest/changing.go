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
func NewChanging(t testing.TB) *Changing {
	server := sdk.NewServer(&sdk.Implementation{Name: "changing", Version: "1"}, nil)
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

// Remove removes a tool.
func (c *Changing) Remove(name string) { c.server.RemoveTools(name) }
