package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
)

// Listen listens at addr. If another program uses it, Listen uses fallback instead,
// unless that is "". It returns the address as it is bound, with the host of addr.
func Listen(ctx context.Context, addr, fallback string) (l net.Listener, bound string, err error) {
	l, err = (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
	if errors.Is(err, syscall.EADDRINUSE) {
		l, err = listenInstead(ctx, fallback, fmt.Errorf(
			"another program uses %s: end it, or choose another port in the config: %w", addr, err))
	}
	if err != nil {
		return nil, "", err
	}
	host, _, _ := net.SplitHostPort(addr)
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return l, net.JoinHostPort(host, port), nil
}

// listenInstead listens at fallback. If it is "" or cannot be used, the error is taken.
func listenInstead(ctx context.Context, fallback string, taken error) (net.Listener, error) {
	if fallback == "" {
		return nil, taken
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", fallback)
	if err != nil {
		return nil, taken
	}
	return l, nil
}
