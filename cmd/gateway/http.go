package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"strings"

	"parley/channels/network"
	webchat "parley/channels/web"
	"parley/cmd/gateway/endpoints"
	"parley/config"
	"parley/host"
	"parley/store"
	"parley/web"
)

// openHTTP makes the HTTP server: its socket for whoever has the data folder, and
// its address for everybody else, unless there is none or this is a chat. It
// opens the addresses of hooks, which networks call, too.
func (g *gateway) openHTTP(ctx context.Context, hooks endpoints.Webhooks) error {
	c := g.Config
	at := endpointsOf(c)
	addr := cmp.Or(at.Page, "localhost:0") // of a chat: where its links will lead
	var front net.Listener
	var err error
	if at.Page != "" && !g.Chat {
		if front, addr, err = g.servers.ListenPage(ctx, at); err != nil {
			return err
		}
		g.noteOtherPort(addr)
	}
	cfg := web.Config{
		Listen:    addr,
		PublicURL: c.HTTP.PublicURL,
		Token:     string(c.HTTP.AdminToken),
		Version:   host.Version(),
		Zone:      c.Zone(),
		Store:     g.store,
		Gateway:   ownerAPI{g}.view(),
		Log:       g.Log,
		Metrics:   g.observer.Handler(),
		Audit:     g.auditLog.Add,
		API:       g.api.Serve,
		MCP:       g.mcpServer.Serve,
		SignIn:    g.mcp.SignIn.Pages(),
		Blocked: func(ctx context.Context, name string) (bool, error) {
			return g.hub.Access().IsBlocked(ctx, "web", name)
		},
	}
	if g.browser != nil {
		cfg.Chat = g.browser.Serve
		cfg.App = webchat.App(g.browser)
	}
	if g.web, err = web.New(cfg); err != nil {
		return err
	}
	if g.Chat {
		return nil
	}
	if front != nil {
		if err := g.servers.Add(front, g.web.HTTP(g.web.Handler()), endpoints.Page); err != nil {
			return err
		}
	}
	socket, err := at.ListenAdmin()
	if err != nil {
		return err
	}
	if err := g.servers.Add(socket, g.web.HTTP(g.web.Local()), endpoints.Admin); err != nil {
		return err
	}
	return g.servers.AddWebhooks(ctx, hooks, g.web.HTTP)
}

// endpointsOf returns where a gateway with the config is reached.
func endpointsOf(c *config.Config) endpoints.Config {
	at := endpoints.Config{Version: host.Version(), DataDir: c.DataDir, Page: c.HTTP.Listen, Public: c.HTTP.PublicURL}
	at.Webhooks = map[string]string{}
	chosen := c.HTTP.Listen != config.DefaultListen || c.HTTP.PublicURL != "" || c.Source.Listen != ""
	if !chosen {
		at.Fallback = config.FreeListen
	}
	for _, name := range c.Networks() {
		at.Webhooks[name] = network.WebhookAddress(c.DriverOf(name))
	}
	return at
}

// forward passes connections on to another gateway until ctx ends: this one stands by.
func (g *gateway) forward(ctx context.Context, dial store.Dial, servers store.Remote) {
	g.waiting = endpoints.Forwarder{Config: endpointsOf(g.Config), Log: g.Log}.Run(ctx, dial, servers)
}

// noteOtherPort warns if addr, where the web page is, is not where it was to be.
func (g *gateway) noteOtherPort(addr string) {
	wanted := g.Config.HTTP.Listen
	if addr == wanted || strings.HasSuffix(wanted, ":0") {
		return
	}
	const text = "%s is in use by another program, so the web page is at %s until the next start"
	g.otherPort = fmt.Sprintf(text, wanted, addr)
	g.Log.Warn("http.listen is in use by another program, so the web page has another port until the next start",
		"wanted", wanted, "address", addr)
}

// printWebLink tells whoever started the gateway where the page is. Only a person at a
// terminal is given a link that signs in: the output of a service is kept in
// logs, and whoever reads them would be the owner.
func (g *gateway) printWebLink(ctx context.Context) {
	if g.Chat || g.Config.HTTP.Listen == "" || g.browser == nil {
		return
	}
	if !host.IsTerminal(g.Stderr) {
		fmt.Fprintf(g.Stderr, "%-9s %s (parley link prints a link that signs you in)\n", "web", g.web.Home())
		return
	}
	link, err := g.web.Link(ctx, config.WebOwner)
	if err != nil {
		g.Log.Error("no link to the web page", "err", err)
		return
	}
	fmt.Fprintf(g.Stderr, "%-9s %s (signs you in once; parley link makes another)\n", "web", link)
	if g.otherPort != "" {
		fmt.Fprintf(g.Stderr, "%-9s %s\n", "warning", g.otherPort)
	}
}
