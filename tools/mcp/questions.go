package mcp

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools"
)

// Inputs has a person answer what servers ask in the middle of a call (elicitation).
//
// A server of protocol 2026-07-28 ends a request with its questions and a state, and gets the request
// again with the answers and that state. Keep notes both, and the call ends with tools.CodeWaiting: it is
// run again, and then Answer waits for the person. So the call goes on also after a restart.
//
// A server of an earlier version asks while the request is open: AnswerNow. What it asked is of no use
// after a restart, because the request was lost.
type Inputs interface {
	// Begin is called once, when [Servers.Run] begins: it tells people of questions that cannot be
	// answered any more.
	Begin(ctx context.Context)

	// Capabilities returns which questions servers may ask.
	Capabilities() *sdk.ClientCapabilities

	// Keep notes what the server asks before it goes on with c. It is on disk when Keep returns.
	Keep(ctx context.Context, server string, c tools.Call, q Questions) error

	// Kept reports whether there are questions that Keep noted for c.
	Kept(c tools.Call) bool

	// Answer returns the answers to these questions. They are not kept any longer then: whatever
	// happens next, the call may have taken effect. They stay if ctx ends with tools.ErrClosing.
	Answer(ctx context.Context, c tools.Call) (Answers, error)

	// AnswerNow answers a question that the server asks while c is open. It may be called for one
	// call after another only.
	AnswerNow(ctx context.Context, server string, c tools.Call, asked *sdk.ElicitParams) (*sdk.ElicitResult, error)

	// SampleNow has a model answer what a server asks that [Server.MaySample], while c is open. Like
	// AnswerNow, it may be called for one call after another only. The error is for the server.
	SampleNow(ctx context.Context, server string, c tools.Call, asked *SamplingRequest) (*SamplingResult, error)
}

// What a server asks a model, and what it gets. The protocol deprecates it since 2026-07-28, but has it.
type (
	SamplingRequest = sdk.CreateMessageWithToolsParams //nolint:staticcheck // servers use it for at least a year more
	SamplingResult  = sdk.CreateMessageWithToolsResult //nolint:staticcheck // as SamplingRequest
)

// Questions are what a server wants to know before it goes on with a call.
type Questions struct {
	All   sdk.InputRequestMap `json:"all"`
	State string              `json:"state,omitempty"` // to be sent with the answers
	Round int                 `json:"round"`           // how much the server has asked in this call by now
}

// Answers are those to Questions. The zero value is for a call that has just begun.
type Answers struct {
	All   sdk.InputResponseMap
	State string
	Round int // how much the server has asked
}

// maxRounds is how much a server may ask in one call.
const maxRounds = 10

// asking returns what a server asks instead of a result.
func asking(all sdk.InputRequestMap, state string) Questions {
	return Questions{All: all, State: state, Round: max(len(all), 1)}
}

// keep has the call wait for the answers to what the server asks.
func (r request) keep(ctx context.Context, v *supervisor, call tools.Call, asked Questions) (tools.Result, error) {
	switch {
	case v.config.Inputs == nil:
		return failure(r.what, "Question", "the server asks something, which is not supported here"), nil
	case asked.Round > maxRounds:
		return failure(r.what, "Question", fmt.Sprintf("the server asked more than %d times", maxRounds)), nil
	}
	if err := v.config.Inputs.Keep(ctx, v.key.server, call, asked); err != nil {
		return tools.Result{}, err
	}
	return tools.Result{Code: tools.CodeWaiting}, nil
}

// An openCall is a call at work.
type openCall struct {
	call  tools.Call
	ctx   context.Context // ends with the call
	asked atomic.Int64    // questions of a server of an earlier version
	one   sync.Mutex      // held while the person is asked
}

// enter notes that call is at work, until leave is called.
func (c *connection) enter(ctx context.Context, call tools.Call) (leave func()) {
	open := &openCall{call: call, ctx: ctx}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[open] = true
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, open)
	}
}

// errNotAsked says why nobody was asked what a server of an earlier version asks.
var errNotAsked = errors.New("a server may ask ten times in a call, and only while it has just one call open")

// pauseFor returns the call in which a server of an earlier version asks something. The call's time limit
// waits until resume is called, and ctx ends with the call. If it cannot be told whose call it is, or if the
// server asks too often, the error is errNotAsked (R-S22).
func (c *connection) pauseFor(ctx context.Context) (asking context.Context, call tools.Call, resume func(), err error) {
	open := c.onlyCall()
	if open == nil || open.asked.Add(1) > maxRounds {
		c.v.warnOnce("question of an MCP server declined: " + errNotAsked.Error())
		return ctx, call, nil, errNotAsked
	}
	goOn := pauseTimeout(open.ctx)
	open.one.Lock()
	asking, stop := context.WithCancelCause(ctx)
	follow := context.AfterFunc(open.ctx, func() { stop(context.Cause(open.ctx)) })
	return asking, open.call, func() {
		follow()
		stop(nil)
		open.one.Unlock()
		goOn()
	}, nil
}

// answerNow has a person answer a question of a server of an earlier version.
func (c *connection) answerNow(ctx context.Context, asked *sdk.ElicitParams) (*sdk.ElicitResult, error) {
	ctx, call, resume, err := c.pauseFor(ctx)
	if err != nil {
		return &sdk.ElicitResult{Action: "decline"}, nil
	}
	defer resume()
	return c.v.config.Inputs.AnswerNow(ctx, c.v.key.server, call, asked)
}

// sampleNow has a model answer what a server of an earlier version asks it.
func (c *connection) sampleNow(ctx context.Context, asked *SamplingRequest) (*SamplingResult, error) {
	ctx, call, resume, err := c.pauseFor(ctx)
	if err != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: err.Error()}
	}
	defer resume()
	return c.v.config.Inputs.SampleNow(ctx, c.v.key.server, call, asked)
}

// onlyCall returns the call that is at work, nil if there are none or several.
func (c *connection) onlyCall() *openCall {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) != 1 {
		return nil
	}
	for open := range c.open {
		return open
	}
	return nil
}
