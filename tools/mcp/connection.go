package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/flood"
)

const (
	// maxMessage is how long one message of a server may be, in bytes (R-S22).
	maxMessage = 16 << 20

	// maxListed is how many tools, and how many of each other kind, are read of a server's lists.
	maxListed = 2000

	// pingTimeout is how long a server may take to say that it is there, after a call timed out.
	pingTimeout = 5 * time.Second

	// legacyProtocol is the last version that begins with a handshake.
	legacyProtocol = "2025-11-25"
)

// A connection is one session with a server.
type connection struct {
	v       *supervisor
	session *sdk.ClientSession
	process *process // nil if the server is reached by HTTP

	ctx    context.Context // lasts as long as the connection
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when the session has ended
	lost   atomic.Bool   // nothing is answered any more, although the session has not ended yet

	changed chan struct{} // the lists have changed
	doubt   chan struct{} // a call has timed out: the server may not be there any more

	tokens   atomic.Int64
	progress sync.Map // progress token -> func(*sdk.ProgressNotificationParams)

	mu   sync.Mutex
	open map[*openCall]bool // calls at work
}

// connect makes a connection. The error says what an owner can do.
func (v *supervisor) connect() (*connection, error) {
	ctx, cancel := context.WithCancelCause(v.ctx)
	c := &connection{
		v:       v,
		ctx:     ctx,
		cancel:  cancel,
		done:    make(chan struct{}),
		changed: make(chan struct{}, 1),
		doubt:   make(chan struct{}, 1),
		open:    map[*openCall]bool{},
	}
	limit := v.config.handshakeTimeout()
	if len(v.server.registries()) > 0 {
		limit = max(limit, fetchTimeout)
	}
	errLate := fmt.Errorf("the server did not answer the handshake within %v", limit)
	late := time.AfterFunc(limit, func() { cancel(errLate) })
	defer late.Stop()
	transport, err := c.transport()
	if err != nil {
		cancel(err)
		return nil, err
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "parley", Version: cmp.Or(v.config.Version, "0")}, c.options())
	c.session, err = client.Connect(ctx, transport, &sdk.ClientSessionOptions{ProtocolVersion: v.protocol})
	if err != nil {
		if !errors.Is(err, ErrSignInNeeded) {
			v.changeProtocol()
		}
		err = c.explain(describeConnect(err))
		close(c.done)
		c.close()
		return nil, err
	}
	go func() { // it ends with the session, which close waits for
		_ = c.session.Wait()
		close(c.done)
	}()
	return c, nil
}

// describeConnect returns what an owner reads of err, which came of a connect. That a service cannot be reached
// is said without the names of requests.
func describeConnect(err error) error {
	failed, ok := errors.AsType[*url.Error](err)
	if !ok || errors.Is(err, ErrSignInNeeded) {
		return fmt.Errorf("connect: %w", err)
	}
	return fmt.Errorf("cannot reach %s: %w", failed.URL, failed.Err)
}

// newIntake returns what limits what the server sends on c.
func (c *connection) newIntake() *flood.Intake {
	return flood.New(c.ctx, func(err error) {
		c.cancel(err)
		c.lost.Store(true)
		poke(c.doubt)
	})
}

// changeProtocol has the next handshake be the one of earlier versions, or again the latest: there
// are servers that end when they are asked what they do not know.
func (v *supervisor) changeProtocol() {
	if v.protocol == "" {
		v.protocol = legacyProtocol
	} else {
		v.protocol = ""
	}
}

// options are what the client is told to do.
func (c *connection) options() *sdk.ClientOptions {
	o := &sdk.ClientOptions{
		Capabilities:   &sdk.ClientCapabilities{},
		MultiRoundTrip: &sdk.MultiRoundTripOptions{Disabled: true}, // Inputs does it
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) {
			poke(c.changed)
		},
		PromptListChangedHandler: func(context.Context, *sdk.PromptListChangedRequest) {
			poke(c.changed)
		},
		ResourceListChangedHandler: func(context.Context, *sdk.ResourceListChangedRequest) {
			poke(c.changed)
		},
		ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
			if show, ok := c.progress.Load(fmt.Sprint(r.Params.ProgressToken)); ok {
				show.(func(*sdk.ProgressNotificationParams))(r.Params)
			}
		},
	}
	inputs := c.v.config.Inputs
	if inputs == nil {
		return o
	}
	o.Capabilities = inputs.Capabilities()
	if o.Capabilities.Elicitation != nil {
		o.ElicitationHandler = func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
			return c.answerNow(ctx, r.Params)
		}
	}
	if c.v.server.MaySample() {
		o.Capabilities.Sampling = &sdk.SamplingCapabilities{} //nolint:staticcheck // see SamplingRequest
		o.CreateMessageWithToolsHandler = func(               //nolint:staticcheck // see SamplingRequest
			ctx context.Context, r *sdk.CreateMessageWithToolsRequest,
		) (*SamplingResult, error) {
			return c.sampleNow(ctx, r.Params)
		}
	}
	return o
}

// list returns what the server offers.
func (c *connection) list() (l Listing, err error) {
	ctx, stop := context.WithTimeout(c.ctx, c.v.config.handshakeTimeout())
	defer stop()
	hello := c.session.InitializeResult()
	l.Protocol = hello.ProtocolVersion
	l.Instructions = hello.Instructions
	if hello.ServerInfo != nil {
		l.Name = hello.ServerInfo.Name
		l.Version = hello.ServerInfo.Version
	}
	can := cmp.Or(hello.Capabilities, &sdk.ServerCapabilities{})
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	if can.Tools != nil {
		l.Tools, err = pages(c, "tools", func(cursor string) ([]*sdk.Tool, string, error) {
			r, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Tools, r.NextCursor, nil
		})
		note(err)
	}
	if can.Resources != nil {
		l.Resources, err = pages(c, "resources", func(cursor string) ([]*sdk.Resource, string, error) {
			r, err := c.session.ListResources(ctx, &sdk.ListResourcesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Resources, r.NextCursor, nil
		})
		note(err)
		l.Templates, err = pages(c, "resource templates", func(cursor string) ([]*sdk.ResourceTemplate, string, error) {
			r, err := c.session.ListResourceTemplates(ctx, &sdk.ListResourceTemplatesParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.ResourceTemplates, r.NextCursor, nil
		})
		note(err)
	}
	if can.Prompts != nil {
		l.Prompts, err = pages(c, "prompts", func(cursor string) ([]*sdk.Prompt, string, error) {
			r, err := c.session.ListPrompts(ctx, &sdk.ListPromptsParams{Cursor: cursor})
			if err != nil {
				return nil, "", err
			}
			return r.Prompts, r.NextCursor, nil
		})
		note(err)
	}
	return l, errors.Join(errs...)
}

// pages returns the items of all pages, up to maxListed. A server that says it has a list and then
// does not know the request has none (D-112).
func pages[T any](c *connection, what string, read func(cursor string) ([]*T, string, error)) (all []*T, err error) {
	for cursor := ""; ; {
		page, next, err := read(cursor)
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeMethodNotFound {
			c.v.log.Debug("MCP server has no list", "of", what)
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("list %s: %w", what, err)
		}
		for _, item := range page {
			if item != nil {
				all = append(all, item)
			}
		}
		if len(all) > maxListed {
			c.v.warnOnce("MCP server lists too much: the rest is left out", "what", what, "most", maxListed)
			return all[:maxListed], nil
		}
		if next == "" || next == cursor || len(page) == 0 {
			return all, nil
		}
		cursor = next
	}
}

// explain returns err with what is known about the end of the program. It may wait for a moment until
// the program has ended, to know why.
func (c *connection) explain(err error) error {
	if cause := context.Cause(c.ctx); cause != nil {
		err = cause
	}
	if c.process == nil {
		return err
	}
	return c.process.explain(err)
}

// close ends the connection and waits until nothing of it is left.
func (c *connection) close() {
	closed := make(chan struct{})
	go func() { // it ends when the context has
		defer close(closed)
		if c.session != nil {
			_ = c.session.Close()
		}
	}()
	if c.process != nil {
		c.process.close()
	} else {
		select {
		case <-closed:
		case <-time.After(closeTimeout):
		}
	}
	c.cancel(errors.New("the connection was closed"))
	<-closed
	<-c.done
}

// isLostAfter reports whether err came of the end of the connection. A request fails a moment before the
// session has ended: only another one tells whether the server is there.
func (c *connection) isLostAfter(err error) bool {
	if c.hasEnded() {
		return true
	}
	if _, answered := errors.AsType[*jsonrpc.Error](err); answered || c.isThere() {
		return false
	}
	c.lost.Store(true)
	poke(c.doubt)
	return true
}

// isThere reports whether the server answers.
func (c *connection) isThere() bool {
	ctx, stop := context.WithTimeout(c.ctx, pingTimeout)
	defer stop()
	err := c.session.Ping(ctx, nil)
	_, answered := errors.AsType[*jsonrpc.Error](err)
	return err == nil || answered
}
