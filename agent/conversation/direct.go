package conversation

import (
	"parley/chat"
	"parley/llm"
)

// DirectCalls returns the call that answers m instead of a model, if one does.
func DirectCalls(m chat.Message) []llm.ToolCall {
	if m.Options == nil || m.Options.Tool == "" {
		return nil
	}
	return []llm.ToolCall{{ID: "errand", Name: m.Options.Tool, Args: m.Options.Args}}
}

// ToolOptions returns how m is answered if it is an owner's command to run a tool, such as
// "/tool calculator {"expression":"1+1"}" (B-018), and otherwise nil.
func ToolOptions(command string, m chat.Message) *chat.RunOptions {
	if command != "tool" || m.From.Role != chat.Owner {
		return nil
	}
	_, rest := chat.Word(m.Text)
	name, args := chat.Word(rest)
	if name == "" {
		return nil
	}
	return &chat.RunOptions{Tool: name, Args: args}
}
