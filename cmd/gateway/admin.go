package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"time"

	"parley/channels/console"
	"parley/config"
)

// adminSocket is where the gateway serves whoever has its data folder, as the
// owner and without a password.
func adminSocket(c *config.Config) string { return filepath.Join(c.DataDir, "admin.sock") }

// An admin is a client of the gateway's admin socket.
type admin struct {
	http.Client
	running bool           // it is the gateway
	zone    *time.Location // of the times that people read
	open    func() error   // opens a gateway, or waits for one that starts; nil if there is nothing but the one that ran
	close   func() error
}

// admin connects to the running gateway, or opens one that receives nothing for
// as long as the command needs it.
func (p *program) admin(ctx context.Context) (*admin, error) {
	c, err := p.load()
	running := c != nil && console.Running(ctx, adminSocket(c))
	if err != nil && !running {
		return nil, err
	}
	a := adminOf(c)
	a.open = func() error {
		end, err := p.openGateway(ctx, c)
		if startsSoon(ctx, err, adminSocket(c)) {
			a.running = true
			return nil
		}
		a.running = false
		if err == nil {
			a.close = end
		}
		return err
	}
	if running {
		a.running = true
		return a, nil
	}
	return a, a.open()
}

// adminOf returns an admin of whoever serves c's admin socket.
func adminOf(c *config.Config) *admin {
	a := &admin{zone: c.Zone(), close: func() error { return nil }}
	a.Transport = &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return console.Dial(ctx, adminSocket(c))
	}}
	return a
}

// openGateway serves the admin socket of a gateway in which nothing runs.
func (p *program) openGateway(ctx context.Context, c *config.Config) (end func() error, err error) {
	var last recent
	g := &gateway{began: time.Now(), options: options{
		Config: c, Chat: true, Brief: true, Stderr: io.Discard, Recent: &last, Redact: &p.redact, Log: newLog(p.stderr, &p.level, &p.redact, &last),
	}}
	if err := g.build(ctx, func(error) {}); err != nil {
		return nil, errors.Join(err, g.close())
	}
	l, err := console.Listen(adminSocket(c))
	if err != nil {
		return nil, errors.Join(err, g.close())
	}
	server, ended := g.web.HTTP(g.web.Local()), make(chan error, 1)
	go func() { ended <- closed(server.Serve(l)) }()
	return func() error {
		err := server.Close()
		return errors.Join(err, <-ended, g.close())
	}, nil
}

// ask sends what is asked, as JSON if there is something to say, and reads the
// answer into v, unless it is nil.
func (a *admin) ask(ctx context.Context, method, path string, say, v any) error {
	r, err := a.request(ctx, method, path, say)
	if err != nil {
		return err
	}
	defer r.Close()
	if v == nil {
		return nil
	}
	return json.NewDecoder(r).Decode(v)
}

// request is ask for an answer that the caller reads and closes. A gateway that
// ended before it could be asked is replaced by the next one.
func (a *admin) request(ctx context.Context, method, path string, say any) (io.ReadCloser, error) {
	answer, err := a.requestOnce(ctx, method, path, say)
	failed, dialed := errors.AsType[*net.OpError](err)
	if !dialed || failed.Op != "dial" || !a.running || a.open == nil {
		return answer, err
	}
	if err := a.open(); err != nil {
		return nil, err
	}
	return a.requestOnce(ctx, method, path, say)
}

func (a *admin) requestOnce(ctx context.Context, method, path string, say any) (io.ReadCloser, error) {
	var body bytes.Buffer
	if say != nil {
		if err := json.NewEncoder(&body).Encode(say); err != nil {
			return nil, err
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, "http://localhost"+path, &body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := a.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 300 {
		return resp.Body, nil
	}
	defer resp.Body.Close()
	var refusal struct{ Error struct{ Message string } }
	if json.NewDecoder(resp.Body).Decode(&refusal) != nil || refusal.Error.Message == "" {
		return nil, fmt.Errorf("the gateway says %s", resp.Status)
	}
	if resp.StatusCode == http.StatusNotFound {
		return nil, fmt.Errorf("%w: %s", errNone, refusal.Error.Message)
	}
	return nil, errors.New(refusal.Error.Message)
}

// errNone says that what was asked for is not there.
var errNone = errors.New("not found")
