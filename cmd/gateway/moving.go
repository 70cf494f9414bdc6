package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"

	"parley/backup"
	"parley/cmd/gateway/moving"
	"parley/cmd/gateway/stores"
	"parley/config"
	"parley/host"
	"parley/imports"
	"parley/redact"
)

// movingCommands returns the commands that bring people to Parley, and Parley to another place.
func (p *program) movingCommands() []*cobra.Command {
	return moving.Commands(moving.Config{
		In: p.stdin, Out: p.stdout, Target: p.importTarget, Flags: p.flags, Restore: p.restore, Copy: p.copyStore,
	})
}

// restore puts a backup in the place of the data. It returns the config file if that stays as it is.
func (p *program) restore(
	ctx context.Context, file string, force bool,
) (report backup.Report, zone *time.Location, kept string, err error) {
	c, err := p.load()
	if err != nil {
		return report, nil, "", err
	}
	if err := stores.CheckFile(c.Store.Driver, c.Store.Type); err != nil {
		return report, nil, "", err
	}
	if c.Found {
		kept = c.File
	}
	log := redact.NewLog(p.stderr, &p.level, &p.redact, new(redact.Recent))
	report, err = restorer(c, log).Restore(ctx, file, force)
	return report, c.Zone(), kept, err
}

// copyStore copies the store to where the config in the file to keeps it.
func (p *program) copyStore(ctx context.Context, to string) (copied stores.CopyResult, err error) {
	from, err := p.load()
	if err != nil {
		return copied, err
	}
	p.file = to
	target, err := p.load()
	if err != nil {
		return copied, err
	}
	log := redact.NewLog(p.stderr, &p.level, &p.redact, new(redact.Recent))
	return stores.Copy(ctx, place(from), place(target), log)
}

// place returns where c keeps the store.
func place(c *config.Config) stores.Place {
	return stores.Place{Driver: c.Store.Driver, Type: c.Store.Type, Dir: c.DataDir}
}

// importTarget returns what an import changes. Variables that its config names need not be set yet.
func (p *program) importTarget() (t imports.Target, err error) {
	s, err := p.source()
	if err != nil {
		return t, exit{exitUsage, err}
	}
	text, err := os.ReadFile(s.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return t, err
	}
	s.Environ = moving.Environ(p.environ, text)
	c, err := config.Load(s)
	if err != nil {
		return t, exit{exitUsage, err}
	}
	t = imports.Target{
		DataDir: c.DataDir, Workspace: c.Workspace, Config: c.File, NewConfig: firstConfig,
		Zone: c.Zone(), MinInterval: c.Cron.MinInterval, Now: time.Now,
	}
	refused := stores.CheckFile(c.Store.Driver, c.Store.Type)
	t.Open = moving.Opener(c.DataDir, refused, stores.Patience, func(err error) error { return explainStore(c, err) })
	t.Check = func(text []byte) error {
		s.Environ = moving.Environ(p.environ, text)
		_, err := config.Parse(s, text)
		return err
	}
	return t, host.ActAsOwner(c.DataDir)
}
