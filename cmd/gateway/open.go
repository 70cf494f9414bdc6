package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"parley/backup"
	"parley/cmd/gateway/moving"
	"parley/cmd/gateway/stores"
	"parley/config"
	"parley/handover"
	"parley/host"
	"parley/store"
	"parley/store/bolt"
	"parley/workspace"
)

// openStore opens the store that the config names.
func (g *gateway) openStore(ctx context.Context, stopped func(error)) (err error) {
	driver, dir := g.Config.Store.Driver, g.Config.DataDir
	if stores.IsFile(driver) {
		g.store, g.notes, err = g.openBolt(ctx, stopped)
		return err
	}
	g.store, g.unlockData, err = stores.Open(ctx, driver.(store.Driver), stores.Config{
		Dir: dir, Brief: g.Brief, Chat: g.Chat, Log: g.Log, Stderr: g.Stderr, Stopped: stopped,
	})
	if _, ok := errors.AsType[*handover.MovedError](err); ok {
		return exit{exitUsage, err}
	}
	return err
}

// openBolt opens the store. The notes tell owners if a copy has taken the place
// of a damaged one (P18).
func (g *gateway) openBolt(ctx context.Context, stopped func(error)) (s store.Store, notes []string, err error) {
	c := g.Config
	if err := handover.Check(c.DataDir); err != nil {
		return nil, nil, exit{exitUsage, err}
	}
	cfg := bolt.Config{
		Dir: c.DataDir, Log: g.Log, Brief: g.Brief, Patience: stores.Patience,
		Stopped: stopped, Committed: g.observer.Committed,
	}
	opened, replaced, err := restorer(c, g.Log).OpenStore(ctx, cfg, g.Anew)
	if err != nil { // and not a nil *bolt.Store, which is no nil store.Store
		return nil, nil, explainStore(c, err)
	}
	if err := handover.Check(c.DataDir); err != nil { // it was moved while this waited for the lock
		return nil, nil, errors.Join(exit{exitUsage, err}, opened.Close())
	}
	if replaced != nil {
		notes = append(notes, replaced.Notice(g.texts.Gateway.Owners, c.Zone()))
	}
	return opened, notes, nil
}

// restorer puts copies in the place of the data of c.
func restorer(c *config.Config, log *slog.Logger) backup.Restorer {
	return backup.Restorer{
		DataDir:   c.DataDir,
		Workspace: c.Workspace,
		Config:    c.File,
		HasConfig: c.Found,
		Settle: func(ctx context.Context, s *bolt.Store) (backup.Waiting, error) {
			return moving.Settle(ctx, c.Networks(), s)
		},
		Log: log,
	}
}

// explainStore adds to err what to do about a store that must not be used.
func explainStore(c *config.Config, err error) error {
	if lost, ok := errors.AsType[*backup.LostError](err); ok {
		return exit{exitUsage, fmt.Errorf("%w; nothing was started or changed\n"+
			"put it back, or go on with the latest copy: %s\nor begin with an empty store: %s",
			err, c.Command("restore", lost.LatestCopy), c.Command("run", "--begin-anew"))}
	}
	if older, ok := errors.AsType[*bolt.OlderError](err); ok {
		return exit{exitUsage, fmt.Errorf("%w\nto go on with it, and lose what came after it: %s",
			err, c.Command("restore", "--force", older.File))}
	}
	if _, ok := errors.AsType[*bolt.FormatError](err); ok {
		return exit{exitUsage, err}
	}
	return err
}

// tellDamage tells owners of places in the store that cannot be read.
func (g *gateway) tellDamage(ctx context.Context, places []string) error {
	c := g.Config
	restore := func(file string) string { return c.Command("restore", "--force", file) }
	text := backup.DamageNotice(g.texts.Gateway.Owners, places, c.DataDir, restore)
	return g.hub.TellOwners(ctx, "damage:"+strings.Join(places, ","), text)
}

// openWorkspace opens the agent's folder. One that was lost is not replaced by an empty
// one unasked: the memory of everybody is in it.
func (g *gateway) openWorkspace(ctx context.Context) error {
	c := g.Config
	place := backup.NewPlace(g.store, g.Log)
	err := place.Check(ctx, c.Workspace, g.Anew)
	if errors.Is(err, backup.ErrWorkspaceLost) {
		const text = "the workspace %s is gone or empty, and the agent's memory and files with it; " +
			"nothing was started or changed\nmount it or put it back, or take it from a backup: %s\n" +
			"or begin with an empty one: %s"
		restore := c.Command("restore", "--force", "FILE")
		return exit{exitUsage, fmt.Errorf(text, c.Workspace, restore, c.Command("run", "--begin-anew"))}
	}
	if err != nil {
		return err
	}
	if g.files, err = workspace.Open(c.Workspace); err != nil {
		return err
	}
	if err := g.files.Protect(c.DataDir, c.File); err != nil {
		return err
	}
	host.Restrict(g.Log, c.DataDir, c.Workspace)
	workspace.OriginsOf(g.files).Prune(g.Log)
	if _, err := g.files.Seed(); err != nil {
		return fmt.Errorf("write the agent's first files: %w", err)
	}
	return place.Remember(ctx, c.Workspace)
}
