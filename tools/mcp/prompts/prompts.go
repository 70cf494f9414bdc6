// Package prompts makes slash commands of the prompts of MCP servers (D-111): a message such as
// "/mcp_notes_prompt_plan city=Paris" begins its turn with the call of the tool of that name.
package prompts

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley/chat"
	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
)

// maxListed is how many prompts a person is told of who names one that does not exist.
const maxListed = 50

// Offer has people call the prompts that kit has by slash commands. kit is complete.
func Offer(kit *tools.Kit, say *texts.MCP) *tools.Kit {
	kit.Command = func(text string) ([]llm.ToolCall, string) { return call(kit, say, text) }
	return kit
}

// call is the Command of kit.
func call(kit *tools.Kit, say *texts.MCP, text string) (calls []llm.ToolCall, problem string) {
	word, rest := chat.Word(text)
	name, isCommand := strings.CutPrefix(word, "/")
	name, _, _ = strings.Cut(name, "@") // the bot that it is for, in groups
	if !isCommand || !tools.IsCommand(strings.ToLower(name)) {
		return nil, ""
	}
	all := promptsOf(kit)
	at := slices.IndexFunc(all, func(p prompt) bool { return strings.EqualFold(p.tool.Name, name) })
	if at < 0 {
		return nil, unknown(say, all, name)
	}
	p := all[at]
	values := p.read(rest)
	for _, required := range p.required {
		if values[required] == "" {
			return nil, say.PromptUsage.With(p.usage())
		}
	}
	args, err := json.Marshal(values)
	if err != nil {
		return nil, say.PromptUsage.With(p.usage())
	}
	return []llm.ToolCall{{ID: "command", Name: p.tool.Name, Args: string(args), Through: p.tool.Through}}, ""
}

// unknown tells a person which prompts there are.
func unknown(say *texts.MCP, all []prompt, name string) string {
	text := say.NoPrompt.With(chat.Inline(strings.ReplaceAll(name, "`", "'"), 100))
	if len(all) == 0 {
		return text
	}
	text += "\n\n" + say.Prompts
	for _, p := range all[:min(len(all), maxListed)] {
		text += "\n- `" + p.usage() + "`"
	}
	return text
}

// A prompt is a tool that fills in a prompt of a server.
type prompt struct {
	tool      tools.Tool
	arguments []string // sorted
	required  []string
}

// promptsOf returns the prompts that kit has, sorted by name. Those that are withheld are not among them.
func promptsOf(kit *tools.Kit) (all []prompt) {
	for t := range kit.All() {
		if t.Hidden || t.AliasOf != "" || !t.ReadOnly || !strings.HasPrefix(t.Category, "mcp_") ||
			!strings.HasPrefix(t.Description, mcp.PromptMark) {
			continue
		}
		var schema struct {
			Properties map[string]any `json:"properties"`
			Required   []string       `json:"required"`
		}
		if err := json.Unmarshal(t.Schema, &schema); err != nil {
			continue
		}
		all = append(all, prompt{*t, slices.Sorted(maps.Keys(schema.Properties)), schema.Required})
	}
	slices.SortFunc(all, func(a, b prompt) int { return strings.Compare(a.tool.Name, b.tool.Name) })
	return all
}

// usage says how to write the command.
func (p prompt) usage() string {
	text := "/" + p.tool.Name
	for _, name := range p.arguments {
		name = chat.Inline(strings.ReplaceAll(name, "`", "'"), 100)
		if slices.Contains(p.required, name) {
			text += fmt.Sprintf(" %s=…", name)
		} else {
			text += fmt.Sprintf(" (%s=…)", name)
		}
	}
	return text
}

// read returns the values that text gives to the arguments: each follows its name and "=", up to the next
// name. What stands before the first name, or all without names, is for the only argument, or the only
// required one.
func (p prompt) read(text string) map[string]string {
	values := map[string]string{}
	at := p.only()
	var words []string
	end := func() {
		value := strings.Trim(strings.TrimSpace(strings.Join(words, " ")), `"“”`)
		if at != "" && value != "" {
			values[at] = value
		}
		words = nil
	}
	for word := range strings.FieldsSeq(text) {
		name, value, ok := strings.Cut(word, "=")
		if ok && slices.Contains(p.arguments, name) {
			end()
			at = name
			word = value
		}
		words = append(words, word)
	}
	end()
	return values
}

// only returns the argument that needs no name, "" if there is none.
func (p prompt) only() string {
	switch {
	case len(p.arguments) == 1:
		return p.arguments[0]
	case len(p.required) == 1:
		return p.required[0]
	}
	return ""
}
