// Package sampling has models answer what MCP servers ask them in the middle of a call.
//
// A server may do so if the owner's rule for it says so, and if no policy or limit of the person keeps it
// from it. A request is a call of a tool that no model is offered: it goes through the same pipeline as
// all calls, with its approval, audit and time limit. The model is given nothing but what the server says,
// and no tools (R-S22, R-S15).
package sampling

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/llm"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
)

// codeRefused is the code of the errors of requests that somebody, or a rule, refused.
const codeRefused = -1

// A KitMaker returns a Kit with what one offers in a scope, and with the pipeline of all calls.
type KitMaker func(ctx context.Context, scope tools.Scope, one tools.Source) (*tools.Kit, error)

// A Config is what requests are answered with.
type Config struct {
	Log   *slog.Logger
	Texts *texts.Elicit

	// QuestionID returns the ID of the question that a Kit asks before c.
	QuestionID func(c tools.Call) string
}

// A Sampler answers the requests of servers.
type Sampler struct {
	config Config
	now    atomic.Pointer[settings]
}

// settings may change while servers are connected.
type settings struct {
	rules map[string]tools.Rule // by server
	kit   KitMaker
}

// New returns a Sampler that refuses all requests: see Use.
func New(c Config) *Sampler {
	s := &Sampler{config: c}
	s.now.Store(new(settings))
	return s
}

// Use goes on with the rules of these servers, by name.
func (s *Sampler) Use(servers map[string]*mcp.Server, kit KitMaker) {
	next := &settings{rules: map[string]tools.Rule{}, kit: kit}
	for name, server := range servers {
		if server.MaySample() {
			next.rules[name] = tools.Rule(server.Sampling)
		}
	}
	s.now.Store(next)
}

// Check returns an error if nobody could be allowed to have p answered for the server.
func (s *Sampler) Check(server string, p *mcp.SamplingRequest) error {
	if s.now.Load().rules[server] == "" {
		return refusal("Parley does not let this server use its models")
	}
	_, err := newRequest(p)
	return err
}

// Question returns the ID of the question whether a request of the server in the middle of c is to be
// answered; "" if nobody is asked.
func (s *Sampler) Question(server string, c tools.Call, id string) string {
	if s.now.Load().rules[server] != tools.Ask {
		return ""
	}
	return s.config.QuestionID(requestCall(server, c, id))
}

// requestCall returns the call that stands for a request of a server in the middle of c. id tells the
// request from others of c.
func requestCall(server string, c tools.Call, id string) tools.Call {
	call := tools.Call{Scope: c.Scope, Tip: c.Tip}
	call.ID = c.ID + "/" + id
	call.Name = mcp.WrapName(server, "sampling")
	call.Only = nil // it says which tools the model may use
	return call
}

// Sample has a model answer p, which a server asks in the middle of c, at the expense of the person of c.
// An error that is no end of ctx is a [*jsonrpc.Error] that says why, to the server as to the model.
func (s *Sampler) Sample(
	ctx context.Context, server string, c tools.Call, id string, p *mcp.SamplingRequest,
) (*mcp.SamplingResult, error) {
	if err := s.Check(server, p); err != nil {
		return nil, err
	}
	r, err := newRequest(p)
	if err != nil {
		return nil, err
	}
	if c.Lend == nil {
		return nil, refusal("there is no model to be asked here")
	}
	now := s.now.Load()
	job := &job{sampler: s, server: server, request: r, model: choose(c, p)}
	call := requestCall(server, c, id)
	args, err := json.Marshal(r.arguments())
	if err != nil {
		return nil, err
	}
	call.Args = string(args)
	kit, err := now.kit(ctx, call.Scope, tools.Fixed{job.tool(now.rules[server])})
	if err != nil {
		return nil, err
	}
	got := kit.Call(ctx, call)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return job.outcome(got)
}

// choose returns the model of c, or one that p prefers by its name in the config.
func choose(c tools.Call, p *mcp.SamplingRequest) tools.LentModel {
	if p.ModelPreferences != nil {
		for _, hint := range p.ModelPreferences.Hints {
			if hint == nil || hint.Name == "" {
				continue
			}
			if m := c.Lend(hint.Name); m.Name == hint.Name {
				return m
			}
		}
	}
	return c.Lend("")
}

// A job is a request that is being answered.
type job struct {
	sampler *Sampler
	server  string
	request request
	model   tools.LentModel

	ended atomic.Pointer[ending] // nil until it has: a call that takes too long is left behind
}

// An ending is how a job came out.
type ending struct {
	answer *mcp.SamplingResult
	err    error
}

// tool returns the tool that the request is a call of.
func (j *job) tool(rule tools.Rule) tools.Tool {
	return tools.Tool{
		ToolSpec: llm.ToolSpec{
			Name:        mcp.WrapName(j.server, "sampling"),
			Description: "Has the model answer what the MCP server " + j.server + " asks it.",
			Schema: json.RawMessage(`{"type":"object","properties":{"instructions":{"type":"string"},` +
				`"messages":{"type":"string"},"maxTokens":{"type":"integer"}}}`),
		},
		Hints: tools.Hints{
			Category: mcp.Category(j.server),
			Who:      rule,
			Hidden:   true,
			ReadOnly: true,
			Timeout:  tools.MaxTimeout,
			MaxText:  -1,
		},
		Ask: func(say texts.Asks, _ tools.Call) tools.Sentence {
			return tools.Asking(say.Sample, tools.Named(j.server))
		},
		Run: func(ctx context.Context, c tools.Call) (tools.Result, error) {
			answer, err := j.ask(ctx, c)
			j.ended.Store(&ending{answer, err})
			return tools.Result{Text: "answered"}, err
		},
	}
}

// ask asks the model.
func (j *job) ask(ctx context.Context, c tools.Call) (*mcp.SamplingResult, error) {
	if j.request.hasPictures && !j.model.Vision {
		return nil, refusal("the model cannot be shown pictures")
	}
	c.Say(j.sampler.config.Texts.Samples.With(j.server))
	question := j.request.Request
	if most := j.model.MaxTokens; most > 0 && (question.MaxTokens == 0 || question.MaxTokens > most) {
		question.MaxTokens = most
	}
	answer, err := j.model.Generate(ctx, question, nil)
	if err != nil {
		return nil, err
	}
	model := cmp.Or(answer.Model, j.model.Name)
	j.sampler.config.Log.Info("a model answered an MCP server", "server", j.server, "call", c.Key(), "model", model,
		"in", answer.Usage.In, "out", answer.Usage.Out)
	text, reason := j.request.finish(answer)
	return &mcp.SamplingResult{
		Role:       "assistant",
		Content:    []sdk.Content{&sdk.TextContent{Text: text}},
		Model:      model,
		StopReason: reason,
	}, nil
}

// outcome returns what the server is told of the call that came out as got.
func (j *job) outcome(got tools.Result) (*mcp.SamplingResult, error) {
	end := cmp.Or(j.ended.Load(), new(ending))
	if !got.Failed && end.answer != nil {
		return end.answer, nil
	}
	wire, isWire := errors.AsType[*jsonrpc.Error](end.err)
	failed, isModel := errors.AsType[*llm.Error](end.err)
	switch {
	case isWire:
		return nil, wire
	case errors.Is(end.err, llm.ErrLimit):
		return nil, refusal("the person has used as much of the models as they may use for now")
	case isModel && failed.Kind == llm.TooLong:
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "the request is too long for the model"}
	case got.Code == tools.CodeNotFound:
		return nil, refusal("Parley does not let this server use its models for this person")
	case got.Code == tools.CodeRefused:
		return nil, refusal("the request was refused by the person who was asked")
	case got.Code == tools.CodeDenied:
		return nil, refusal("nobody approved the request in time")
	}
	err := cmp.Or(end.err, errors.New(got.Text))
	j.sampler.config.Log.Warn("no model answered an MCP server", "server", j.server, "err", err)
	return nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "the model did not answer"}
}

func refusal(why string) error { return &jsonrpc.Error{Code: codeRefused, Message: why} }

func invalid(format string, args ...any) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: fmt.Sprintf(format, args...)}
}

// The reasons why an answer ended.
const (
	stopEnd      = "endTurn"
	stopSequence = "stopSequence"
	stopLength   = "maxTokens"
	stopFilter   = "contentFilter"
)

// finish returns the text of an answer up to the first of the request's stop sequences, and why it ended.
func (r request) finish(m llm.Message) (text, reason string) {
	text = strings.TrimSpace(m.Text)
	end := -1
	for _, stop := range r.stops {
		if at := strings.Index(text, stop); stop != "" && at >= 0 && (end < 0 || at < end) {
			end = at
		}
	}
	switch {
	case end >= 0:
		return text[:end], stopSequence
	case m.Finish == llm.Length:
		return text, stopLength
	case m.Finish == llm.Filtered:
		return text, stopFilter
	}
	return text, stopEnd
}

// arguments returns r as people are shown it who are to approve it.
func (r request) arguments() map[string]any {
	all := map[string]any{"messages": r.shown()}
	if r.System != "" {
		all["instructions"] = r.System
	}
	if r.MaxTokens > 0 {
		all["maxTokens"] = r.MaxTokens
	}
	return all
}

// shown returns the messages of r as one text.
func (r request) shown() string {
	if len(r.Messages) == 1 && len(r.Messages[0].Images) == 0 {
		return r.Messages[0].Text
	}
	var lines []string
	for _, m := range r.Messages {
		line := string(m.Role) + ": " + m.Text
		for _, image := range m.Images {
			line += fmt.Sprintf(" (%s, %d bytes)", image.Type, len(image.Data))
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}
