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
	"parley/doctor"
	"parley/store"
	"parley/texts"
	"parley/tools/mcp"
	"parley/tools/mcp/manage"
	"parley/tools/mcp/pins"
	"parley/tools/sandbox"
	"parley/tools/sandbox/none"
)

// A Config is what the gateway has for them.
type Config struct {
	Log        *slog.Logger
	Store      store.Store
	Sandbox    sandbox.Runner
	DataDir    string
	File       string // the config
	Version    string
	MaxStored  func() int64
	Redact     func(text string) string
	Texts      *texts.Catalogue
	Audit      func(kind, who, what string)
	Zone       *time.Location
	TellOwners func(ctx context.Context, id, text string) error
	Brief      bool // nobody runs the servers: this process only carries out a command
}

// New returns the servers, and what owners look after them with.
func New(c Config) (*mcp.Servers, *manage.Manager) {
	pinned := pins.Config{Store: c.Store, Log: c.Log, Redact: c.Redact}
	if !c.Brief { // a gateway that runs tells owners, as soon as it sees the change
		pinned.Tell = func(ctx context.Context, id, server string, changes int) error {
			return c.TellOwners(ctx, id, manage.Notice(c.Texts.Tools.MCP, server, changes))
		}
	}
	book := pins.New(pinned)
	servers := mcp.New(mcp.Config{
		Log:       c.Log,
		Sandbox:   c.Sandbox,
		Bare:      none.Runner{},
		Folder:    filepath.Join(c.DataDir, "mcp"),
		Hidden:    []string{c.DataDir, c.File},
		Version:   c.Version,
		MaxStored: c.MaxStored,
		Review:    book.Review,
	})
	return servers, manage.New(manage.Config{
		Servers: servers,
		Book:    book,
		Texts:   c.Texts.Tools.MCP,
		Audit:   c.Audit,
		Redact:  c.Redact,
		Zone:    c.Zone,
		Idle:    c.Brief,
	})
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
