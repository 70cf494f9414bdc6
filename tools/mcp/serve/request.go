package serve

import (
	"cmp"
	"context"
	"crypto/rand"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// A request is a call under way.
type request struct {
	call *mcp.CallToolRequest
}

// report sends a step as progress of r, if the caller wants to know. n counts the reports.
func (r request) report(ctx context.Context, n int, text string) {
	token := r.call.Params.GetProgressToken()
	if token == nil {
		return
	}
	_ = r.call.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Message: text, Progress: float64(n),
	}) // a caller that is gone asks again
}

// isConnection reports whether the call is cancelled by the end of its connection, so that nobody can tell a
// client that wants no answer from one that has lost the network.
func (r request) isConnection() bool {
	version, _ := r.call.Params.Meta[mcp.MetaKeyProtocolVersion].(string)
	return version >= statelessVersion
}

// watch calls gone once if the server ends or the call is cancelled before end is called. The work of the call goes
// on if the server ends, because clients call again, and if the connection may have been lost and the call is made
// again under its key within repeatTime. Otherwise it is given up.
func (a *api) watch(ctx context.Context, r request, key string, gone func(goesOn bool)) (end func()) {
	tool := r.call.Params.Name // a key belongs to the calls of one tool
	again, forget := a.repeats.begin(digest(a.caller.who.ID, a.caller.prefix, tool, cmp.Or(key, rand.Text())))
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-done:
			return
		case <-a.closing:
		case <-ctx.Done():
		}
		if !a.isClosing() && (key == "" || !r.isConnection()) {
			gone(false)
			return
		}
		select {
		case <-done:
		case <-a.closing:
			gone(true)
		case <-again:
			gone(true)
		case <-time.After(repeatTime):
			gone(false)
		}
	})
	return func() {
		close(done)
		watching.Wait()
		forget()
	}
}

func (a *api) isClosing() bool {
	select {
	case <-a.closing:
		return true
	default:
		return false
	}
}
