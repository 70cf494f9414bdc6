// Package manage is how people look after MCP servers: what they see of them, and what they do with
// them, by the command /mcp, the command line and the owner's page.
package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
	"parley/tools/mcp"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/signin"
)

// A Config is what a Manager is made with.
type Config struct {
	Servers *mcp.Servers
	Book    *pins.Book
	SignIn  *signin.SignIn // nil: nobody signs in
	Texts   texts.MCP
	Audit   func(kind, who, what string) // receives events for the audit log (R-S27)
	Redact  func(text string) string     // removes secrets from what servers say
	Log     *slog.Logger
	Zone    *time.Location
	// Idle means that nobody runs Servers: this process only carries out a command.
	Idle bool
}

// A Manager shows and changes the state of MCP servers.
type Manager struct{ config Config }

// New returns a Manager.
func New(c Config) *Manager {
	c.Zone = cmp.Or(c.Zone, time.Local)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return &Manager{c}
}

// ErrUnknown says that config has no such server.
var ErrUnknown = errors.New("there is no such MCP server")

// A Status is how a server is, or one connection of a server that each person has one of.
type Status struct {
	Name   string      `json:"name"`
	Person chat.Person `json:"person,omitempty"`  // whose connection it is
	SignIn *SignIn     `json:"sign_in,omitempty"` // nil: Person is not signed in
	Phase  mcp.Phase   `json:"phase"`
	Since  time.Time   `json:"since,omitzero"`

	Tools     int       `json:"tools"`         // that are offered, resources and prompts included
	Withheld  int       `json:"withheld"`      // that are not until an owner approves them
	Changes   int       `json:"changes"`       // to approve
	New       bool      `json:"new,omitempty"` // nobody has used Tools: the first use approves them
	Protocol  string    `json:"protocol,omitempty"`
	LastError string    `json:"last_error,omitempty"`
	NextTry   time.Time `json:"next_try,omitzero"`
	Stderr    []string  `json:"stderr,omitempty"`

	Calls     int       `json:"calls"`
	Failures  int       `json:"failures"`
	LatencyMS int64     `json:"latency_ms"` // of a call, on average
	LastCall  time.Time `json:"last_call,omitzero"`
}

// A Report is all that owners see of one server.
type Report struct {
	Status  []Status     `json:"status"`
	Offers  []Offer      `json:"offers"` // as the server said last; hidden characters are visible
	Pending pins.Pending `json:"pending"`
	Summary []string     `json:"summary"` // one line for each of Pending.Changes

	// NeedsSignIn says that owners can use the server once they have signed in to it.
	NeedsSignIn bool `json:"needs_sign_in,omitempty"`

	// Instructions are what the server said last of itself as a whole, as Offers.
	Instructions string `json:"instructions,omitempty"`
}

// An Offer is a tool, resource or prompt of a server.
type Offer struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`

	Parameters []Parameter `json:"parameters,omitempty"`
	Withheld   bool        `json:"withheld,omitempty"` // until an owner approves it
}

// List returns the states of all servers, sorted by name.
func (m *Manager) List(ctx context.Context) ([]Status, error) {
	all := []Status{}
	for _, s := range m.config.Servers.States() {
		p, err := m.config.Book.Pending(ctx, s.Server)
		if err != nil {
			return nil, err
		}
		status := Status{
			Name:      s.Server,
			Person:    s.Who,
			Phase:     s.Phase,
			Since:     s.Since,
			Tools:     s.Tools,
			Withheld:  s.Withheld,
			Changes:   len(p.Changes),
			Protocol:  s.Protocol,
			LastError: m.safe(s.LastError),
			NextTry:   s.NextTry,
			Calls:     s.Calls,
			Failures:  s.Failures,
			LatencyMS: s.Latency.Milliseconds(),
			LastCall:  s.LastCall,
		}
		if p.First {
			status.New = true
			status.Changes = 0
		}
		for _, line := range s.Stderr {
			status.Stderr = append(status.Stderr, m.safe(line))
		}
		all = append(all, status)
	}
	return m.addSignIns(ctx, all)
}

// safe returns what a server said, without secrets and with hidden characters made visible.
func (m *Manager) safe(text string) string {
	return strings.ReplaceAll(pins.Visible(m.config.Redact(text)), "\n", " ")
}

// Show returns all about one server. The error is ErrUnknown if there is none of that name.
func (m *Manager) Show(ctx context.Context, name string) (Report, error) {
	if m.config.Servers.Server(name) == nil {
		return Report{}, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	all, err := m.List(ctx)
	if err != nil {
		return Report{}, err
	}
	l, _ := m.config.Servers.Listing(name)
	r := Report{Offers: m.offers(l), Instructions: pins.Visible(l.Instructions)}
	r.Status = slices.DeleteFunc(all, func(s Status) bool { return s.Name != name })
	r.NeedsSignIn = m.needsSignIn(name, r.Status)
	if r.Pending, err = m.config.Book.Pending(ctx, name); err != nil {
		return Report{}, err
	}
	for _, c := range r.Pending.Changes {
		r.Summary = append(r.Summary, m.summary(c))
		i := slices.IndexFunc(r.Offers, func(o Offer) bool { return o.Kind == m.kind(c) && o.Name == c.Name })
		if i >= 0 && !r.Pending.First {
			r.Offers[i].Withheld = true
		}
	}
	return r, nil
}

// offers returns what l lists.
func (m *Manager) offers(l mcp.Listing) []Offer {
	all := []Offer{}
	add := func(kind, name, title, description string, parameters ...Parameter) {
		text := pins.Visible(cmp.Or(description, title))
		all = append(all, Offer{Kind: kind, Name: pins.VisibleName(name), Description: text, Parameters: parameters})
	}
	say := m.config.Texts
	for _, t := range l.Tools {
		add(say.Tool, t.Name, t.Title, t.Description, parametersOf(t.InputSchema)...)
	}
	for _, r := range l.Resources {
		add(say.Resource, r.Name, r.Title, r.Description)
	}
	for _, t := range l.Templates {
		add(say.Template, t.Name, t.Title, t.Description)
	}
	for _, p := range l.Prompts {
		var arguments []Parameter
		for _, a := range p.Arguments {
			if a != nil {
				arguments = append(arguments, Parameter{
					Name:        pins.VisibleName(a.Name),
					Required:    a.Required,
					Description: pins.Visible(cmp.Or(a.Description, a.Title)),
				})
			}
		}
		add(say.Prompt, p.Name, p.Title, p.Description, arguments...)
	}
	return all
}

// kind returns the word for what is changed.
func (m *Manager) kind(c pins.Change) string {
	say := m.config.Texts
	return map[string]string{
		pins.Tool:         say.Tool,
		pins.Resource:     say.Resource,
		pins.Template:     say.Template,
		pins.Prompt:       say.Prompt,
		pins.Instructions: say.Instructions,
	}[c.Kind]
}

// summary says in one line what a change is.
func (m *Manager) summary(c pins.Change) string {
	say := m.config.Texts
	kind := m.kind(c)
	text := say.Added.With(kind, c.Name)
	switch c.What {
	case pins.Changed:
		text = say.Changed.With(kind, c.Name, strings.Join(c.Fields, ", "))
	case pins.Renamed:
		text = say.Renamed.With(kind, c.Name, c.Was)
	}
	return strings.Join(strings.Fields(text), " ") // instructions have no name
}

// Approve approves what waits of a server, if it is still what code names, or only the changes with these
// numbers: see [pins.Book.Approve]. by is who does so.
func (m *Manager) Approve(ctx context.Context, name, code, by string, numbers ...int) error {
	if m.config.Servers.Server(name) == nil {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	changes, err := m.config.Book.Approve(ctx, name, code, by, numbers...)
	if err != nil {
		return err
	}
	for _, c := range changes {
		m.config.Audit("approval", by, "MCP server "+name+": "+m.summary(c))
	}
	m.config.Servers.Review(name)
	return nil
}

// Reconnect connects a server anew.
func (m *Manager) Reconnect(name, by string) error {
	if m.config.Servers.Server(name) == nil {
		return fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	if err := m.config.Servers.Reconnect(name); err != nil {
		return err
	}
	m.config.Audit("tool", by, "MCP server reconnected: "+name)
	return nil
}

// testWait is how long Test waits. A package runner may have to fetch the server first.
const testWait = 130 * time.Second

// Test connects a server, unless it is connected, and returns all about it. It has it connected for as
// long as it takes if nobody runs the servers.
func (m *Manager) Test(ctx context.Context, name string) (Report, error) {
	servers := m.config.Servers
	entry := servers.Server(name)
	if entry == nil {
		return Report{}, fmt.Errorf("%w: %s", ErrUnknown, name)
	}
	ctx, stop := context.WithTimeout(ctx, testWait)
	defer stop()
	if m.config.Idle {
		servers.Use(map[string]*mcp.Server{name: entry}) // not those that are eager
		ended := make(chan struct{})
		work, end := context.WithCancel(ctx)
		go func() {
			defer close(ended)
			servers.Run(work)
		}()
		defer func() {
			end()
			<-ended
		}()
	}
	began := time.Now()
	if !m.has(name, func(s mcp.State) bool { return s.Phase == mcp.Connected }) {
		if err := servers.Reconnect(name); err != nil {
			return Report{}, err
		}
	}
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !m.has(name, func(s mcp.State) bool {
		return s.Phase == mcp.Connected || s.Phase == mcp.SignedOut || s.Phase == mcp.Failed && !s.Since.Before(began)
	}) {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return m.Show(context.WithoutCancel(ctx), name)
		}
	}
	return m.Show(ctx, name)
}

// has reports whether a connection of the server is as is says.
func (m *Manager) has(name string, is func(mcp.State) bool) bool {
	return slices.ContainsFunc(m.config.Servers.States(), func(s mcp.State) bool { return s.Server == name && is(s) })
}

// names returns the names of all servers, sorted.
func (m *Manager) names() []string {
	names := map[string]bool{}
	for _, s := range m.config.Servers.States() {
		names[s.Server] = true
	}
	return slices.Sorted(maps.Keys(names))
}

// Notice is what owners are told when a server offers so many things that they have not approved.
func Notice(say texts.MCP, server string, changes int) string { return say.Notice.Of(changes, server) }
