package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"sync"
	"time"

	"parley/panics"
	"parley/tools/mcp/results"
)

const (
	// fetchTimeout is at least how long a package runner may take to connect: it may have to fetch the server.
	fetchTimeout = 2 * time.Minute

	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute

	// A connection that held for steadyTime begins the retry delays anew.
	steadyTime = time.Minute

	// listDelay is the least time between two lists of one server: it may say any number of times
	// that they have changed.
	listDelay = 2 * time.Second
)

// Why a connection is ended.
var (
	errRemoved   = errors.New("the server is not in the config any more, or another one")
	errReconnect = errors.New("somebody had it connected anew")
	errEnded     = errors.New("the connection ended")
)

// A supervisor keeps one server connected, for one person if each has a connection.
type supervisor struct {
	config Config
	key    key
	server *Server
	log    *slog.Logger

	ctx    context.Context // of run; set by begin
	cancel context.CancelCauseFunc
	first  chan struct{} // closed when the first attempt has succeeded or failed, or took too long
	settle func()        // closes first
	again  chan struct{} // has the next attempt begin at once
	review chan struct{} // has Config.Review look again

	offering *offering
	results  results.Maker

	mu       sync.Mutex
	phase    Phase
	since    time.Time
	changed  chan struct{} // closed when phase changes
	live     *connection   // nil unless connected
	err      error         // why there is no connection
	nextTry  time.Time
	usage    usage
	stderr   *tail
	pid      int
	warned   map[string]bool
	protocol string // that a server is asked for that did not understand the latest
}

func newSupervisor(c Config, k key, s *Server) *supervisor {
	v := &supervisor{
		config:  c,
		key:     k,
		server:  s,
		log:     c.Log.With("server", k.server),
		first:   make(chan struct{}),
		again:   make(chan struct{}, 1),
		review:  make(chan struct{}, 1),
		results: results.Maker{MaxStored: c.MaxStored},
		phase:   Connecting,
		since:   time.Now(),
		changed: make(chan struct{}),
		stderr:  &tail{log: c.Log.With("server", k.server)},
		warned:  map[string]bool{},
	}
	if k.who != "" {
		v.log = v.log.With("person", k.who)
	}
	v.offering = &offering{v: v}
	v.settle = sync.OnceFunc(func() { close(v.first) })
	return v
}

// begin prepares v for run, and reports false if that was done before.
func (v *supervisor) begin(ctx context.Context) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.ctx != nil {
		return false
	}
	v.ctx, v.cancel = context.WithCancelCause(ctx)
	return true
}

// stop has run end. A supervisor that was never begun has nothing to end.
func (v *supervisor) stop(why error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.cancel != nil {
		v.cancel(why)
	}
}

// run keeps the server connected until v is stopped. When it returns, the program has ended.
func (v *supervisor) run() {
	defer v.settle()
	defer v.setPhase(Ended, nil)
	late := time.AfterFunc(v.config.handshakeWait(), v.settle)
	defer late.Stop()
	delay := minRetryDelay
	last := "" // why there was no connection
	for v.ctx.Err() == nil {
		begin := time.Now()
		var held bool
		err := panics.Try(func() (err error) {
			held, err = v.connectAndServe()
			return err
		})
		if v.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errReconnect) {
			delay = minRetryDelay
			v.setPhase(Connecting, nil)
			continue
		}
		if errors.Is(err, ErrSignInNeeded) {
			v.log.Info("MCP server wants a sign-in")
			awaitSignIn(v)
			delay = minRetryDelay
			continue
		}
		if errors.Is(err, errIdle) {
			v.pause(nil)
			delay = minRetryDelay
			last = ""
			v.setPhase(Connecting, nil)
			continue
		}
		if held && time.Since(begin) > steadyTime {
			delay = minRetryDelay
			last = ""
		}
		wait := delay + rand.N(delay/4)
		level := slog.LevelWarn
		if last == err.Error() { // somebody knows
			level = slog.LevelDebug
		}
		last = err.Error()
		v.log.Log(v.ctx, level, "MCP server not connected", "err", err, "retry", wait.Round(time.Second))
		v.fail(Failed, err, time.Now().Add(wait))
		v.settle()
		timer := time.NewTimer(wait)
		if v.pause(timer.C) {
			delay = min(2*delay, maxRetryDelay)
		} else {
			delay = minRetryDelay
		}
		timer.Stop()
		v.setPhase(Connecting, err)
	}
}

// connectAndServe makes a connection and keeps its lists up to date until it ends. It returns why it
// ended, and whether it held. Nothing of it is left then.
func (v *supervisor) connectAndServe() (held bool, err error) {
	c, err := v.connect()
	if err != nil {
		return false, err
	}
	defer c.close()
	l, err := c.list()
	if err != nil {
		return false, c.explain(err)
	}
	if err := v.offer(c, l); err != nil {
		return false, err
	}
	v.settle()
	v.log.Info("MCP server connected", "name", l.Name, "version", l.Version, "protocol", l.Protocol,
		"tools", len(l.Tools), "resources", len(l.Resources)+len(l.Templates), "prompts", len(l.Prompts))
	err = v.serve(c)
	if !errors.Is(err, errIdle) {
		v.setPhase(Connecting, err)
	}
	return true, err
}

// serve keeps the lists of c up to date until it ends, and returns why it did.
func (v *supervisor) serve(c *connection) error {
	var due <-chan time.Time
	last := time.Now()
	idle := time.NewTimer(v.config.idleAfter(v.server))
	defer idle.Stop()
	for {
		select {
		case <-v.ctx.Done():
			return context.Cause(v.ctx)
		case <-v.again:
			return errReconnect
		case <-c.done:
			return c.explain(errEnded)
		case <-c.doubt:
			if c.lost.Load() {
				return c.explain(errEnded)
			}
			if !c.isThere() {
				return errors.New("the server does not answer any more")
			}
			continue
		case <-c.changed:
			if due == nil {
				due = time.After(max(listDelay-time.Since(last), listDelay/20))
			}
			continue
		case <-idle.C:
			left := v.retire()
			if left <= 0 {
				return errIdle
			}
			idle.Reset(left)
			continue
		case <-v.review:
			if err := v.offering.review(); err != nil {
				return err
			}
			continue
		case <-due:
		}
		due = nil
		last = time.Now()
		l, err := c.list()
		if err != nil {
			return c.explain(fmt.Errorf("list anew: %w", err))
		}
		if err := v.offer(c, l); err != nil {
			return err
		}
	}
}

// offer makes tools of what the review leaves of l, which c has listed.
func (v *supervisor) offer(c *connection, l Listing) error {
	if err := v.offering.publish(l); err != nil {
		return err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.live = c
	v.err = nil
	v.nextTry = time.Time{}
	v.enter(Connected)
	return nil
}

// setPhase notes that phase begins, because of err.
func (v *supervisor) setPhase(phase Phase, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	v.enter(phase)
}

// fail notes why there is no connection, and when the next attempt begins: phase is Failed or SignedOut.
func (v *supervisor) fail(phase Phase, err error, next time.Time) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.err = err
	v.nextTry = next
	v.enter(phase)
}

// enter begins phase. v.mu is held.
func (v *supervisor) enter(phase Phase) {
	if v.phase == phase {
		return
	}
	v.phase = phase
	v.since = time.Now()
	if phase != Connected {
		v.live = nil
	}
	close(v.changed)
	v.changed = make(chan struct{})
}

// awaitFirst waits until the first attempt to connect has come out, or has taken too long.
func (v *supervisor) awaitFirst(ctx context.Context) {
	select {
	case <-v.first:
		return
	default:
	}
	late := time.NewTimer(v.config.handshakeWait()) // should run not have begun
	defer late.Stop()
	select {
	case <-v.first:
	case <-late.C:
	case <-ctx.Done():
	}
}

func (v *supervisor) reconnect() { poke(v.again) }

func (v *supervisor) relist() { poke(v.review) }

func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// warnOnce logs a warning about the server, unless it did so before.
func (v *supervisor) warnOnce(message string, args ...any) {
	v.mu.Lock()
	text := message + fmt.Sprint(args...)
	known := v.warned[text]
	v.warned[text] = true
	v.mu.Unlock()
	if !known {
		v.log.Warn(message, args...)
	}
}
