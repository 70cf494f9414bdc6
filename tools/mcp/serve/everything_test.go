package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A tiny picture and a tiny sound.
var (
	png = []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x06\x00\x00\x00\x1f\x15\xc4\x89" +
		"\x00\x00\x00\rIDATx\xdac\xfc\xcf\xf0\x1f\x00\x05\x05\x02\x00_\xc8\xf1\xd2\x00\x00\x00\x00IEND\xaeB`\x82")
	wav = []byte("RIFF\x26\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00@\x1f\x00\x00\x00}\x00\x00\x02\x00\x10\x00data\x02\x00\x00\x00")
)

// everything returns a server of c with what the conformance suite expects of servers. Names and texts are its own.
func everything(c caller) *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "everything", Version: "1"}, &mcp.ServerOptions{
		GetSessionID:       c.newSessionID,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		CompletionHandler: func(context.Context, *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
			return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: []string{"paris", "park"}, Total: 2}}, nil
		},
	})
	addContentTools(s)
	addSpeakingTools(s)
	addAskingTools(s)
	addResources(s)
	addPrompts(s)
	return s
}

// textContent returns text as content.
func textContent(format string, args ...any) mcp.Content {
	return &mcp.TextContent{Text: fmt.Sprintf(format, args...)}
}

// addTool gives s a tool without arguments, or with those of schema.
func addTool(s *mcp.Server, name, schema string, do func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error)) {
	if schema == "" {
		schema = `{"type":"object"}`
	}
	t := &mcp.Tool{Name: name, Description: "Test " + name, InputSchema: json.RawMessage(schema)}
	mcp.AddTool(s, t, func(ctx context.Context, r *mcp.CallToolRequest, _ map[string]any) (*mcp.CallToolResult, any, error) {
		content, err := do(ctx, r)
		return &mcp.CallToolResult{Content: content}, nil, err
	})
}

// addContentTools gives s tools that return each kind of content, or fail.
func addContentTools(s *mcp.Server) {
	text := textContent("This is a simple text response for testing.")
	picture := &mcp.ImageContent{Data: png, MIMEType: "image/png"}
	embedded := &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
		URI: "test://embedded-resource", MIMEType: "text/plain", Text: "This is an embedded resource content.",
	}}
	for name, content := range map[string][]mcp.Content{
		"test_simple_text":            {text},
		"test_image_content":          {picture},
		"test_audio_content":          {&mcp.AudioContent{Data: wav, MIMEType: "audio/wav"}},
		"test_embedded_resource":      {embedded},
		"test_multiple_content_types": {text, picture, embedded},
		"test_streaming_elicitation":  {text},
	} {
		addTool(s, name, "", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) { return content, nil })
	}
	addTool(s, "test_error_handling", "", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		return nil, errors.New("this tool intentionally returns an error for testing")
	})
	for name, schema := range map[string]string{
		"json_schema_2020_12_tool": schema2020,
		"test_x_mcp_header":        `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}}`,
	} {
		addTool(s, name, schema, func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
			return []mcp.Content{text}, nil
		})
	}
}

// schema2020 has what version 2020-12 of JSON Schema has to offer.
const schema2020 = `{
	"$schema": "https://json-schema.org/draft/2020-12/schema",
	"type": "object",
	"$defs": {"address": {
		"$anchor": "addressDef",
		"type": "object",
		"properties": {"street": {"type": "string"}, "city": {"type": "string"}}
	}},
	"properties": {
		"name": {"type": "string"},
		"address": {"$ref": "#/$defs/address"},
		"contactMethod": {"type": "string", "enum": ["phone", "email"]},
		"phone": {"type": "string"},
		"email": {"type": "string"}
	},
	"allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
	"if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
	"then": {"required": ["phone"]},
	"else": {"required": ["email"]},
	"additionalProperties": false
}`

// addSpeakingTools gives s tools that say something before they return.
func addSpeakingTools(s *mcp.Server) {
	for name, lines := range map[string][]string{
		"test_tool_with_logging": {"Tool execution started", "Tool processing data", "Tool execution completed"},
		"test_logging_tool":      {"test_logging_tool executed"},
	} {
		addTool(s, name, "", func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
			for _, line := range lines {
				//nolint:staticcheck // the suite wants it of the versions that have it
				if err := r.Session.Log(ctx, &mcp.LoggingMessageParams{Level: "info", Data: line}); err != nil {
					return nil, err
				}
			}
			return []mcp.Content{textContent("said")}, nil
		})
	}
	addTool(s, "test_tool_with_progress", "", func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		token := r.Params.GetProgressToken()
		for _, done := range []float64{0, 50, 100} {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
				ProgressToken: token, Progress: done, Total: 100, Message: fmt.Sprintf("Completed step %.0f of 100", done),
			}); err != nil {
				return nil, err
			}
		}
		return []mcp.Content{textContent("%v", token)}, nil
	})
	addTool(s, "test_reconnection", "", func(_ context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		if r.Extra.CloseSSEStream != nil {
			r.Extra.CloseSSEStream(mcp.CloseSSEStreamArgs{RetryAfter: 10 * time.Millisecond})
		}
		return []mcp.Content{textContent("Reconnection test completed successfully.")}, nil
	})
	addTool(s, "test_trigger_tool_change", "", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		addTool(s, "test_added_tool", "", nil)
		return []mcp.Content{textContent("added")}, nil
	})
	addTool(s, "test_trigger_prompt_change", "", func(context.Context, *mcp.CallToolRequest) ([]mcp.Content, error) {
		s.AddPrompt(&mcp.Prompt{Name: "test_added_prompt", Description: "Test added"}, nil)
		return []mcp.Content{textContent("added")}, nil
	})
}

// addAskingTools gives s tools that ask the client for something.
func addAskingTools(s *mcp.Server) {
	const prompt = `{"type":"object","properties":{"prompt":{"type":"string"},"message":{"type":"string"}}}`
	//nolint:staticcheck // the suite wants sampling of the versions that have it
	addTool(s, "test_sampling", prompt, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		answer, err := r.Session.CreateMessage(ctx, &mcp.CreateMessageParams{
			Messages:  []*mcp.SamplingMessage{{Role: "user", Content: textContent("Test prompt for sampling")}},
			MaxTokens: 100,
		})
		if err != nil {
			return nil, err
		}
		return []mcp.Content{textContent("LLM response: "), answer.Content}, nil
	})
	addTool(s, "test_missing_capability", "", func(_ context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
		//nolint:staticcheck // as above
		if can := r.ClientCapabilities(); can != nil && can.Sampling != nil {
			return []mcp.Content{textContent("The client can sample.")}, nil
		}
		return nil, &jsonrpc.Error{
			Code:    mcp.CodeMissingRequiredClientCapabilities,
			Message: "the client cannot sample",
			Data:    json.RawMessage(`{"requiredCapabilities":{"sampling":{}}}`),
		}
	})
	for name, properties := range map[string]string{
		"test_elicitation": `{"username": {"type": "string", "description": "User's response"},
			"email": {"type": "string", "description": "User's email address"}}`,
		"test_elicitation_sep1034_defaults": `{
			"name": {"type": "string", "default": "John Doe"},
			"age": {"type": "integer", "default": 30},
			"score": {"type": "number", "default": 95.5},
			"status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
			"verified": {"type": "boolean", "default": true}}`,
		"test_elicitation_sep1330_enums": `{
			"untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
			"titledSingle": {"type": "string", "oneOf": [{"const": "value1", "title": "First Option"},
				{"const": "value2", "title": "Second Option"}, {"const": "value3", "title": "Third Option"}]},
			"legacyEnum": {"type": "string", "enum": ["opt1", "opt2", "opt3"],
				"enumNames": ["Option One", "Option Two", "Option Three"]},
			"untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
			"titledMulti": {"type": "array", "items": {"anyOf": [{"const": "value1", "title": "First Choice"},
				{"const": "value2", "title": "Second Choice"}, {"const": "value3", "title": "Third Choice"}]}}}`,
	} {
		addTool(s, name, prompt, func(ctx context.Context, r *mcp.CallToolRequest) ([]mcp.Content, error) {
			schema := json.RawMessage(`{"type":"object","properties":` + properties + `}`)
			answer, err := r.Session.Elicit(ctx, &mcp.ElicitParams{Message: "Please answer.", RequestedSchema: schema})
			if err != nil {
				return nil, err
			}
			return []mcp.Content{textContent("User response: action=%s, content=%v", answer.Action, answer.Content)}, nil
		})
	}
}

// addResources gives s the resources that are read and watched.
func addResources(s *mcp.Server) {
	for uri, content := range map[string]mcp.ResourceContents{
		"test://static-text":      {MIMEType: "text/plain", Text: "This is the content of the static text resource."},
		"test://static-binary":    {MIMEType: "image/png", Blob: png},
		"test://watched-resource": {MIMEType: "text/plain", Text: "Watched resource content"},
	} {
		content.URI = uri
		r := &mcp.Resource{Name: strings.TrimPrefix(uri, "test://"), URI: uri, MIMEType: content.MIMEType}
		s.AddResource(r, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{&content}}, nil
		})
	}
	template := &mcp.ResourceTemplate{Name: "template", URITemplate: "test://template/{id}/data", MIMEType: "application/json"}
	s.AddResourceTemplate(template, func(_ context.Context, r *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
		id := strings.TrimSuffix(strings.TrimPrefix(r.Params.URI, "test://template/"), "/data")
		return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
			URI: r.Params.URI, MIMEType: "application/json",
			Text: fmt.Sprintf(`{"id":%q,"templateTest":true,"data":"Data for ID: %s"}`, id, id),
		}}}, nil
	})
}

// addPrompts gives s prompts with each kind of content.
func addPrompts(s *mcp.Server) {
	for name, p := range map[string]struct {
		args    []string
		content func(args map[string]string) mcp.Content
	}{
		"test_simple_prompt": {nil, func(map[string]string) mcp.Content {
			return textContent("This is a simple prompt for testing.")
		}},
		"test_prompt_with_arguments": {[]string{"arg1", "arg2"}, func(args map[string]string) mcp.Content {
			return textContent("Prompt with arguments: arg1='%s', arg2='%s'", args["arg1"], args["arg2"])
		}},
		"test_prompt_with_embedded_resource": {[]string{"resourceUri"}, func(args map[string]string) mcp.Content {
			return &mcp.EmbeddedResource{Resource: &mcp.ResourceContents{
				URI: args["resourceUri"], MIMEType: "text/plain", Text: "Embedded resource content for testing.",
			}}
		}},
		"test_prompt_with_image": {nil, func(map[string]string) mcp.Content {
			return &mcp.ImageContent{Data: png, MIMEType: "image/png"}
		}},
	} {
		prompt := &mcp.Prompt{Name: name, Description: "Test " + name}
		for _, arg := range p.args {
			prompt.Arguments = append(prompt.Arguments, &mcp.PromptArgument{Name: arg, Required: true})
		}
		s.AddPrompt(prompt, func(_ context.Context, r *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
			message := &mcp.PromptMessage{Role: "user", Content: p.content(r.Params.Arguments)}
			return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{message}}, nil
		})
	}
}
