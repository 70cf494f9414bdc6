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
	cfg := c.withDefaults()
	cfg.Log = cmp.Or(host.Log, cfg.Log)
	s, err := open(ctx, cfg)
	if err != nil { // and not a nil *Store, which is no nil store.Store
		return nil, err
	}
	if err := s.standBy(ctx, cfg, host); err != nil {
		return nil, errors.Join(fmt.Errorf("open store: %w", err), s.Close())
	}
	return s, nil
}

// standBy waits until no other gateway uses the Store, and has the Store end when that is no longer certain.
func (s *Store) standBy(ctx context.Context, cfg Config, host store.Host) error {
	other := "" // who has it
	waiting := func(holder string) {
		other = holder
		if host.Waiting != nil {
			host.Waiting(holder, s.dial, s)
		}
	}
	locking := ctx
	if host.Brief {
		var cancel context.CancelFunc
		locking, cancel = context.WithTimeoutCause(ctx, s.briefPatience(), errInUse)
		defer cancel()
	}
	l, err := s.newLeaseAfter(locking, s.lockSubject(gatewayLock), gatewayLock, waiting)
	if err != nil && errors.Is(context.Cause(locking), errInUse) {
		return inUse(s.address, other)
	}
	if err != nil {
		return fmt.Errorf("lock %q: %w", gatewayLock, err)
	}
	s.gatewayLease.Store(l)
	s.start(func(closing context.Context) {
		select {
		case <-l.Lost:
			if host.Stopped != nil {
				host.Stopped(errTakenOver)
			}
		case <-closing.Done():
		}
	})
	return s.applySettings(ctx, cfg)
}

var (
	errInUse     = errors.New("is in use by another gateway")
	errTakenOver = errors.New("NATS could not be reached in time, or this gateway stood still: " +
		"another one may have taken over, so this one ends; start it again to stand by")
)

// Usable returns an error if another gateway may have the lock gatewayLock by now (see [store.Usable]). It asks the
// clock, and not whether the loss was noticed.
func (s *Store) Usable() error {
	l := s.gatewayLease.Load()
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
	text = fmt.Sprintf("NATS %s at %s, ", s.conn.ConnectedServerVersion(), s.address)
	copies, err := replicas(ctx, s)
	if isWithoutStreams(err) {
		return text + "has nothing stored yet", nil
	}
	holder, errHolder := s.holder(ctx, gatewayLock)
	if err = errors.Join(err, errHolder); err != nil {
		return "", s.explain(cfg, err)
	}
	used := "no gateway uses it"
	if holder != "" {
		used = "last used by " + holder
	}
	return fmt.Sprintf("%scopies of everything: %d, %s", text, copies, used), nil
}

// Reach implements [store.Remote].
func (s *Store) Reach(ctx context.Context) error {
	if !s.conn.IsConnected() {
		return fmt.Errorf("there is no connection to NATS at %s", s.address)
	}
	if _, err := s.holder(ctx, gatewayLock); err != nil {
		return fmt.Errorf("NATS at %s does not answer: %w", s.address, err)
	}
	return nil
}

// replicas returns how many servers have the logs, if this version may use them.
func replicas(ctx context.Context, s *Store) (int, error) {
	var has streamInfo
	err := s.request(ctx, "STREAM.INFO."+s.stream("logs").name, struct{}{}, &has)
	if err != nil {
		return 0, err
	}
	return has.Config.Replicas, checkFormat(has.Config)
}

// isWithoutStreams reports whether no Store was opened there before.
func isWithoutStreams(err error) bool {
	refused, ok := errors.AsType[*apiError](err)
	return ok && refused.Code == codeNoStream
}
