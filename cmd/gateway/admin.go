package main

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/admin/commands"
	"parley/cmd/gateway/endpoints"
	"parley/config"
	"parley/host"
	"parley/redact"
)

// admin returns a client of the gateway that runs, here or on another machine, or of one that receives nothing
// and is open for as long as the command needs it.
func (p *program) admin(ctx context.Context) (*admin.Client, error) {
	c, loadErr := p.load()
	if c == nil {
		return nil, loadErr
	}
	socket := admin.Socket(c.DataDir)
	client := admin.NewClient(socket)
	client.Zone = c.Zone()
	client.Out = p.stdout
	if loadErr != nil { // a gateway that runs here can be reached all the same
		client.Open = func() (func() error, error) { return nil, loadErr }
		return client, nil
	}
	client.Elsewhere = endpoints.NewElsewhere(c.Store.Driver, endpoints.Admin)
	client.Open = func() (func() error, error) {
		end, err := p.openGateway(ctx, c)
		if admin.GatewayStarts(ctx, err, socket) {
			return nil, nil
		}
		return end, err
	}
	return client, nil
}

// adminCommands returns the commands that ask the gateway.
func (p *program) adminCommands() []*cobra.Command {
	return commands.New(commands.Config{
		Version: host.Version(), In: p.stdin, Out: p.stdout, Owner: config.WebOwner, Open: p.admin,
	})
}

// openGateway serves the admin socket of a gateway in which nothing runs.
func (p *program) openGateway(ctx context.Context, c *config.Config) (end func() error, err error) {
	var last redact.Recent
	g := &gateway{began: time.Now(), options: options{
		Config: c,
		Chat:   true,
		Brief:  true,
		Stderr: io.Discard,
		Recent: &last,
		Redact: &p.redact,
		Log:    redact.NewLog(p.stderr, &p.level, &p.redact, &last),
	}}
	if err := g.build(ctx, func(error) {}); err != nil {
		return nil, errors.Join(err, g.close())
	}
	failed := func(err error) { g.Log.Error("commands are not answered any more", "err", err) }
	stop, err := g.servers.ServeCommands(endpointsOf(c), g.web.HTTP(g.web.Local()), failed)
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	return func() error { return errors.Join(stop(), g.close()) }, nil
}
