// Package demo is a model for trying Parley out: it needs no network and no key, and
// always answers the same. It understands a table of requests in plain words, does
// them with the tools that a real model would use, and proposes what to try next.
package demo

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"parley/llm"
)

// What the first answer in a conversation begins with: to owners, and to others, who cannot change the model.
const (
	Notice      = "(I am the demo model, no real one: set OPENAI_API_KEY to talk to a real one.)"
	GuestNotice = "(I am the demo model, no real one.)"
	whatItIs    = "(I am the demo model, no real one" // both begin so
)

// New returns the demo model; name is its name in config.json.
//
// It understands "call TOOL {json}" on lines of their own, "repeat: TEXT", and the
// phrases in this package, as long as the tool that they need is on offer.
func New(name string) llm.Model { return model(name) }

type model string

// Generate implements llm.Model.
func (m model) Generate(ctx context.Context, req llm.Request, stream func(llm.Delta)) (llm.Message, error) {
	if err := ctx.Err(); err != nil {
		return llm.Message{}, err
	}
	msg := llm.Message{Role: llm.Assistant, Model: string(m), Finish: llm.Stopped}
	var next move
	if strings.HasPrefix(req.System, titleInstructions) {
		next.text = title(req)
	} else {
		next = readConversation(req, time.Now()).next()
	}
	msg.Text = next.text
	for _, c := range next.calls {
		msg.Finish = llm.CallsTools
		msg.Calls = append(msg.Calls, llm.ToolCall{Name: c.tool, Args: c.args})
	}
	llm.Identify(msg.Calls, req.Messages)
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

// A move is what the model does next: it makes calls, or says something.
type move struct {
	text  string
	calls []call
}

// A call is one of a tool, with its arguments as JSON.
type call struct{ tool, args string }

// callOf returns a call of tool with arguments that are given as names and values.
func callOf(tool string, args ...any) call {
	values := map[string]any{}
	for i := 0; i+1 < len(args); i += 2 {
		values[args[i].(string)] = args[i+1]
	}
	b, _ := json.Marshal(values) // texts and numbers
	return call{tool, string(b)}
}

// next returns the move that continues c.
func (c conversation) next() move {
	calls, missing := c.wanted()
	switch {
	case missing != "":
		return c.say("I have no tool "+missing+" here.", false)
	case len(calls) > 0:
		return move{calls: calls}
	case c.said():
		return move{} // all was said with the tool message
	}
	text, isKnown := c.answer()
	return c.say(text, isKnown)
}

// say returns the move that says text: to a person who asked for something that the
// demo knows, with buttons for what to try next. A program that uses the API shows no
// buttons, and waits for an answer in plain text.
func (c conversation) say(text string, isKnown bool) move {
	if c.from == fromPerson && !c.hasNotice {
		notice := GuestNotice
		if c.isOwner() {
			notice = Notice
		}
		text = notice + "\n" + text
	}
	if !isKnown || c.from != fromPerson || c.channel == "api" || !c.offers("message") || c.tried("message") {
		return move{text: text}
	}
	args := []any{"text", text, "buttons", c.suggestions()}
	if c.channel == "console" { // a pipe takes what quotes its message for the answer
		args = append(args, "reply", true)
	}
	return move{calls: []call{callOf("message", args...)}}
}
