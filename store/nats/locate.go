package nats

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/store"
)

// dialInterval is between two attempts to reach a gateway that does not answer.
const dialInterval = 100 * time.Millisecond

// Locate implements [store.Locator].
func (c *Config) Locate(ctx context.Context, name string) (*store.Peer, error) {
	cfg := c.withDefaults()
	cfg.Log = slog.New(slog.DiscardHandler)
	s := newStore(cfg)
	if err := s.connect(cfg); err != nil {
		return nil, err
	}
	holder, err := locate(ctx, s, name)
	if err != nil {
		err = s.explain(cfg, err)
	}
	if err != nil || holder == "" {
		return nil, errors.Join(err, s.Close())
	}
	return &store.Peer{Name: holder, Dial: s.dial, Close: s.Close}, nil
}

// locate returns who has the lock of the gateway of s and listens under name, and "" if nobody has it, or whoever had
// it is gone without a word.
func locate(ctx context.Context, s *Store, name string) (holder string, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.briefPatience(), errInUse)
	defer cancel()
	var seen uint64 // the message of the holder
	var since moment
	for {
		m, err := s.stream("buckets").last(ctx, s.lockSubject(gatewayLock))
		switch {
		case errors.Is(err, store.ErrNotFound), isWithoutStreams(err), err == nil && m.isGone():
			return "", nil
		case err != nil:
			return "", fmt.Errorf("look for a gateway: %w", err)
		}
		if m.seq != seen {
			since = now()
		}
		seen = m.seq
		conn, err := s.dial(ctx, name, store.Caller{})
		if err == nil {
			return string(m.body), conn.Close()
		}
		if since.elapsed() >= s.leaseTime {
			return "", nil
		}
		select {
		case <-time.After(dialInterval): // dial itself waits, unless the servers cannot be reached
		case <-ctx.Done():
			if errors.Is(context.Cause(ctx), errInUse) {
				return "", inUse(s.address, string(m.body))
			}
			return "", ctx.Err()
		}
	}
}

// inUse returns the error of a command that the Store at address is in use by holder, which it does not reach.
func inUse(address, holder string) error {
	return fmt.Errorf("the store on NATS at %s %w, %s, which does not answer: try again in a minute, or stop it first",
		address, errInUse, holder)
}
