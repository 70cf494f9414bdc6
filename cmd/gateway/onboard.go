package main

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"
	"path/filepath"

	"parley/cmd/gateway/setup"
	"parley/config"
	"parley/host"
)

// firstConfig is the config.json that onboard writes. The one at the root of
// the repository is the same.
//
//go:embed config.json
var firstConfig []byte

// onboard writes what a new installation begins with. It never changes a file that is there.
func (p *program) onboard(context.Context) error {
	s, err := p.source()
	if err != nil {
		return exit{exitUsage, err}
	}
	if err := host.ActAsOwner(s.Data); err != nil {
		return err
	}
	if err := setup.Config(p.stdout, s.File, firstConfig); err != nil {
		return err
	}
	c, err := config.Load(s)
	if err != nil {
		return exit{exitUsage, fmt.Errorf("the config cannot be used\n%w", err)}
	}
	if err := setup.Folders(p.stdout, c.DataDir, c.Workspace); err != nil {
		return err
	}
	return setup.Next{
		Config: c.File, Flags: p.flags(), Commented: setup.HasBotComment(c.File),
		Model: c.Models[c.Agent.Model].Type != "demo", Telegram: c.HasNetwork("telegram"),
	}.Print(p.stdout)
}

// flags returns the flags that find this Parley, for command lines that people are told.
func (p *program) flags() (flags string) {
	if p.data != "" {
		flags += " --data " + p.data
	}
	if p.file != "" {
		flags += " --config " + p.file
	}
	return flags
}

// installService has systemd run Parley for this user, now and at every start.
func (p *program) installService(ctx context.Context) error {
	c, err := p.load()
	if err != nil {
		return err
	}
	home, _ := p.environ.Lookup("HOME")
	settings, _ := p.environ.Lookup("XDG_CONFIG_HOME")
	s := setup.Service{DataDir: c.DataDir, Units: cmp.Or(settings, filepath.Join(home, ".config"))}
	if c.Found {
		s.Config = c.File
	}
	return s.Install(ctx, p.stdout)
}
