package mcptest

import (
	"context"
	"encoding/json"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Sample are the arguments of the tool sample of an [Asking]: what it asks the client's model. It returns the
// answers, in JSON.
type Sample struct {
	Prompts   []string `json:"prompts"` // each a request, all at once
	System    string   `json:"system,omitempty"`
	MaxTokens int64    `json:"maxTokens,omitempty"`
	Stops     []string `json:"stops,omitempty"`
	Model     string   `json:"model,omitempty"` // that it would like
	Tools     bool     `json:"tools,omitempty"`
	Context   string   `json:"context,omitempty"`
	Times     int      `json:"times,omitempty"` // how often it asks, if not once
}

// sample is the tool sample.
func (a *Asking) sample(_ context.Context, r *sdk.CallToolRequest, in Sample) (*sdk.CallToolResult, any, error) {
	if p := r.Session.InitializeParams(); p != nil && p.Capabilities != nil {
		a.MaySample.Store(p.Capabilities.Sampling != nil) //nolint:staticcheck // it is tested
	}
	round := 0
	if r.Params.RequestState != "" {
		if _, err := fmt.Sscanf(r.Params.RequestState, "round %d", &round); err != nil {
			return nil, nil, err
		}
		a.Done.Add(1)
	}
	if round > 0 && round >= in.Times {
		text, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "answered: " + string(text)}}}, nil, err
	}
	a.Asked.Add(1)
	all := sdk.InputRequestMap{}
	for n, prompt := range in.Prompts {
		//nolint:staticcheck // the protocol deprecates what is tested
		p := &sdk.CreateMessageWithToolsParams{
			Messages:       []*sdk.SamplingMessageV2{{Role: "user", Content: []sdk.Content{&sdk.TextContent{Text: prompt}}}},
			SystemPrompt:   in.System,
			MaxTokens:      in.MaxTokens,
			StopSequences:  in.Stops,
			IncludeContext: in.Context,
		}
		if in.Model != "" {
			hints := []*sdk.ModelHint{{Name: in.Model}}              //nolint:staticcheck // it is tested
			p.ModelPreferences = &sdk.ModelPreferences{Hints: hints} //nolint:staticcheck // it is tested
		}
		if in.Tools {
			p.Tools = []*sdk.Tool{{Name: "rm", InputSchema: map[string]any{"type": "object"}}}
		}
		all[fmt.Sprint("prompt", n)] = p
	}
	return &sdk.CallToolResult{InputRequests: all, RequestState: fmt.Sprintf("round %d", round+1)}, nil, nil
}
