// Package demo is a model for trying Parley out: it needs no network and no
// key, always answers the same, and uses tools when asked in plain words.
package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"

	"parley/llm"
)

// Notice is the first line of every answer.
const Notice = "(I am the demo model, no real one: set OPENAI_API_KEY to talk to a real one.)"

// New returns the demo model; name is its name in config.json.
//
// It understands "call TOOL {json}" on lines of their own, "repeat: TEXT",
// and requests such as "read notes.txt", "list the files", "write hello to
// notes.txt" and "send me a message saying hello", as long as the tool that
// they need is on offer.
func New(name string) llm.Model { return model(name) }

type model string

// Generate implements llm.Model.
func (m model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	if err := ctx.Err(); err != nil {
		return llm.Message{}, err
	}
	asked, results := since(req.Messages)
	msg := llm.Message{Role: llm.Assistant, Model: string(m), Finish: llm.Stopped}
	calls, missing := wanted(asked, req.Tools)
	if len(calls) > 0 && missing == "" {
		msg.Finish, msg.Calls = llm.CallsFor, calls
		llm.Identify(msg.Calls, req.Messages)
	} else {
		msg.Text = Notice + "\n" + answer(asked, missing, results)
	}
	for _, word := range strings.SplitAfter(msg.Text, " ") {
		if err := ctx.Err(); err != nil {
			return llm.Message{}, err
		}
		if stream != nil && word != "" {
			stream(llm.Delta{Text: word})
		}
	}
	msg.Usage = usage(req, msg)
	return msg, nil
}

// since returns what was said and what tools reported after the last answer.
func since(said []llm.Message) (asked string, results []llm.Message) {
	from := len(said)
	for from > 0 && said[from-1].Role != llm.Assistant {
		from--
	}
	var lines []string
	for _, m := range said[from:] {
		if m.Role == llm.ToolRole {
			results = append(results, m)
		} else {
			lines = append(lines, m.Text)
		}
	}
	return strings.Join(lines, "\n"), results
}

func answer(asked, missing string, results []llm.Message) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, fmt.Sprintf("%s says:\n%s", r.Name, short(r.Text)))
	}
	switch {
	case missing != "":
		parts = append(parts, fmt.Sprintf("I have no tool %s here.", missing))
	case repeat.MatchString(asked):
		parts = append(parts, repeat.FindStringSubmatch(asked)[1])
	case strings.TrimSpace(asked) != "":
		parts = append(parts, "You said: "+asked)
	case len(parts) == 0:
		parts = append(parts, "You said nothing.")
	}
	return strings.Join(parts, "\n\n")
}

func short(s string) string {
	if r := []rune(s); len(r) > 500 {
		return string(r[:500]) + " …"
	}
	return s
}

// An order is a request in plain words for one tool. The groups of its
// pattern are the values for params; each param lists the names that the
// argument may have.
type order struct {
	pattern *regexp.Regexp
	tool    string
	params  []string
}

var (
	repeat = regexp.MustCompile(`(?s)\brepeat: (.*)`)
	direct = regexp.MustCompile(`^(?:.*[:\]>] )?call ([A-Za-z0-9_-]+)(?: (\{.*\}))?$`)
	orders = []order{
		{regexp.MustCompile(`(?i)\bwrite (.+) to (?:the file )?([^\s,;]*[^\s,;.!?])`), "write_file", []string{"content text", "path file"}},
		{regexp.MustCompile(`(?i)\bread (?:the file )?([^\s,;]*\.[^\s,;]*[^\s,;.!?])`), "read_file", []string{"path file"}},
		{regexp.MustCompile(`(?i)\blist (?:the |all |my )*(?:files|directory|folder)(?: in ([^\s,;]*[^\s,;.!?]))?`), "list_dir", []string{"path dir"}},
		{regexp.MustCompile(`(?i)\bsend me (?:a|the) message(?: saying)?:? (.+)`), "message", []string{"content text message"}},
	}
)

// wanted are the calls that asked asks for; missing is a tool among them that is not on offer.
func wanted(asked string, tools []llm.ToolSpec) (calls []llm.ToolCall, missing string) {
	if repeat.MatchString(asked) {
		return nil, ""
	}
	for line := range strings.Lines(asked) {
		name, args := understand(strings.TrimSpace(line), tools)
		if name == "" {
			continue
		}
		if _, ok := find(tools, name); !ok {
			missing = name
		}
		calls = append(calls, llm.ToolCall{Name: name, Args: args})
	}
	return calls, missing
}

func understand(line string, tools []llm.ToolSpec) (name, args string) {
	if m := direct.FindStringSubmatch(line); m != nil {
		if m[2] == "" {
			return m[1], "{}"
		}
		return m[1], m[2]
	}
	for _, o := range orders {
		if m := o.pattern.FindStringSubmatch(line); m != nil {
			spec, _ := find(tools, o.tool)
			return o.tool, arguments(spec, o.params, m[1:])
		}
	}
	return "", ""
}

func find(tools []llm.ToolSpec, name string) (llm.ToolSpec, bool) {
	for _, t := range tools {
		if t.Name == name {
			return t, true
		}
	}
	return llm.ToolSpec{}, false
}

// arguments names each value as the tool's schema does. A place that was not named is here.
func arguments(spec llm.ToolSpec, params, values []string) string {
	var schema struct {
		Properties map[string]any `json:"properties"`
	}
	_ = json.Unmarshal(spec.Schema, &schema)
	args := map[string]string{}
	for i, names := range params {
		key := strings.Fields(names)[0]
		for _, n := range strings.Fields(names) {
			if _, ok := schema.Properties[n]; ok {
				key = n
				break
			}
		}
		if args[key] = values[i]; values[i] == "" {
			args[key] = "."
		}
	}
	b, _ := json.Marshal(args)
	return string(b)
}

// usage takes a token for four bytes.
func usage(req llm.Request, msg llm.Message) llm.Usage {
	in, out := len(req.System), len(msg.Text)
	for _, m := range req.Messages {
		in += len(m.Text)
	}
	for _, c := range msg.Calls {
		out += len(c.Name) + len(c.Args)
	}
	return llm.Usage{In: in/4 + 1, Out: out/4 + 1}
}
