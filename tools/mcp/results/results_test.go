package results_test

import (
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/timetest"
	"parley/tools"
	"parley/tools/mcp/results"
)

// R-S22: it takes no time out of proportion to find out that structured content says nothing new.
func TestStructuredBomb(t *testing.T) {
	const value = "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxy"
	values := make([]any, 2000)
	for i := range values {
		values[i] = value
	}
	got := &sdk.CallToolResult{
		Content:           []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 8<<20) + value}},
		StructuredContent: map[string]any{"values": values},
	}
	begin := timetest.CPUTime(t)
	r := new(results.Maker).OfTool(tools.Call{}, got)
	if took := timetest.CPUTime(t) - begin; took > 3*time.Second {
		t.Errorf("it took %v", took)
	}
	if !strings.HasSuffix(r.Text, "]}") {
		t.Error("what was not compared to the end is left out")
	}
}
