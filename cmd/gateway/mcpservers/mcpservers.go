// Package mcpservers makes the parts of a gateway that have to do with MCP servers.
package mcpservers

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"parley/admin"
	"parley/channels"
	"parley/doctor"
	"parley/redact"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/tools/mcp"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/pins"
	"parley/tools/mcp/sampling"
	"parley/tools/mcp/signin"
	"parley/tools/oversight"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
)

// A Config is what the gateway has for them.
type Config struct {
	Log       *slog.Logger
	Store     store.Store
	Sandbox   sandbox.Runner
	DataDir   string
	File      string // the config
	Version   string
	MaxStored func() int64
	Secrets   *redact.Redactor
	SignInKey func() string // of the config
	Texts     *texts.Catalogue
	Audit     func(kind, who, what string)
	Zone      *time.Location
	Hub       func() *channels.Hub
	Home      func() string        // where browsers reach Parley
	Patience  func() time.Duration // with people whom servers ask something
	Brief     bool                 // nobody runs the servers: this process only carries out a command
}

// Parts are the servers, what signs people in to them, and what people look after them with.
type Parts struct {
	Servers *mcp.Servers
	SignIn  *signin.SignIn
	Manager *manage.Manager
	sampler *sampling.Sampler
}

// Use goes on with the servers of a new config. kit makes the tool by which they ask models.
func (p *Parts) Use(servers map[string]*mcp.Server, kit sampling.KitMaker) {
	p.sampler.Use(servers, kit)
	p.Servers.Use(servers)
}

// Rules returns the rules of the config with those of the servers: what it says of all of them is so for each
// that it does not name.
func Rules(servers map[string]*mcp.Server, rules map[string]string) tools.Rules {
	all := tools.Rules{}
	for name := range servers {
		all[mcp.Category(name)] = tools.Rule(rules[mcp.CategoryAll])
	}
	for category, rule := range rules {
		all[category] = tools.Rule(rule)
	}
	return all
}

// Run keeps servers connected, and signs people in to them, until ctx ends.
func (p *Parts) Run(ctx context.Context) {
	p.Servers.Run(ctx)
	p.SignIn.Close()
}

// New returns the parts.
func New(c Config) *Parts {
	pinned := pins.Config{Store: c.Store, Log: c.Log, Redact: c.Secrets.String}
	if !c.Brief { // a gateway that runs tells owners, as soon as it sees the change
		pinned.Tell = func(ctx context.Context, id, server string, changes int) error {
			return c.Hub().TellOwners(ctx, id, manage.Notice(c.Texts.Tools.MCP, server, changes))
		}
	}
	book := pins.New(pinned)
	tokens := new(redact.Redactor)
	signIn := newSignIn(c, tokens)
	sampler := sampling.New(sampling.Config{
		Log:        c.Log,
		Texts:      &c.Texts.Tools.Elicit,
		QuestionID: oversight.QuestionID,
	})
	var inputs mcp.Inputs
	if !c.Brief { // nobody is there to be asked
		inputs = newInputs(c, sampler)
	}
	servers := mcp.New(mcp.Config{
		Log:       c.Log,
		Sandbox:   c.Sandbox,
		Bare:      none.Runner{},
		Folder:    filepath.Join(c.DataDir, "mcp"),
		Hidden:    []string{c.DataDir, c.File},
		Version:   c.Version,
		MaxStored: c.MaxStored,
		Review:    book.Review,
		Known:     book.Known,
		IdleAfter: 30 * time.Minute,
		Redact:    tokens.Known,
		SignIn:    signIn,
		Inputs:    inputs,
	})
	if !c.Brief {
		signIn.Tell(servers)
	}
	manager := manage.New(manage.Config{
		Servers: servers,
		Book:    book,
		SignIn:  signIn,
		Texts:   c.Texts.Tools.MCP,
		Audit:   c.Audit,
		Redact:  c.Secrets.String,
		Log:     c.Log,
		Zone:    c.Zone,
		Idle:    c.Brief,
	})
	return &Parts{Servers: servers, SignIn: signIn, Manager: manager, sampler: sampler}
}

// Checks returns what the doctor looks at, by name: each of the servers. client asks the gateway that
// runs; it is nil if none does.
func Checks(servers map[string]*mcp.Server, newClient func() *admin.Client) (all []doctor.Check) {
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s := doctor.MCPServer{Name: name, Off: !servers[name].Enabled, Find: findProgram}
		if servers[name].URL == "" {
			s.Command = servers[name].Command
		}
		if newClient != nil {
			s.State = func(ctx context.Context) (doctor.MCPState, error) { return stateOf(ctx, newClient(), name) }
		}
		all = append(all, doctor.Check{Name: "mcp " + name, Run: s.Check})
	}
	return all
}

func findProgram(name string) error {
	_, err := exec.LookPath(name)
	if failed, ok := errors.AsType[*exec.Error](err); ok {
		return failed.Err
	}
	return err
}

// stateOf asks a gateway how a server is.
func stateOf(ctx context.Context, client *admin.Client, name string) (state doctor.MCPState, err error) {
	all, err := client.MCPServers(ctx)
	for _, s := range all {
		if s.Name == name {
			state.Phase = string(s.Phase)
			state.Problem = cmp.Or(state.Problem, s.LastError)
			state.Changes = s.Changes
		}
	}
	return state, errors.Join(err, client.Close())
}
