// Package mcp offers the tools, resources and prompts of MCP servers: programs and services that
// other people wrote, as config names them.
//
// A server is connected to when the first turn needs it (D-030). A supervisor keeps it connected:
// it starts its program in a sandbox, or reaches it by HTTP, lists what it offers, and begins anew
// when the connection ends. What is listed becomes tools with names such as
// mcp_github_create_issue (D-105). Their results are untrusted content (R-S12, R-S22).
package mcp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/chat"
	"parley/tools"
	"parley/tools/network"
	"parley/tools/sandbox"
)

// A Config is what servers are used with. Each part may be left out.
type Config struct {
	Log *slog.Logger

	// Sandbox runs the programs of servers, and Bare those of servers without a sandbox. Without
	// one of them, the servers that need it cannot be used.
	Sandbox, Bare sandbox.Runner

	// Folder has a folder for each server that has a program: its home, which it may change.
	Folder string

	// Hidden are files and folders that no server sees, although it was granted a folder with them:
	// the data folder and the config.
	Hidden []string

	// Addresses judges where servers reached by HTTP may send Parley, besides their own address.
	// nil allows the public web.
	Addresses *network.Guard

	// Version is Parley's, which servers are told.
	Version string

	// MaxStored is how many bytes of files a person may have in the workspace, 0 for any number. It
	// may be nil.
	MaxStored func() int64

	// Review returns the part of a listing that may be used. It is called for each new list, before
	// any of it is offered, and for all of them again after Servers.Review. It must be fast: it
	// delays the list. nil approves everything.
	Review func(ctx context.Context, server string, s Server, l Listing) (Listing, error)

	SignIn SignIn // nil: servers are used without signing in
	Inputs Inputs // nil: the questions of servers are declined
}

// SignIn authorizes requests to servers that are reached by HTTP.
type SignIn interface {
	// Personal reports whether each person uses the server with a sign-in of their own. Such a
	// server has a connection for each of them, and is never used in a group.
	Personal(server string, s Server) bool

	// Handler returns what authorizes requests that are made for who, which is "" unless the server
	// is personal. nil sends them as they are. A context that the handler is called with during a
	// call of a tool has the call: see CallOf. client is guarded against being sent to private
	// networks; the handler must use it for all that the server tells it to fetch.
	Handler(server string, s Server, who chat.Person, client *http.Client) auth.OAuthHandler
}

// Inputs answers what servers ask in the middle of a call (elicitation).
//
// A server of protocol 2026-07-28 ends a request with its questions and a state, and gets the request
// again with the answers and the state. Both can be kept: after a crash the call goes on with them.
// A server of an earlier version asks while the request is open; state is "" then.
type Inputs interface {
	// Capabilities returns which questions servers may ask. Roots are never offered.
	Capabilities() *sdk.ClientCapabilities

	// Answer returns the answers to requests, by the same keys. c is the call during which the
	// server asks; nil if that is not known, because an older server has several open.
	Answer(ctx context.Context, server string, c *tools.Call, requests sdk.InputRequestMap, state string) (
		sdk.InputResponseMap, error)

	// Resume returns the answers and the state with which c, which a crash interrupted while a
	// question was open, goes on. If ok is false, the call begins at its beginning. It is called
	// for each call.
	Resume(ctx context.Context, server string, c tools.Call) (
		answers sdk.InputResponseMap, state string, ok bool, err error)
}

// A Listing is what a server offers, as it said it.
type Listing struct {
	Name         string // what the server calls itself
	Version      string
	Protocol     string // the negotiated version
	Instructions string

	Tools     []*sdk.Tool
	Resources []*sdk.Resource
	Templates []*sdk.ResourceTemplate
	Prompts   []*sdk.Prompt
}

// Servers are the MCP servers that config names. They are a [tools.Source].
type Servers struct {
	config Config
	wake   chan struct{} // tells Run to look at all

	mu     sync.Mutex
	used   map[string]*Server
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
	for name, server := range s.used {
		if server.Enabled && server.Eager && !s.personal(name, server) {
			s.want(key{server: name})
		}
	}
	s.poke()
}

func (s *Servers) personal(name string, server *Server) bool {
	return s.config.SignIn != nil && s.config.SignIn.Personal(name, *server)
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

// handshakeWait is how long a turn waits for servers that nobody has used before (D-031).
const handshakeWait = 10 * time.Second

// Tools implements [tools.Source]. A turn that is the first to need a server waits for it, but not
// longer than 10 seconds after its start, and not if it has failed before: its tools are there in
// the next turn after it is connected (D-031). Outside of a turn nothing is started.
func (s *Servers) Tools(ctx context.Context, scope tools.Scope) ([]tools.Tool, error) {
	wanted := s.supervisors(scope)
	if scope.Turn != "" {
		for _, v := range wanted {
			v.awaitFirst(ctx)
		}
	}
	var all []tools.Tool
	seen := map[string]bool{}
	for _, v := range wanted {
		for _, t := range v.tools() {
			if seen[t.Name] { // D-105
				v.warnOnce("tool left out: a tool of another server has its name", "tool", t.Name)
				continue
			}
			seen[t.Name] = true
			t.Withheld = func(joined chat.Sender) bool { return !v.server.isFor(scope, joined) }
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
		if s.personal(name, server) {
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
	if !found && !s.personal(name, server) {
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
			if l, ok := v.listing(); ok {
				return l, true
			}
		}
	}
	return Listing{}, false
}

// States returns how the servers of the config are, sorted by name and person. A server that nobody
// has used is Idle.
func (s *Servers) States() (list []State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, server := range s.used {
		found := false
		for k, v := range s.all {
			if k.server == name {
				list = append(list, v.state())
				found = true
			}
		}
		switch {
		case found:
		case server.Enabled:
			list = append(list, State{Server: name, Phase: Idle})
		default:
			list = append(list, State{Server: name, Phase: Disabled})
		}
	}
	slices.SortFunc(list, func(a, b State) int {
		return strings.Compare(a.Server+"\x00"+string(a.Who), b.Server+"\x00"+string(b.Who))
	})
	return list
}

// A State says how a server is.
type State struct {
	Server string
	Who    chat.Person // whose connection it is; "" unless each person has one
	Phase  Phase
	Since  time.Time // when Phase began

	Tools     int    // that are offered, resources and prompts included
	Withheld  int    // that are not, because Config.Review withholds them
	Protocol  string // "" before the first connection
	PID       int    // of its program, or of what confines it; 0 if none is running
	LastError string // why the last connection ended, or none was made; "" if nothing went wrong
	NextTry   time.Time
	Stderr    []string // the last lines that the program wrote there

	Calls    int
	Failures int           // of Calls, those that did not get a result
	Latency  time.Duration // of a call, on average
	LastCall time.Time
}

// A Phase is how far the connection of a server is.
type Phase string

// The phases of a connection.
const (
	Disabled   Phase = "disabled" // in the config
	Idle       Phase = "idle"     // nobody has used it
	Connecting Phase = "connecting"
	Connected  Phase = "connected"
	Failed     Phase = "failed" // it is tried again at State.NextTry
	Ended      Phase = "ended"  // Parley shuts down, or config does not have it any more
)

// callKey is for values of contexts.
type callKey struct{}

// CallOf returns the call of a tool that a request is made for. ok is false if it is made for the
// connection itself.
func CallOf(ctx context.Context) (c tools.Call, ok bool) {
	c, ok = ctx.Value(callKey{}).(tools.Call)
	return c, ok
}
