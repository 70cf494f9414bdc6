package mcp

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/tools"
)

// A request is what a call asks a server.
type request struct {
	what     string // "tool call", "resource read" or "prompt": it begins what the model reads of a failure
	readOnly bool   // it may be made again

	// send makes the request, the first time or with the answers to what the server asked. If the
	// server asks something, it returns that instead of a result.
	send func(ctx context.Context, c *connection, call tools.Call, a answers) (tools.Result, questions, error)
}

// answers are those to questions, and the state that the server sent with them.
type answers struct {
	all   sdk.InputResponseMap
	state string
}

// questions are what a server wants to know before it goes on.
type questions struct {
	all   sdk.InputRequestMap
	state string
}

// maxQuestions is how often a server may ask in one call.
const maxQuestions = 10

// reconnectWait is how long a call that may be repeated waits for the next connection (D-114).
const reconnectWait = 5 * time.Second

// call makes the request r for the call of a tool. A request that only reads is made again, once, if
// the connection ended meanwhile; any other may have had its effect (D-114).
func (v *supervisor) call(ctx context.Context, call tools.Call, r request) (tools.Result, error) {
	limited, stop := context.WithTimeout(ctx, v.server.ToolTimeout)
	defer stop()
	for attempt := 0; ; attempt++ {
		c, problem := v.current()
		if c == nil {
			return failure(r.what, "NotConnected", problem), nil
		}
		begin := time.Now()
		result, err := c.make(limited, call, r)
		v.count(time.Since(begin), err == nil)
		switch {
		case err == nil:
			return result, nil
		case ctx.Err() != nil:
			return tools.Result{}, context.Cause(ctx)
		case limited.Err() != nil:
			poke(c.doubt)
			text := fmt.Sprintf("(MCP %s timed out after %v)", r.what, v.server.ToolTimeout)
			return tools.Result{Text: text, Failed: true, Code: tools.CodeTimeout}, nil
		case !c.isLostAfter(err):
			return failure(r.what, kindOf(err), describe(err)), nil
		}
		if r.readOnly && attempt == 0 && v.awaitNext(limited, c) {
			continue
		}
		text := c.explain(err).Error()
		if !r.readOnly {
			text += "; the call may have taken effect: find out before you repeat it"
		}
		return failure(r.what, "ConnectionClosed", text), nil
	}
}

// current returns the connection, or what to tell the model if there is none.
func (v *supervisor) current() (c *connection, problem string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live != nil && !v.live.hasEnded() {
		return v.live, ""
	}
	problem = "the MCP server " + v.key.server + " is not connected"
	if v.err != nil {
		problem += ": " + v.err.Error()
	}
	switch v.phase {
	case Failed:
		wait := max(time.Until(v.nextTry), time.Second).Round(time.Second)
		problem += fmt.Sprintf(". The next attempt to connect is in %v", wait)
	case Ended:
	default:
		problem += ". It is being connected anew"
	}
	return nil, problem
}

// hasEnded reports whether nothing can be sent to the server any more.
func (c *connection) hasEnded() bool {
	select {
	case <-c.done:
		return true
	default:
		return c.lost.Load() || c.ctx.Err() != nil
	}
}

// awaitNext waits until there is another connection than c, and reports whether there is.
func (v *supervisor) awaitNext(ctx context.Context, c *connection) bool {
	ctx, stop := context.WithTimeout(ctx, reconnectWait)
	defer stop()
	for {
		v.mu.Lock()
		live := v.live
		changed := v.changed
		v.mu.Unlock()
		if live != nil && live != c {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

// count notes a call.
func (v *supervisor) count(took time.Duration, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.usage.calls++
	v.usage.took += took
	v.usage.last = time.Now()
	if !ok {
		v.usage.failures++
	}
}

// make makes a request, and has the questions of the server answered. It ends with the connection.
func (c *connection) make(ctx context.Context, call tools.Call, r request) (tools.Result, error) {
	ctx, stop := context.WithCancel(context.WithValue(ctx, callKey{}, call))
	defer stop()
	defer context.AfterFunc(c.ctx, stop)()
	number := c.enter(call)
	defer c.leave(number)
	var a answers
	inputs := c.v.config.Inputs
	if inputs != nil {
		resumed, state, ok, err := inputs.Resume(ctx, c.v.key.server, call)
		if err != nil {
			return tools.Result{}, err
		}
		if ok {
			a = answers{resumed, state}
		}
	}
	for range maxQuestions {
		result, asked, err := r.send(ctx, c, call, a)
		if err != nil || asked.all == nil {
			return result, err
		}
		if inputs == nil {
			return tools.Result{}, errors.New("the server asks something, which is not supported here")
		}
		given, err := inputs.Answer(ctx, c.v.key.server, &call, asked.all, asked.state)
		if err != nil {
			return tools.Result{}, err
		}
		a = answers{given, asked.state}
	}
	return tools.Result{}, fmt.Errorf("the server asked more than %d times", maxQuestions)
}

// enter notes that call is at work, and returns a number for leave.
func (c *connection) enter(call tools.Call) int64 {
	number := c.tokens.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open[number] = call
	return number
}

func (c *connection) leave(number int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.open, number)
}

// progressInterval is the least time between two messages about the progress of a call.
const progressInterval = 500 * time.Millisecond

// showProgress has what the server says of its progress shown to the person. It returns the token for
// the request, and what ends it.
func (c *connection) showProgress(call tools.Call) (token string, stop func()) {
	token = "parley-" + strconv.FormatInt(c.tokens.Add(1), 10)
	var last time.Time
	show := func(p *sdk.ProgressNotificationParams) { // one at a time: the session handles one message after another
		if time.Since(last) < progressInterval {
			return
		}
		last = time.Now()
		text := strings.TrimSpace(p.Message)
		switch {
		case p.Total > 0 && text != "":
			text = fmt.Sprintf("%s (%.4g/%.4g)", text, p.Progress, p.Total)
		case p.Total > 0:
			text = fmt.Sprintf("%.4g/%.4g", p.Progress, p.Total)
		case text == "":
			text = fmt.Sprintf("%.4g", p.Progress)
		}
		call.Say(chat.Clip(chat.OneLine(text), 100, "…"))
	}
	c.progress.Store(token, show)
	return token, func() { c.progress.Delete(token) }
}

// failure is what the model reads if a request has no result (D-107).
func failure(what, kind, why string) tools.Result {
	return tools.Result{Text: fmt.Sprintf("(MCP %s failed: %s)\n%s", what, kind, why), Failed: true}
}

// kindOf returns a word for err.
func kindOf(err error) string {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		switch wire.Code {
		case jsonrpc.CodeInvalidParams:
			return "InvalidParams"
		case jsonrpc.CodeMethodNotFound:
			return "MethodNotFound"
		}
		return "ProtocolError"
	}
	if errors.Is(err, errTooLarge) {
		return "ResultTooLarge"
	}
	return "ConnectionError"
}

// describe returns the text of err for the model.
func describe(err error) string {
	if wire, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return chat.Clip(wire.Message, 2000, "…")
	}
	return chat.Clip(err.Error(), 2000, "…")
}
