package mcp

import (
	"context"
	"errors"
	"time"
)

// errIdle is why the connection of a server is ended that nobody uses.
var errIdle = errors.New("nobody uses it")

// idleAfter returns how long nobody may use a connection of s until it is ended.
func (c Config) idleAfter(s *Server) time.Duration {
	if c.IdleAfter == 0 || s.Eager {
		return noLimit
	}
	return c.IdleAfter
}

// retire has no further call use the connection if nobody has for long enough. Otherwise it returns when to
// look again.
func (v *supervisor) retire() (left time.Duration) {
	v.mu.Lock()
	defer v.mu.Unlock()
	most := v.config.idleAfter(v.server)
	if v.usage.open > 0 {
		return most
	}
	unused := min(time.Since(v.usage.last), time.Since(v.since))
	if unused < most {
		return most - unused
	}
	v.err = nil
	v.enter(Idle)
	return 0
}

// pause waits for somebody who has the server connected, for the time that is due, or for the end of v. It
// reports whether the time came.
func (v *supervisor) pause(due <-chan time.Time) bool {
	for {
		select {
		case <-due:
			return true
		case <-v.again:
			return false
		case <-v.ctx.Done():
			return false
		case <-v.review:
			if err := v.offering.review(); err != nil {
				v.log.Warn("MCP server is not reviewed", "err", err)
			}
		}
	}
}

// wake has a server connected that nobody used, and waits for a connection that is being made, unless
// something went wrong before.
func (v *supervisor) wake(ctx context.Context) {
	v.mu.Lock()
	if v.phase == Idle {
		v.enter(Connecting)
		v.reconnect()
	}
	v.mu.Unlock()
	for {
		v.mu.Lock()
		waiting := v.phase == Connecting && v.err == nil
		changed := v.changed
		v.mu.Unlock()
		if !waiting {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}
