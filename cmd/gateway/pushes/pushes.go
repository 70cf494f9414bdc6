// Package pushes makes what sends notifications to people's browsers: requests go only to push services on the public
// internet, since their addresses come from browsers (R-S19).
package pushes

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"syscall"
	"time"

	"parley/channels/web/notify"
	"parley/store"
	"parley/tools/network"
)

// A Page is where people see what they are notified of.
type Page interface {
	Home() string
	// SignIn names the sign-in by which a request came, and Lasts reports whether it still lets the person in.
	SignIn(ctx context.Context) string
	Lasts(ctx context.Context, person, signIn string) (bool, error)
}

// New returns what notifies people. page is asked for when it is needed: it is opened later.
func New(s store.Store, log *slog.Logger, page func() Page) *notify.Service {
	return notify.New(configOf(s, log, page))
}

func configOf(s store.Store, log *slog.Logger, page func() Page) notify.Config {
	return notify.Config{
		Store:  s,
		Client: client(network.NewGuard(nil, nil)),
		Home:   func() string { return page().Home() },
		SignIn: func(ctx context.Context) string { return page().SignIn(ctx) },
		Lasts: func(ctx context.Context, person, signIn string) (bool, error) {
			return page().Lasts(ctx, person, signIn)
		},
		Log: log,
	}
}

// client returns a client that reaches only https servers of the public internet, by the address that was judged. It
// follows no redirects: a push service sends none.
func client(guard *network.Guard) *http.Client {
	dialer := &net.Dialer{
		Timeout: 10 * time.Second,
		ControlContext: func(ctx context.Context, _, address string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(address)
			if err != nil {
				return err
			}
			if to.Port() != 443 || guard.Reach(ctx, to.Addr()) != network.PublicWeb {
				return fmt.Errorf("%s is no address of a push service on the public internet", to)
			}
			return nil
		},
	}
	return &http.Client{
		Timeout: 20 * time.Second,
		Transport: &http.Transport{
			DialContext:         dialer.DialContext,
			TLSHandshakeTimeout: 10 * time.Second,
			MaxIdleConns:        4,
			IdleConnTimeout:     30 * time.Second,
			ForceAttemptHTTP2:   true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
