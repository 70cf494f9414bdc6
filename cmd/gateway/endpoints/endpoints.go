// Package endpoints has the addresses at which a gateway is reached: by people at a browser, by commands and terminals
// of its machine, and by networks. Where several gateways share a store, the one that answers is reached at those of
// all: the others pass connections on to it.
package endpoints

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"

	"parley/admin"
	"parley/channels/console"
	"parley/web"
)

// The names under which gateways that stand by reach what the one that answers serves. They are the same in all
// versions.
const (
	Page     = "page"     // and the API
	Admin    = "admin"    // for commands
	Terminal = "terminal" // for parley chat
	standby  = "standby"  // see Standbys
)

// webhook returns the name of what serves the network of a channel.
func webhook(channel string) string { return "webhook " + channel }

// Config says where a gateway is reached.
type Config struct {
	Version  string            // of this program
	DataDir  string            // the folder of the sockets
	Page     string            // the address of the page; "" for none
	Public   string            // the URL of the page, "" if that is where it is
	Fallback string            // of the page if another program has that; "" for none
	Webhooks map[string]string // by the names of channels, the addresses that networks call; "" if one does not
}

// ListenPage listens for people at a browser. It returns the address as it is bound, with the host of Page.
func (c Config) ListenPage(ctx context.Context) (l net.Listener, bound string, err error) {
	if l, bound, err = web.Listen(ctx, c.Page, c.Fallback); err != nil {
		return nil, "", fmt.Errorf("http.listen: %w", err)
	}
	return l, bound, nil
}

// ListenAdmin listens for commands.
func (c Config) ListenAdmin() (net.Listener, error) { return console.Listen(admin.Socket(c.DataDir)) }

// listenWebhook listens for a network at the address.
func listenWebhook(ctx context.Context, address string) (net.Listener, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("webhook: %w", err)
	}
	return l, nil
}

// An endpoint is where a gateway that stands by listens.
type endpoint struct {
	net.Listener
	name string
}

// listen listens at all addresses. What cannot be used is left out: the error says why.
func (c Config) listen(ctx context.Context) (all []endpoint, page string, err error) {
	var errs []error
	add := func(name string, l net.Listener, err error) {
		if err != nil {
			errs = append(errs, err)
			return
		}
		all = append(all, endpoint{l, name})
	}
	if c.Page != "" {
		l, bound, err := c.ListenPage(ctx)
		page = bound
		add(Page, l, err)
	}
	l, err := c.ListenAdmin()
	add(Admin, l, err)
	l, err = console.Listen(console.Socket(c.DataDir))
	add(Terminal, l, err)
	taken := map[string]bool{} // several channels may have one address
	for _, channel := range slices.Sorted(maps.Keys(c.Webhooks)) {
		address := c.Webhooks[channel]
		if address != "" && !taken[address] {
			l, err := listenWebhook(ctx, address)
			add(webhook(channel), l, err)
		}
		taken[address] = true
	}
	return all, page, errors.Join(errs...)
}
