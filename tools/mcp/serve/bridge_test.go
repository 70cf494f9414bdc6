package serve

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/timetest"
)

// A testBridge is a client of the SDK with a Bridge, and where that finds its Server.
type testBridge struct {
	session *mcp.ClientSession

	mu      sync.Mutex
	gateway *timetest.Listener
	log     strings.Builder // read while the bridge waits
}

// newTestBridge returns a bridge that finds no Server yet.
func newTestBridge(t *testing.T) *testBridge { return newTestChannel(t, "") }

// newTestChannel is newTestBridge for a coding session of that name.
func newTestChannel(t *testing.T, channel string) *testBridge {
	b := &testBridge{gateway: timetest.NewListener()}
	_ = b.gateway.Close()
	toBridge, fromBridge := b.run(t, channel)
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	var err error
	b.session, err = client.Connect(t.Context(), &mcp.IOTransport{Reader: fromBridge, Writer: toBridge}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = b.session.Close() })
	return b
}

// run runs a Bridge for a coding session of that name, and returns its standard streams. It ends when to is closed.
func (b *testBridge) run(t *testing.T, channel string) (to io.WriteCloser, from io.ReadCloser) {
	transport := &http.Transport{DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		b.mu.Lock()
		l := b.gateway
		b.mu.Unlock()
		return l.Dial(ctx, network, address)
	}}
	in, to := io.Pipe()
	from, out := io.Pipe()
	bridge := &Bridge{
		Version: "test", URL: "http://parley.test/mcp", Client: &http.Client{Transport: transport}, In: in, Out: out,
		Channel: channel, Log: slog.New(slog.NewTextHandler(&b.log, nil)),
	}
	var running sync.WaitGroup
	running.Go(func() {
		if err := bridge.Run(context.Background()); err != nil {
			t.Errorf("the bridge ends: %v", err)
		}
	})
	t.Cleanup(func() {
		running.Wait()
		transport.CloseIdleConnections()
	})
	return to, from
}

// serve begins a Server that answers ask_agent with answer, and returns what kills it.
func (b *testBridge) serve(answer func(key string) string) (kill func()) {
	return b.serveTools(func(server *mcp.Server) {
		type call = *mcp.CallToolRequest
		ask := func(_ context.Context, _ call, in askInput) (*mcp.CallToolResult, askOutput, error) {
			return nil, askOutput{Answer: answer(in.Key)}, nil
		}
		mcp.AddTool(server, &mcp.Tool{Name: "ask_agent"}, ask)
	})
}

// serveMessages begins a Server for which nobody writes messages, and returns what kills it.
func (b *testBridge) serveMessages() (kill func()) {
	type call = *mcp.CallToolRequest
	return b.serveTools(func(server *mcp.Server) {
		wait := func(ctx context.Context, _ call, in waitInput) (*mcp.CallToolResult, codingMessages, error) {
			select {
			case <-ctx.Done():
			case <-time.After(time.Duration(in.Seconds) * time.Second):
			}
			return nil, codingMessages{Messages: []codingMessage{}}, nil
		}
		mcp.AddTool(server, &mcp.Tool{Name: "wait_for_message"}, wait)
	})
}

// serveTools begins a Server with the tools that add adds, and returns what kills it.
func (b *testBridge) serveTools(add func(*mcp.Server)) (kill func()) {
	e := newEndpoint(func(c caller) *mcp.Server {
		server := newServer("test", mcp.ServerOptions{GetSessionID: c.newSessionID})
		add(server)
		return server
	})
	l := timetest.NewListener()
	serve := func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, anna) }
	server := &http.Server{Handler: http.HandlerFunc(serve)}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(l) })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.gateway = l
	return func() {
		_ = server.Close()
		_ = e.close()
		serving.Wait()
	}
}

// ask asks the agent, and returns the answer, or why there is none.
func (b *testBridge) ask(t *testing.T) string {
	t.Helper()
	params := &mcp.CallToolParams{Name: "ask_agent", Arguments: map[string]any{"message": "hello"}}
	r, err := b.session.CallTool(t.Context(), params)
	if err != nil {
		t.Fatal(err)
	}
	return r.Content[0].(*mcp.TextContent).Text
}

// TestBridgeWithoutGateway: where no gateway runs, clients see what there is to call, and a call says after ten
// seconds what to do. The next one is answered if a gateway runs by then.
func TestBridgeWithoutGateway(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newTestBridge(t)
		list, err := b.session.ListTools(t.Context(), nil)
		if err != nil || len(list.Tools) != 12 {
			t.Errorf("%v, %v", list, err)
		}
		began := time.Now()
		got := b.ask(t)
		if took := time.Since(began); took < firstTime || took > firstTime+2*retryPause {
			t.Errorf("it took %v", took)
		}
		if !strings.Contains(got, "start parley and call again") {
			t.Errorf("%s", got)
		}
		defer b.serve(func(string) string { return "hello" })()
		if got := b.ask(t); !strings.Contains(got, `"answer":"hello"`) {
			t.Errorf("%s", got)
		}
	})
}

// TestBridgeAfterRestart: a call whose gateway is killed is repeated under the same key when the next one serves,
// a minute later. One that is never served says so after two minutes.
func TestBridgeAfterRestart(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newTestBridge(t)
		var keys []string // of calls, one after the other
		asked := make(chan struct{})
		kill := b.serve(func(key string) string {
			keys = append(keys, key)
			close(asked)
			time.Sleep(time.Second)
			return "lost"
		})
		var restarting sync.WaitGroup
		restarting.Go(func() {
			<-asked
			kill()
			time.Sleep(time.Minute)
			kill = b.serve(func(key string) string {
				keys = append(keys, key)
				return "found"
			})
		})
		if got := b.ask(t); !strings.Contains(got, "found") {
			t.Errorf("%s", got)
		}
		restarting.Wait()
		if len(keys) != 2 || keys[0] == "" || keys[0] != keys[1] {
			t.Errorf("keys %q", keys)
		}
		kill()
		began := time.Now()
		got := b.ask(t)
		if took := time.Since(began); took < restartTime || took > restartTime+2*retryPause {
			t.Errorf("%v, %s", took, got)
		}
	})
}

// TestBridgeRefusal: what the gateway refuses is not asked for again.
func TestBridgeRefusal(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newTestBridge(t)
		defer b.serve(func(string) string { return "" })()
		began := time.Now()
		_, err := b.session.CallTool(t.Context(), &mcp.CallToolParams{Name: "no_such_tool"})
		if took := time.Since(began); err == nil || !strings.Contains(err.Error(), "no_such_tool") || took > 0 {
			t.Errorf("%v after %v", err, took)
		}
	})
}

// TestBridgeVersion: messages are pushed in versions of the protocol only that have notifications outside of
// requests. Without a coding session the latest version is spoken.
func TestBridgeVersion(t *testing.T) {
	for channel, want := range map[string]string{"": statelessVersion, "code": dialVersion} {
		timetest.Test(t, func(t *testing.T) {
			got := newTestChannel(t, channel).session.InitializeResult().ProtocolVersion
			if got != want {
				t.Errorf("%q: version %s, want %s", channel, got, want)
			}
		})
	}
}

// A coding session whose name no person can write to is refused at once, and not asked for again and again.
func TestChannelName(t *testing.T) {
	t.Parallel()
	bridge := &Bridge{In: io.NopCloser(strings.NewReader("")), Out: nopWriter{}, Channel: "two words"}
	if err := bridge.Run(t.Context()); err == nil || !strings.Contains(err.Error(), `"two words"`) {
		t.Errorf("%v, want a refusal of the name", err)
	}
}

// nopWriter is a standard output that nobody reads.
type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (nopWriter) Close() error                { return nil }

// TestBridgeLogsOnce: that the messages for a coding session cannot be fetched is logged, once for each time that
// the gateway is away.
func TestBridgeLogsOnce(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := newTestChannel(t, "code")
		if _, err := b.session.ListTools(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for times := 1; times < 3; times++ {
			timetest.Sleep(5 * restartTime)
			if got := b.log.String(); strings.Count(got, "could not fetch messages for the coding session") != times {
				t.Errorf("%d times: %s", times, got)
			}
			kill := b.serveMessages()
			timetest.Sleep(2 * time.Minute)
			kill()
		}
	})
}
