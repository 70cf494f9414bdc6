package serve

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	retryPause     = 500 * time.Millisecond
	firstTime      = 10 * time.Second // of retries while no gateway has answered yet
	restartTime    = 2 * time.Minute  // of retries later: the gateway is starting again
	connectTimeout = 10 * time.Second
	pushInterval   = 50              // seconds that one wait for messages takes
	listenTime     = 5 * time.Second // a coding session takes to listen for messages once it has begun
	dialVersion    = "2025-11-25"    // of the protocol: the last in which a lost connection cancels nothing
	tokenFormat    = "bridge-%d"     // of progress tokens
)

// A Bridge serves the standard streams of its process. It calls a Server over HTTP, also after that was started
// again: every call has a key, so that repeating it does nothing twice.
type Bridge struct {
	Version string
	URL     string       // of the Server
	Client  *http.Client // reaches it, with whatever credential that takes
	In      io.ReadCloser
	Out     io.WriteCloser
	Log     *slog.Logger // nil: nothing is logged

	// Channel is the name of the coding session into which messages are pushed; "": none are.
	Channel string

	conn     *channelConn
	progress sync.Map     // by token: func(*mcp.ProgressNotificationParams)
	tokens   atomic.Int64 // so far

	mu       sync.Mutex
	session  *mcp.ClientSession // with the Server; nil: none
	answered bool               // the Server has answered once
}

// Run serves until In ends or ctx does.
func (b *Bridge) Run(ctx context.Context) error {
	if b.Channel != "" && !sessionForm.MatchString(b.Channel) {
		return fmt.Errorf("push messages into the session %q: %w", b.Channel, errSessionForm)
	}
	if b.Log == nil {
		b.Log = slog.New(slog.DiscardHandler)
	}
	options := mcp.ServerOptions{}
	if b.Channel != "" {
		options.Capabilities = &mcp.ServerCapabilities{Experimental: map[string]any{
			channelCapability:    map[string]any{},
			permissionCapability: map[string]any{},
		}}
		// Later versions have no notifications outside of requests: clients drop them.
		options.SupportedProtocolVersions = slices.DeleteFunc(mcp.SupportedProtocolVersions(),
			func(version string) bool { return version >= statelessVersion })
	}
	server := newServer(b.Version, options)
	(&api{}).addTools(server)
	ready := make(chan struct{})
	markReady := sync.OnceFunc(func() { close(ready) })
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
			switch method {
			case "tools/call":
				return b.forward(ctx, r.(*mcp.CallToolRequest))
			case "notifications/initialized", "tools/list":
				markReady()
			}
			return next(ctx, method, r)
		}
	})
	ctx, stop := context.WithCancel(ctx)
	var working sync.WaitGroup
	defer working.Wait()
	defer stop()
	b.conn = &channelConn{asked: make(chan permission, 16), ended: make(chan struct{})}
	streams := &mcp.IOTransport{Reader: b.In, Writer: b.Out}
	session, err := server.Connect(ctx, channelTransport{streams, b.conn}, nil)
	if err != nil {
		return fmt.Errorf("serve the standard streams: %w", err)
	}
	if b.Channel != "" {
		working.Go(func() {
			select {
			case <-ready:
			case <-ctx.Done():
				return
			}
			// Claude Code drops what comes before it listens, up to 1.3 seconds after it has listed the tools.
			select {
			case <-time.After(listenTime):
				b.push(ctx)
			case <-ctx.Done():
			}
		})
		working.Go(func() { b.relay(ctx, &working) })
	}
	defer context.AfterFunc(ctx, func() { _ = session.Close() })()
	err = session.Wait()
	stop()
	b.drop(nil)
	if errors.Is(err, io.EOF) || errors.Is(err, mcp.ErrConnectionClosed) || ctx.Err() != nil {
		return nil
	}
	return err
}

// forward calls a tool of the Server.
func (b *Bridge) forward(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
	args := map[string]any{}
	if len(r.Params.Arguments) > 0 && json.Unmarshal(r.Params.Arguments, &args) != nil {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "arguments must be an object"}
	}
	var tell func(*mcp.ProgressNotificationParams)
	if token := r.Params.GetProgressToken(); token != nil {
		tell = func(p *mcp.ProgressNotificationParams) {
			told := *p
			told.ProgressToken = token
			_ = r.Session.NotifyProgress(ctx, &told) // whoever is gone needs none
		}
	}
	// A call goes on at the Server when the standard streams end: only a cancelled one is cancelled there.
	calling, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		if b.hasEnded() {
			b.drop(nil)
		} else {
			cancel()
		}
	})()
	return b.call(calling, r.Params.Name, args, tell)
}

// keyed are the tools whose calls have a key.
var keyed = map[string]bool{
	"ask_agent": true, "send_message": true, "ask_person": true, "add_job": true,
}

// call calls a tool of the Server, again if the connection breaks.
func (b *Bridge) call(
	ctx context.Context, name string, args map[string]any, tell func(*mcp.ProgressNotificationParams),
) (*mcp.CallToolResult, error) {
	if key, _ := args["key"].(string); key == "" && keyed[name] {
		args["key"] = rand.Text()
	}
	params := &mcp.CallToolParams{Name: name, Arguments: args}
	if tell != nil {
		token := fmt.Sprintf(tokenFormat, b.tokens.Add(1))
		b.progress.Store(token, tell)
		defer b.progress.Delete(token)
		params.SetProgressToken(token)
	}
	for began := time.Now(); ; {
		result, err := b.tryCall(ctx, params)
		if err == nil || isRefusal(err) {
			return result, err
		}
		if ctx.Err() != nil || b.hasEnded() {
			return nil, errors.New("cancelled")
		}
		if time.Since(began) > b.retryTime() {
			r := &mcp.CallToolResult{}
			r.SetError(fmt.Errorf("the gateway of Parley does not answer; start parley and call again: %w", err))
			return r, nil
		}
		select {
		case <-ctx.Done():
		case <-time.After(retryPause):
		}
	}
}

// retryTime returns how long a call is retried.
func (b *Bridge) retryTime() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.answered {
		return restartTime
	}
	return firstTime
}

// tryCall calls a tool of the Server. A session whose connection broke is of no more use.
func (b *Bridge) tryCall(ctx context.Context, params *mcp.CallToolParams) (*mcp.CallToolResult, error) {
	session, err := b.connect(ctx)
	if err != nil {
		return nil, err
	}
	result, err := session.CallTool(ctx, params)
	if err != nil && !isRefusal(err) && ctx.Err() == nil {
		b.drop(session)
	}
	return result, err
}

// isRefusal reports whether the Server answered with err: it will not answer otherwise when it is asked again.
func isRefusal(err error) bool {
	var refusal *jsonrpc.Error
	return errors.As(err, &refusal) && (refusal.Code == jsonrpc.CodeInvalidParams ||
		refusal.Code == jsonrpc.CodeMethodNotFound || refusal.Code == jsonrpc.CodeInvalidRequest)
}

// hasEnded reports whether the standard input has ended.
func (b *Bridge) hasEnded() bool {
	select {
	case <-b.conn.ended:
		return true
	default:
		return false
	}
}

// connect returns the session with the Server.
func (b *Bridge) connect(ctx context.Context) (*mcp.ClientSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.session != nil {
		return b.session, nil
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "parley-bridge", Version: b.Version}, &mcp.ClientOptions{
		Capabilities: &mcp.ClientCapabilities{},
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			token, _ := r.Params.ProgressToken.(string)
			if tell, ok := b.progress.Load(token); ok {
				tell.(func(*mcp.ProgressNotificationParams))(r.Params)
			}
		},
	})
	transport := &mcp.StreamableClientTransport{
		Endpoint: b.URL, HTTPClient: b.Client, DisableStandaloneSSE: true, MaxRetries: -1,
	}
	// The session outlives the call that opens it.
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), connectTimeout)
	defer stop()
	session, err := client.Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: dialVersion})
	if err != nil {
		return nil, err
	}
	b.session = session
	b.answered = true
	return session, nil
}

// drop ends the session, unless it is another than old; nil means any.
func (b *Bridge) drop(old *mcp.ClientSession) {
	b.mu.Lock()
	session := b.session
	if session == nil || old != nil && session != old {
		b.mu.Unlock()
		return
	}
	b.session = nil
	b.mu.Unlock()
	_ = session.Close() // it is of no more use
}
