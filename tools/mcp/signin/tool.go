package signin

import (
	"context"
	"encoding/json"
	"errors"

	"parley/llm"
	"parley/tools"
	"parley/tools/mcp"
)

// Tool implements [mcp.SignIn]. It offers a tool that asks a person to sign in, as long as they have
// not: no tools are missing without a word.
func (s *SignIn) Tool(ctx context.Context, service mcp.Service, scope tools.Scope) (tools.Tool, bool) {
	t := newTarget(service)
	name := t.Name
	k := key{name, scope.Whose()}
	if !s.Personal(service) || !scope.Group && s.account(k).isSignedIn(ctx, t) {
		return tools.Tool{}, false
	}
	tool := tools.Tool{
		ToolSpec: llm.ToolSpec{
			Name: mcp.WrapName(name, mcp.SignInTool),
			Description: "The tools of the MCP server " + name + " are missing, because this person has not " +
				"signed in to it, or not for a long time. If you need them, call this: the person gets a link, and " +
				"you wait until they have signed in. Its tools are there then.",
			Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`),
		},
		Hints: tools.Hints{
			Category: mcp.Category(name), Exclusive: true, ReadOnly: true, Timeout: -1, Repeatable: true,
		},
	}
	tool.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		if c.Group {
			return tools.Failf(tools.CodeDenied, "%s", s.config.Texts.InPrivate.With(name)), nil
		}
		f, err := s.beginUnasked(ctx, service, c.Whose())
		if err != nil {
			return tools.Result{}, err
		}
		f.askAt(c.Scope)
		err = f.wait(ctx)
		switch {
		case ctx.Err() != nil:
			return tools.Result{}, context.Cause(ctx)
		case errors.Is(err, errRefused):
			return tools.Failf(tools.CodeRefused, "the person did not sign in to %s: go on without it", name), nil
		case err != nil:
			return tools.Failf(tools.CodeError, "nobody signed in to %s: %v", name, err), nil
		}
		text := "The person has signed in to " + name + ". You have its tools now."
		return tools.Result{Text: text, NewTools: true}, nil
	}
	return tool, true
}
