package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley/admin"
	"parley/admin/commands"
	"parley/cmd/gateway/endpoints"
	"parley/config"
	"parley/host"
	"parley/redact"
)

// admin returns a client of the gateway that runs, or of one that receives nothing
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
	client.Open = func() (func() error, error) {
		if loadErr != nil { // a gateway that runs can be reached all the same
			return nil, loadErr
		}
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
	l, err := endpointsOf(c).ListenAdmin()
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	if err := g.servers.Add(l, g.web.HTTP(g.web.Local()), endpoints.Admin); err != nil {
		return nil, errors.Join(err, g.close())
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		g.servers.Serve(func(err error) { g.Log.Error("commands are not answered any more", "err", err) })
	})
	return func() error {
		err := g.servers.Close()
		serving.Wait()
		return errors.Join(err, g.close())
	}, nil
}
