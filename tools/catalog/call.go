package catalog

import (
	"context"
	"encoding/json"

	"parley/llm"
	"parley/tools"
)

const (
	callDescription = "Calls a tool that you found."

	callSchema = `{"type":"object","properties":{` +
		`"name":{"type":"string"},` +
		`"arguments":{"type":"object","description":"as ` + FindName + ` shows them"}},` +
		`"required":["name"]}`
)

// callTool returns call_tool. It never runs unless it is called without the name of a tool: a call of it
// stands for one of that tool.
func callTool() tools.Tool {
	return tools.Tool{
		ToolSpec: llm.ToolSpec{Name: CallName, Description: callDescription, Schema: json.RawMessage(callSchema)},
		Hints:    tools.Hints{Category: category, Use: tools.Basic, ReadOnly: true, Repeatable: true},
		Inner:    innerCall,
		Run: func(context.Context, tools.Call) (tools.Result, error) {
			const text = "name is required: the whole name of a tool that %s found"
			return tools.Failf(tools.CodeInvalid, text, FindName), nil
		},
	}
}

// argumentKeys are the names under which models pass on the arguments of the inner tool.
var argumentKeys = []string{"arguments", "args", "parameters", "params", "input"}

// innerCall returns the call that one of call_tool with these arguments stands for. Models also write the
// inner arguments as a text, or beside the name.
func innerCall(args string) (name, inner string, ok bool) {
	var in map[string]json.RawMessage
	if json.Unmarshal([]byte(args), &in) != nil || json.Unmarshal(in["name"], &name) != nil || name == "" {
		return "", "", false
	}
	delete(in, "name")
	for _, key := range argumentKeys {
		value, has := in[key]
		if !has || key != argumentKeys[0] && len(in) > 1 {
			continue
		}
		var text string
		switch {
		case string(value) == "null":
			return name, "{}", true
		case json.Unmarshal(value, &text) == nil:
			return name, text, true
		case value[0] == '{':
			return name, string(value), true
		}
	}
	rest, err := json.Marshal(in)
	return name, string(rest), err == nil
}
