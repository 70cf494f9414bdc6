// Package demo is a model for trying Parley out: it needs no network and no
// key, always answers the same, and uses tools when asked in plain words.
package demo

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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
	asked, results := latestMessages(req.Messages)
	msg := llm.Message{Role: llm.Assistant, Model: string(m), Finish: llm.Stopped}
	calls, missing := callsFor(asked, req.Tools)
	if len(calls) > 0 && missing == "" {
		msg.Finish = llm.CallsTools
		msg.Calls = calls
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
	msg.Usage = llm.Usage{In: req.EstimateTokens(), Out: msg.EstimateTokens()}
	return msg, nil
}

// latestMessages returns what people wrote and what tools returned after the last answer.
func latestMessages(history []llm.Message) (asked string, results []llm.Message) {
	from := len(history)
	for from > 0 && history[from-1].Role != llm.Assistant {
		from--
	}
	var lines []string
	for _, m := range history[from:] {
		if m.Role == llm.ToolRole {
			results = append(results, m)
		} else {
			lines = append(lines, ownWords(m.Text))
		}
	}
	return strings.Join(lines, "\n"), results
}

var (
	headerForm = regexp.MustCompile(`^\[\w{3} \d{4}-\d\d-\d\d \d\d:\d\d[^\n]*\]\n`)
	quoteForm  = regexp.MustCompile(`^(> [^\n]*\n)+`)
)

// ownWords returns what a person wrote: text without the header that Parley puts
// before it, and without the quote below that.
func ownWords(text string) string {
	header := headerForm.FindString(text)
	text = text[len(header):]
	if strings.HasSuffix(header, "quoted below]\n") {
		text = text[len(quoteForm.FindString(text)):]
	}
	return text
}

func answer(asked, missing string, results []llm.Message) string {
	var parts []string
	for _, r := range results {
		parts = append(parts, fmt.Sprintf("%s says:\n%s", r.Name, clip(r.Text)))
	}
	switch {
	case missing != "":
		parts = append(parts, fmt.Sprintf("I have no tool %s here.", missing))
	case repeatForm.MatchString(asked):
		parts = append(parts, repeatForm.FindStringSubmatch(asked)[1])
	case strings.TrimSpace(asked) != "":
		parts = append(parts, "You said: "+asked)
	case len(parts) == 0:
		parts = append(parts, "You said nothing.")
	}
	return strings.Join(parts, "\n\n")
}

const maxResult = 500 // runes of a tool's result that are repeated

func clip(s string) string {
	if runes := []rune(s); len(runes) > maxResult {
		return string(runes[:maxResult]) + " …"
	}
	return s
}

// A phrase is a request in plain words for one tool. The groups of its pattern are
// the values of params.
type phrase struct {
	pattern *regexp.Regexp
	tool    string
	params  []string
}

var (
	repeatForm = regexp.MustCompile(`(?s)\brepeat: (.*)`)
	callForm   = regexp.MustCompile(`^call ([A-Za-z0-9_-]+)(?: (\{.*\}))?$`)
	phrases    = []phrase{
		{
			regexp.MustCompile(`(?i)\bwrite (.+) to (?:the file )?([^\s,;]*[^\s,;.!?])`),
			"write_file",
			[]string{"content", "path"},
		},
		{regexp.MustCompile(`(?i)\bread (?:the file )?([^\s,;]*\.[^\s,;]*[^\s,;.!?])`), "read_file", []string{"path"}},
		{
			regexp.MustCompile(`(?i)\blist (?:the |all |my )*(?:files|directory|folder)(?: in ([^\s,;]*[^\s,;.!?]))?`),
			"list_dir",
			[]string{"path"},
		},
		{regexp.MustCompile(`(?i)\bsend me (?:a|the) message(?: saying)?:? (.+)`), "message", []string{"text"}},
	}
)

// callsFor returns the calls that asked asks for. missing is a tool among them that
// is not in tools.
func callsFor(asked string, tools []llm.ToolSpec) (calls []llm.ToolCall, missing string) {
	if repeatForm.MatchString(asked) {
		return nil, ""
	}
	for line := range strings.Lines(asked) {
		name, args := parseCall(strings.TrimSpace(line))
		if name == "" {
			continue
		}
		if !slices.ContainsFunc(tools, func(t llm.ToolSpec) bool { return t.Name == name }) {
			missing = name
		}
		calls = append(calls, llm.ToolCall{Name: name, Args: args})
	}
	return calls, missing
}

// parseCall returns the call that a line asks for, "" if it asks for none.
func parseCall(line string) (name, args string) {
	if m := callForm.FindStringSubmatch(line); m != nil {
		return m[1], cmp.Or(m[2], "{}")
	}
	for _, o := range phrases {
		if m := o.pattern.FindStringSubmatch(line); m != nil {
			values := map[string]string{}
			for i, param := range o.params {
				values[param] = cmp.Or(m[i+1], ".") // a missing path is the current folder
			}
			b, _ := json.Marshal(values)
			return o.tool, string(b)
		}
	}
	return "", ""
}
