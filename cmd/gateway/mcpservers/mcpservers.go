// Package mcpservers makes the parts of a gateway that have to do with MCP servers.
package mcpservers

import (
	"context"
	"log/slog"
	"path/filepath"
	"time"

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
