package mcp

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"golang.org/x/oauth2"
)

// pauseKey is for values of contexts.
type pauseKey struct{}

// A limit ends a context when its time is used up. It may be paused.
type limit struct {
	mu     sync.Mutex
	left   time.Duration
	since  time.Time // when timer began
	timer  *time.Timer
	paused int
	begun  time.Time     // of the pause, if it is paused
	waited time.Duration // in earlier pauses
}

// withTimeout is like [context.WithTimeout], but the time may be paused: see pauseTimeout.
func withTimeout(ctx context.Context, d time.Duration) (limited context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	l := &limit{left: d, since: time.Now()}
	l.timer = time.AfterFunc(d, func() { cancel(context.DeadlineExceeded) })
	return context.WithValue(ctx, pauseKey{}, l), func() {
		l.pause() // a timer that is resumed later ends nothing any more
		cancel(context.Canceled)
	}
}

// pauseTimeout has the time limit of the call that ctx belongs to wait until resume is called: a person
// is asked meanwhile.
func pauseTimeout(ctx context.Context) (resume func()) {
	l, ok := ctx.Value(pauseKey{}).(*limit)
	if !ok {
		return func() {}
	}
	l.pause()
	return sync.OnceFunc(l.resume)
}

// waitedIn returns how long the call that ctx belongs to has waited for people.
func waitedIn(ctx context.Context) time.Duration {
	l, ok := ctx.Value(pauseKey{}).(*limit)
	if !ok {
		return 0
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.paused == 0 {
		return l.waited
	}
	return l.waited + time.Since(l.begun)
}

// A waitingHandler authorizes requests as handler does. The time limit of the call waits meanwhile: a
// person may be asked to sign in.
type waitingHandler struct{ handler auth.OAuthHandler }

// TokenSource implements [auth.OAuthHandler].
func (h waitingHandler) TokenSource(ctx context.Context) (oauth2.TokenSource, error) {
	return h.handler.TokenSource(ctx)
}

// Authorize implements [auth.OAuthHandler].
func (h waitingHandler) Authorize(ctx context.Context, r *http.Request, resp *http.Response) error {
	defer pauseTimeout(ctx)()
	return h.handler.Authorize(ctx, r, resp)
}

func (l *limit) pause() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused++
	if l.paused > 1 {
		return
	}
	l.begun = time.Now()
	if l.timer.Stop() {
		l.left -= time.Since(l.since)
	}
}

func (l *limit) resume() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.paused--
	if l.paused == 0 {
		l.since = time.Now()
		l.waited += l.since.Sub(l.begun)
		l.timer.Reset(max(l.left, 0))
	}
}
