package nats

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"parley/store"
)

// gatewayLock is the lock of the one gateway that may use a Store.
const gatewayLock = "gateway"

// briefPatience is how long a command waits for the lock of a gateway that may be about to end.
func (s *Store) briefPatience() time.Duration { return 3*s.leaseTime + 2*time.Second }

// Open implements [store.Driver]. It waits until no other gateway uses the Store; a command gives up soon. Once another
// gateway may have taken over, no call reaches the servers any more, and Stopped is called.
func (c *Config) Open(ctx context.Context, host store.Host) (store.Store, error) {
	cfg := *c
	cfg.Log = host.Log
	s, err := Open(ctx, cfg)
	if err != nil { // and not a nil *Store, which is no nil store.Store
		return nil, err
	}
	if err := s.standBy(ctx, host); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.Close())
	}
	return s, nil
}

// standBy waits until no other gateway uses the Store, and has the Store end when that is no longer certain.
func (s *Store) standBy(ctx context.Context, host store.Host) error {
	holder, err := s.holder(ctx, gatewayLock)
	if err != nil {
		return err
	}
	if host.Brief {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, s.briefPatience(), errInUse)
		defer cancel()
	}
	if holder != "" && host.Waiting != nil {
		host.Waiting(holder)
	}
	l, err := s.newLease(ctx, s.lockSubject(gatewayLock), gatewayLock)
	if err != nil && errors.Is(context.Cause(ctx), errInUse) {
		return fmt.Errorf("the store on NATS at %s %w, %s: run this on that machine, or stop that gateway first",
			s.address, errInUse, cmp.Or(holder, "which has just begun"))
	}
	if err != nil {
		return fmt.Errorf("lock %q: %w", gatewayLock, err)
	}
	s.permit.Store(l)
	s.start(func(closing context.Context) {
		select {
		case <-l.Lost:
			if host.Stopped != nil {
				host.Stopped(errTakenOver)
			}
		case <-closing.Done():
		}
	})
	return nil
}

var (
	errInUse     = errors.New("is in use by another gateway")
	errTakenOver = errors.New("NATS could not be reached in time, or this gateway stood still: " +
		"another one may have taken over, so this one ends; start it again to stand by")
)

// Usable returns an error if another gateway may have the lock gatewayLock by now (see [store.Usable]). It asks the
// clock, and not whether the loss was noticed.
func (s *Store) Usable() error {
	l := s.permit.Load()
	if l == nil || l.age() < s.leaseLimit() {
		return nil
	}
	return fmt.Errorf("%w: %w", store.ErrClosed, errTakenOver)
}

// Examine implements [store.Examiner].
func (c *Config) Examine(ctx context.Context) (text string, err error) {
	cfg := c.withDefaults()
	cfg.Log = slog.New(slog.DiscardHandler)
	s := newStore(cfg)
	if err := s.connect(cfg); err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.checkServers(ctx); err != nil {
		return "", s.explain(cfg, err)
	}
	holder, err := s.holder(ctx, gatewayLock)
	if err != nil && !isWithoutStreams(err) {
		return "", s.explain(cfg, err)
	}
	const form = "NATS %s at %s, copies of everything: %d, used by: %s"
	used := cmp.Or(holder, "no gateway")
	return fmt.Sprintf(form, s.conn.ConnectedServerVersion(), s.address, cfg.Replicas, used), nil
}

// isWithoutStreams reports whether no Store was opened there before.
func isWithoutStreams(err error) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && refused.Code == codeNoStream
}
