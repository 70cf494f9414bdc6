package main

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"parley/admin"
	"parley/channels/console"
	webchat "parley/channels/web"
	"parley/config"
	"parley/host"
	"parley/web"
)

// openHTTP makes the HTTP server: its socket for whoever has the data folder, and
// its address for everybody else, unless there is none or this is a chat. It
// opens the addresses of hooks, which networks call, too.
func (g *gateway) openHTTP(ctx context.Context, hooks map[string]*http.ServeMux) error {
	c := g.Config
	addr := cmp.Or(c.HTTP.Listen, "localhost:0") // of a chat: where its links will lead
	var front net.Listener
	if c.HTTP.Listen != "" && !g.Chat {
		fallback := ""
		chosen := c.HTTP.Listen != config.DefaultListen || c.HTTP.PublicURL != "" || c.Source.Listen != ""
		if !chosen {
			fallback = config.FreeListen
		}
		var err error
		if front, addr, err = web.Listen(ctx, c.HTTP.Listen, fallback); err != nil {
			return fmt.Errorf("http.listen: %w", err)
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
	var err error
	if g.web, err = web.New(cfg); err != nil {
		return err
	}
	if front != nil {
		g.addServer(front, g.web.HTTP(g.web.Handler()))
	}
	if g.Chat {
		return nil
	}
	socket, err := console.Listen(admin.Socket(c.DataDir))
	if err != nil {
		return err
	}
	g.addServer(socket, g.web.HTTP(g.web.Local()))
	for addr, mux := range hooks {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", addr)
		if err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
		s := g.web.HTTP(mux)
		s.ReadTimeout = 30 * time.Second
		g.addServer(l, s)
	}
	return nil
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

// addServer has s serve the connections of l once the gateway runs.
func (g *gateway) addServer(l net.Listener, s *http.Server) {
	g.listeners, g.servers = append(g.listeners, l), append(g.servers, s)
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
