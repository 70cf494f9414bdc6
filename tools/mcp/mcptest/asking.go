package mcptest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// An Asking is a server, reached by HTTP, with tools that ask for what their arguments say: see [Ask] and [Sample].
type Asking struct {
	URL   string
	Asked atomic.Int64 // times
	Done  atomic.Int64 // answers that it got

	MaySample atomic.Bool // the client said so at the last call of sample
}

// Ask are the arguments of the tool ask of an [Asking]. It returns the answer of the person, in JSON.
type Ask struct {
	Message string         `json:"message,omitempty"`
	Schema  map[string]any `json:"schema,omitempty"` // of a form
	URL     string         `json:"url,omitempty"`
	Times   int            `json:"times,omitempty"` // how often it asks, if not once
}

// NewAsking returns a server that ends with the test. Of the latest protocol version it keeps nothing, and a
// question is the result of a call; if earlier is set, it asks while the call is open.
func NewAsking(t testing.TB, earlier bool) *Asking {
	a := new(Asking)
	s := sdk.NewServer(&sdk.Implementation{Name: "asking", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "ask", Description: "Asks the person."}, a.ask)
	sdk.AddTool(s, &sdk.Tool{Name: "sample", Description: "Asks the model."}, a.sample)
	o := &sdk.StreamableHTTPOptions{Stateless: !earlier}
	at := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, o))
	ctx, stop := context.WithCancel(context.Background())
	s.AddReceivingMiddleware(endWith(ctx))
	t.Cleanup(func() {
		stop()
		at.CloseClientConnections()
		at.Close()
	})
	a.URL = at.URL
	return a
}

// endWith has all calls end with ctx. A session that its client ends waits for them, and a call may wait for an answer of
// a client that is gone.
func endWith(ctx context.Context) sdk.Middleware {
	return func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(call context.Context, method string, r sdk.Request) (sdk.Result, error) {
			call, cancel := context.WithCancel(call)
			defer cancel()
			defer context.AfterFunc(ctx, cancel)()
			return next(call, method, r)
		}
	}
}

func (a *Asking) ask(_ context.Context, r *sdk.CallToolRequest, in Ask) (*sdk.CallToolResult, any, error) {
	const name = "question"
	round := 0
	if r.Params.RequestState != "" {
		if _, err := fmt.Sscanf(r.Params.RequestState, "round %d", &round); err != nil {
			return nil, nil, err
		}
		a.Done.Add(1)
	}
	if round > 0 && round >= in.Times {
		text, err := json.Marshal(r.Params.InputResponses[name])
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "answered: " + string(text)}}}, nil, err
	}
	a.Asked.Add(1)
	question := &sdk.ElicitParams{Message: in.Message, URL: in.URL, Mode: "form"}
	if in.URL == "" {
		question.RequestedSchema = in.Schema
	} else {
		question.Mode = "url"
		question.ElicitationID = "one"
	}
	return &sdk.CallToolResult{
		InputRequests: sdk.InputRequestMap{name: question},
		RequestState:  fmt.Sprintf("round %d", round+1),
	}, nil, nil
}
