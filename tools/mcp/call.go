package mcp

import (
	"cmp"
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
	send func(ctx context.Context, c *connection, call tools.Call, a Answers) (tools.Result, Questions, error)
}

// How a server is asked again that has too much to do to answer.
const (
	maxRefusals  = 3
	refusalDelay = time.Second
)

// reconnectWait is how long a call that may be repeated waits for the next connection (D-114).
const reconnectWait = 5 * time.Second

// call makes the request r for the call of a tool. A request that only reads is made again, once, if
// the connection ended meanwhile; any other may have had its effect (D-114).
func (v *supervisor) call(ctx context.Context, call tools.Call, r request) (tools.Result, error) {
	if !v.key.allows(call.Scope) {
		text := "the MCP server " + v.key.server + " is used by each person for themselves, and never in a group"
		return tools.Result{Text: text, Failed: true, Code: tools.CodeDenied}, nil
	}
	result, err := v.callOpen(ctx, call, r)
	result.Text = v.config.redact(result.Text)
	return result, err
}

// callOpen is call for whoever may make it.
func (v *supervisor) callOpen(ctx context.Context, call tools.Call, r request) (tools.Result, error) {
	var a Answers
	if inputs := v.config.Inputs; inputs != nil && inputs.Kept(call) {
		var err error
		if a, err = inputs.Answer(ctx, call); err != nil {
			return tools.Result{}, cmp.Or(context.Cause(ctx), err)
		}
	}
	limited, stop := withTimeout(ctx, v.server.ToolTimeout)
	defer stop()
	for attempt := 0; ; attempt++ {
		v.wake(limited)
		if a.Round > 0 { // else the person would have answered for nothing
			v.awaitNext(limited, nil, v.config.handshakeWait())
		}
		if v.offering.isWithheld(call.Name) {
			return failure(r.what, "Withheld", msgWithheld), nil
		}
		c, problem := v.use()
		if c == nil {
			return failure(r.what, "NotConnected", problem), nil
		}
		result, asked, err := c.make(limited, call, r, a)
		switch {
		case err == nil && len(asked.All) > 0:
			return r.keep(ctx, v, call, asked)
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
		if r.readOnly && attempt == 0 && v.awaitNext(limited, c, reconnectWait) {
			continue
		}
		text := c.explain(err).Error()
		if !r.readOnly {
			text += "; the call may have taken effect: find out before you repeat it"
		}
		return failure(r.what, "ConnectionClosed", text), nil
	}
}

// use returns the connection for a call, which count ends, or what to tell the model if there is none.
func (v *supervisor) use() (c *connection, problem string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.live != nil && !v.live.hasEnded() {
		v.usage.open++
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
	case SignedOut:
		problem += ". Call " + WrapName(v.key.server, SignInTool) + " first"
	case Ended:
	default:
		problem += ". It is being connected; call again in a moment"
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
func (v *supervisor) awaitNext(ctx context.Context, c *connection, wait time.Duration) bool {
	ctx, stop := context.WithTimeout(ctx, wait)
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

// count notes the end of a call.
func (v *supervisor) count(took time.Duration, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.usage.open--
	v.usage.calls++
	v.usage.took += took
	v.usage.last = time.Now()
	if !ok {
		v.usage.failures++
	}
}

// make makes a request, with the answers to what the server asked before. It ends with the connection. A
// server that asks nothing, and has no result either, has too much to do: it gets the request again.
func (c *connection) make(
	ctx context.Context, call tools.Call, r request, a Answers,
) (result tools.Result, asked Questions, err error) {
	begin := time.Now()
	waited := waitedIn(ctx)
	defer func() {
		took := time.Since(begin) - (waitedIn(ctx) - waited)
		c.v.count(took, err == nil)
	}()
	ctx, stop := context.WithCancel(context.WithValue(ctx, callKey{}, call))
	defer stop()
	defer context.AfterFunc(c.ctx, stop)()
	defer c.enter(ctx, call)()
	for range maxRefusals {
		result, asked, err = r.send(ctx, c, call, a)
		asked.Round += a.Round
		if err != nil || asked.Round == a.Round || len(asked.All) > 0 {
			return result, asked, err
		}
		a.State = asked.State
		select {
		case <-time.After(refusalDelay):
		case <-ctx.Done():
			return result, asked, ctx.Err()
		}
	}
	return result, asked, errors.New("the server has too much to do: try again later")
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
		call.Say(chat.Clip(chat.OneLine(c.v.config.redact(text)), 100, "…"))
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

// callKey is for values of contexts.
type callKey struct{}

// CallOf returns the call of a tool that a request is made for. ok is false if it is made for the
// connection itself.
func CallOf(ctx context.Context) (c tools.Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(tools.Call)
	return c, ok
}
