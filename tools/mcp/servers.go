package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/chat"
	"parley/tools"
	"parley/tools/network"
)

// Servers are the MCP servers that config names. They are a [tools.Source].
type Servers struct {
	config Config
	wake   chan struct{} // tells Run to look at all

	mu     sync.Mutex
	used   map[string]*Server
	remote map[string]Service // those of used that are reached by HTTP
	all    map[key]*supervisor
	ending []*supervisor // of servers that config no longer has
	closed bool          // Run has ended, or is about to
}

// A key identifies a connection: who is "" unless each person has one of their own.
type key struct {
	server string
	who    chat.Person
}

// New returns Servers that are none yet: see Use.
func New(c Config) *Servers {
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Addresses == nil {
		c.Addresses = network.NewGuard(nil, nil)
	}
	return &Servers{
		config: c,
		wake:   make(chan struct{}, 1),
		used:   map[string]*Server{},
		all:    map[key]*supervisor{},
	}
}

// Use goes on with the servers of a new config, by name. Those that are the same stay connected.
func (s *Servers) Use(servers map[string]*Server) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.all {
		if next := servers[k.server]; next == nil || !reflect.DeepEqual(next, v.server) {
			delete(s.all, k)
			s.ending = append(s.ending, v)
		}
	}
	s.used = maps.Clone(servers)
	s.remote = map[string]Service{}
	for name, server := range s.used {
		if server.URL != "" {
			s.remote[name] = newService(name, server, s.config.Addresses, nil)
		}
	}
	for name, server := range s.used {
		if server.Enabled && server.Eager && !s.isPersonal(name) {
			s.want(key{server: name})
		}
	}
	s.poke()
}

// isPersonal reports whether each person has a connection of their own to a server. s.mu is held.
func (s *Servers) isPersonal(name string) bool {
	service, remote := s.remote[name]
	return remote && s.config.SignIn != nil && s.config.SignIn.Personal(service)
}

// want returns the supervisor of k, which Run starts. s.mu is held.
func (s *Servers) want(k key) *supervisor {
	v := s.all[k]
	if v == nil {
		v = newSupervisor(s.config, k, s.used[k.server])
		s.all[k] = v
		s.poke()
	}
	return v
}

// poke has Run look at what is to be started and ended.
func (s *Servers) poke() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Run keeps servers connected until ctx ends, and returns when all their programs have ended.
func (s *Servers) Run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if s.config.Inputs != nil {
		running.Go(func() { s.config.Inputs.Begin(ctx) })
	}
	for {
		s.mu.Lock()
		for _, v := range s.ending {
			v.stop(errRemoved)
		}
		s.ending = nil
		s.closed = ctx.Err() != nil
		for _, v := range s.all {
			if !s.closed && v.begin(ctx) {
				running.Go(v.run)
			}
		}
		s.mu.Unlock()
		select {
		case <-ctx.Done():
			if s.closed {
				return
			}
		case <-s.wake:
		}
	}
}

// handshakeWait returns how long a turn waits for servers that nobody has used before (D-031).
func (c Config) handshakeWait() time.Duration { return cmp.Or(c.Handshake, 10*time.Second) }

// handshakeTimeout returns how long a server may take until it is connected, and as much until its lists are
// known: a small machine takes its time to start a program in Node.
func (c Config) handshakeTimeout() time.Duration { return cmp.Or(c.Handshake, 30*time.Second) }

// Tools implements [tools.Source]. A turn that is the first to need a server has it connected. Unless it
// is known what the server offers, the turn waits for it, but not longer than 10 seconds after its
// start, and not if it has failed before: its tools are there in the next turn after it is connected
// (D-031). Outside of a turn nothing is started.
func (s *Servers) Tools(ctx context.Context, scope tools.Scope) ([]tools.Tool, error) {
	wanted := s.supervisors(scope)
	if scope.Turn != "" {
		for _, v := range wanted {
			if err := v.offering.use(); err != nil {
				v.log.Warn("MCP server is not reviewed", "err", err)
			}
			if !v.offering.recall(ctx) {
				v.awaitFirst(ctx)
			}
		}
	}
	all := s.signInTools(ctx, scope)
	seen := map[string]bool{}
	for _, t := range all {
		seen[t.Name] = true
	}
	starts := s.nameStarts()
	for _, v := range wanted {
		for _, t := range v.offering.all() {
			if other := ownerOf(t.Name, starts); other != "" && other != v.key.server {
				v.warnOnce("tool left out: its name belongs to another server", "tool", t.Name, "other", other)
				continue
			}
			if seen[t.Name] { // D-105
				v.warnOnce("tool left out: a tool of another server has its name", "tool", t.Name)
				continue
			}
			seen[t.Name] = true
			t.Withheld = func(joined chat.Sender) bool {
				theirs := scope
				theirs.From = joined
				return !v.server.isFor(scope, joined) || !v.key.allows(theirs)
			}
			all = append(all, t)
		}
	}
	return all, nil
}

// supervisors returns those of the servers that may be used in scope, sorted by name.
func (s *Servers) supervisors(scope tools.Scope) (list []*supervisor) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.used)) {
		server := s.used[name]
		if !server.Enabled || !server.isFor(scope, scope.From) {
			continue
		}
		k := key{server: name}
		if s.isPersonal(name) {
			s.end(k) // made before that was known
			if scope.Group {
				continue
			}
			k.who = scope.Whose()
		}
		if v := s.all[k]; v != nil {
			list = append(list, v)
		} else if scope.Turn != "" && !s.closed {
			list = append(list, s.want(k))
		}
	}
	return list
}

// Usable returns the names of the servers whose tools exist in scope, sorted.
func (s *Servers) Usable(scope tools.Scope) (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.used)) {
		server := s.used[name]
		if server.Enabled && server.isFor(scope, scope.From) && (!scope.Group || !s.isPersonal(name)) {
			names = append(names, name)
		}
	}
	return names
}

// Server returns the entry of the config for a server, nil if there is none.
func (s *Servers) Server(name string) *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used[name]
}

// ErrDisabled says that the config has switched a server off.
var ErrDisabled = errors.New("the MCP server is switched off in the config")

// Reconnect ends the connections of a server, if there are any, and makes them anew at once. If
// nobody has used the server so far, it connects. The error is for people who named a server.
func (s *Servers) Reconnect(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	server := s.used[name]
	switch {
	case server == nil:
		names := strings.Join(slices.Sorted(maps.Keys(s.used)), ", ")
		return fmt.Errorf("there is no MCP server %q; there are: %s", name, names)
	case !server.Enabled:
		return fmt.Errorf("%w: %s", ErrDisabled, name)
	}
	found := false
	for k, v := range s.all {
		if k.server == name {
			v.reconnect()
			found = true
		}
	}
	if !found && !s.isPersonal(name) {
		s.want(key{server: name})
	}
	return nil
}

// Review has Config.Review look at the listings of a server again, after an owner has approved some
// of it.
func (s *Servers) Review(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.all {
		if k.server == name {
			v.relist()
		}
	}
}

// Listing returns what the server offers, with what Config.Review withholds, and whether it is known.
func (s *Servers) Listing(name string) (Listing, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, v := range s.all {
		if k.server == name {
			if l, ok := v.offering.listing(); ok {
				return l, true
			}
		}
	}
	return Listing{}, false
}
