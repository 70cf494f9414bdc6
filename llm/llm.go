// Package llm defines what Parley asks of a language model, and wraps models with
// retries, fallbacks and time limits.
package llm

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
)

// A Model answers one request. Implementations live in the folders below.
type Model interface {
	// Generate answers req. It may be called concurrently. Unless stream is nil, it
	// is called with each piece as it arrives, from one goroutine and never after
	// Generate has returned. The returned Message holds the whole answer in any
	// case. An error is an *Error, unless ctx ended: then it is ctx's error.
	Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error)
}

// ModelFunc is an adapter to use a function as a Model.
type ModelFunc func(context.Context, Request, func(Delta)) (Message, error)

// Generate calls f.
func (f ModelFunc) Generate(ctx context.Context, req Request, stream func(Delta)) (Message, error) {
	return f(ctx, req, stream)
}

// A Request asks for the next message of a conversation.
type Request struct {
	System   string     // instructions
	Messages []Message  // so far
	Tools    []ToolSpec // that may be called

	// MaxTokens is how many the answer may have; 0 is as many as the model is configured for.
	MaxTokens int

	// Format is what the answer must be, as OpenAI's response_format; nil is any text. A model that
	// cannot answer so returns an [*Error] of the kind BadRequest, or asks for it in words.
	Format json.RawMessage
}

// A Delta is a piece of an answer that is being streamed.
type Delta struct {
	Text      string
	Reasoning string
	Call      *ToolCall // not complete yet, with its arguments so far; never to be run
	Reset     bool      // discard the pieces so far: the answer begins again, as after a broken stream
}

// A Message is one entry of a conversation.
type Message struct {
	Role      Role       `json:"role"`
	Text      string     `json:"text,omitempty"`
	Reasoning string     `json:"reasoning,omitempty"` // of an assistant; never part of Text
	Calls     []ToolCall `json:"calls,omitempty"`     // of an assistant
	Call      string     `json:"call,omitempty"`      // of a tool: the ID of the ToolCall it answers
	Name      string     `json:"name,omitempty"`      // of a tool: the tool's name
	Finish    Finish     `json:"finish,omitempty"`    // of an assistant
	Model     string     `json:"model,omitempty"`     // of an assistant: the model's name in config.json
	Usage     Usage      `json:"usage,omitzero"`      // of an assistant
	Images    []Image    `json:"-"`                   // of a user: shown beside Text; never stored
}

// Empty reports whether m, of an assistant, has neither text nor calls. Reasoning
// does not count: nobody reads it.
func (m Message) Empty() bool { return len(m.Calls) == 0 && strings.TrimSpace(m.Text) == "" }

// An Image is a picture for models that accept pictures.
type Image struct {
	Type string // image/png, image/jpeg, image/gif or image/webp
	Data []byte
}

// A Role says who wrote a Message.
type Role string

// The roles.
const (
	User      Role = "user"
	Assistant Role = "assistant"
	ToolRole  Role = "tool"
)

// A Finish says why an answer ended.
type Finish string

// The reasons. With Length, the text or the arguments of a call are incomplete.
const (
	Stopped    Finish = "stop"
	CallsTools Finish = "calls"
	Length     Finish = "length"
	Filtered   Finish = "filtered"
)

// A ToolSpec describes a tool to the model.
type ToolSpec struct {
	Name, Description string
	Schema            json.RawMessage // JSON Schema of an object
}

// Equal reports whether models are told the same of t and other.
func (t ToolSpec) Equal(other ToolSpec) bool {
	return t.Name == other.Name && t.Description == other.Description && bytes.Equal(t.Schema, other.Schema)
}

// A ToolCall is a model's request to run a tool.
type ToolCall struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	Args string `json:"args"` // JSON as the model wrote it, which may be broken

	// Through is the tool that the model called instead, with Name and Args as its arguments; "" is
	// the tool itself. Only the model is shown that: see Outer.
	Through string `json:"through,omitempty"`
}

// Outer returns c as the model made it. Args must be JSON.
func (c ToolCall) Outer() ToolCall {
	if c.Through == "" {
		return c
	}
	name, _ := json.Marshal(c.Name) // a text
	return ToolCall{ID: c.ID, Name: c.Through, Args: `{"name":` + string(name) + `,"arguments":` + c.Args + `}`}
}

// Usage counts tokens.
type Usage struct {
	In     int `json:"in"`               // of the request, Cached included
	Out    int `json:"out"`              // of the answer, reasoning included
	Cached int `json:"cached,omitempty"` // of In: read from the provider's prompt cache
}

// Add returns the sum of u and v.
func (u Usage) Add(v Usage) Usage {
	return Usage{In: u.In + v.In, Out: u.Out + v.Out, Cached: u.Cached + v.Cached}
}

// Spent is what one person used of one model on one day.
type Spent struct {
	Day   string `json:"day"` // 2006-01-02
	Who   string `json:"who"` // "owner", channel:id of another person, or channel:chat of a group
	Model string `json:"model"`
	Turns int    `json:"turns"`
	Usage Usage  `json:"usage"`

	Cost     float64 `json:"cost,omitempty"`     // by the prices of that day
	Unpriced int     `json:"unpriced,omitempty"` // tokens of Usage whose price was unknown
}
