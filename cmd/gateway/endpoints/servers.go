package endpoints

import (
	"context"
	"errors"
	"net"
	"net/http"
	"sync"
	"time"

	"parley/store"
	"parley/web"
)

// Servers answer people, commands and networks, also those that other gateways pass on.
type Servers struct {
	store    store.Connector // nil: nothing is passed on
	remote   store.Remote    // nil: the store needs no servers
	health   net.Listener    // see CheckHealth; nil: this is a command
	waiting  Waiting         // from when this gateway stood by
	self     web.Instance    // this gateway
	all      []server
	standbys Standbys
	announce net.Listener // of standbys; nil: there can be none
}

type server struct {
	*http.Server
	listeners []net.Listener
}

// NewServers returns Servers that nobody reaches yet. Gateways that stand by pass connections on to them if in is
// a [store.Connector], unless this is a command, which ends soon.
// They serve those that wait, and close them if they are not served.
func NewServers(c Config, waiting Waiting, in store.Store, brief bool) (s *Servers, err error) {
	s = &Servers{waiting: waiting, self: newInstance(web.Answers, c.Version, "")}
	if brief {
		return s, nil
	}
	s.store, _ = in.(store.Connector)
	s.remote, _ = in.(store.Remote)
	if s.health, err = c.listenHealth(); err != nil {
		return s, err
	}
	s.announce, err = s.Forwarded(standby)
	return s, err
}

// Forwarded returns a listener for the connections that other gateways pass on under name; nil if there can be none.
func (s *Servers) Forwarded(name string) (net.Listener, error) {
	if s.store == nil {
		return nil, nil
	}
	return s.store.Listen(name)
}

// ListenPage is [Config.ListenPage] that others are told of.
func (s *Servers) ListenPage(ctx context.Context, c Config) (l net.Listener, bound string, err error) {
	l, bound, err = c.ListenPage(ctx)
	s.self.Page = bound
	return l, bound, err
}

// Add has h serve the connections of l, and those that other gateways pass on under the names.
func (s *Servers) Add(l net.Listener, h *http.Server, names ...string) error {
	one := server{h, []net.Listener{l}}
	var errs []error
	for _, name := range names {
		others, err := s.Forwarded(name)
		errs = append(errs, err)
		if others != nil {
			one.listeners = append(one.listeners, others)
		}
		if len(s.waiting[name]) > 0 {
			one.listeners = append(one.listeners, s.waiting.listener(name))
		}
	}
	s.all = append(s.all, one)
	return errors.Join(errs...)
}

// A Webhook is what networks call at one address.
type Webhook struct {
	mux      *http.ServeMux
	channels []string
}

// Webhooks are all of them, by address.
type Webhooks map[string]*Webhook

// Add has h answer the network of a channel at the path of the address.
func (ws Webhooks) Add(channel, address, path string, h http.Handler) {
	if ws[address] == nil {
		ws[address] = &Webhook{mux: http.NewServeMux()}
	}
	ws[address].mux.Handle(path, h)
	ws[address].channels = append(ws[address].channels, webhook(channel))
}

// callTimeout is how long a network may take to say something.
const callTimeout = 30 * time.Second

// AddWebhooks has the handlers of ws, made into servers by newServer, answer networks.
func (s *Servers) AddWebhooks(ctx context.Context, ws Webhooks, newServer func(http.Handler) *http.Server) error {
	for address, w := range ws {
		l, err := listenWebhook(ctx, address)
		if err != nil {
			return err
		}
		h := newServer(w.mux)
		h.ReadTimeout = callTimeout
		if err := s.Add(l, h, w.channels...); err != nil {
			return err
		}
	}
	return nil
}

// Serve serves until Shutdown or Close. It calls failed if one of the servers ends by itself.
func (s *Servers) Serve(failed func(error)) {
	var serving sync.WaitGroup
	if s.announce != nil {
		serving.Go(func() { s.standbys.Serve(s.announce) })
	}
	if s.health != nil {
		serving.Go(func() { serveHealth(s.health, s.remote) })
	}
	for _, one := range s.all {
		for _, l := range one.listeners {
			serving.Go(func() {
				if err := one.Serve(l); !errors.Is(err, http.ErrServerClosed) {
					failed(err)
				}
			})
		}
	}
	serving.Wait()
}

// ServeCommands has h answer the commands of this machine, until stop is called. It calls failed if that ends by
// itself.
func (s *Servers) ServeCommands(c Config, h *http.Server, failed func(error)) (stop func() error, err error) {
	l, err := c.ListenAdmin()
	if err != nil {
		return nil, err
	}
	if err := s.Add(l, h, Admin); err != nil {
		return nil, err
	}
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(failed) })
	return func() error {
		err := s.Close()
		serving.Wait()
		return err
	}, nil
}

// Shutdown takes no more connections, and waits until what was asked for is answered, or ctx ends.
func (s *Servers) Shutdown(ctx context.Context) {
	if s.announce != nil {
		_ = s.announce.Close() // a listener of a store has nothing to say then
	}
	if s.health != nil {
		_ = s.health.Close() // Close says what is wrong
	}
	var ending sync.WaitGroup
	for _, one := range s.all {
		ending.Go(func() { _ = one.Shutdown(ctx) }) // what is cut off comes again
	}
	ending.Wait()
}

// Close ends all connections and listeners, also if Serve was never called.
func (s *Servers) Close() error {
	s.waiting.Close()
	var errs []error
	for _, one := range s.all {
		errs = append(errs, one.Server.Close())
		for _, l := range one.listeners {
			if err := l.Close(); !errors.Is(err, net.ErrClosed) {
				errs = append(errs, err)
			}
		}
	}
	if s.announce != nil {
		errs = append(errs, s.announce.Close())
	}
	if s.health != nil {
		if err := s.health.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Instances returns the gateways that share the store, this one first; nil if there can be no other.
func (s *Servers) Instances() []web.Instance {
	if s.store == nil {
		return nil
	}
	return append([]web.Instance{s.self}, s.standbys.List()...)
}
