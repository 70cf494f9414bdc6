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
	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/refusal"
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
		Forward: g.forward,
	})
	if stores.IsRefused(err) {
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
		DataDir: c.DataDir, Workspace: c.Workspace, Config: c.File, HasConfig: c.Found, Log: log,
		Settle: moving.Settler(c.Networks()),
	}
}

// explainStore adds to err what to do about a store that must not be used.
func explainStore(c *config.Config, err error) error {
	if lost, ok := errors.AsType[*backup.LostError](err); ok {
		return exit{exitUsage, fmt.Errorf("%w; nothing was started or changed\n"+
			"put it back, or go on with the latest copy: %s\nor begin with an empty store: %s",
			err, c.Command("restore", lost.LatestCopy), c.Command("run", "--begin-anew"))}
	}
	if older, ok := errors.AsType[*refusal.OlderError](err); ok {
		return exit{exitUsage, fmt.Errorf("%w\nto go on with it, and lose what came after it: %s",
			err, c.Command("restore", "--force", older.File))}
	}
	_, isNewer := errors.AsType[*refusal.FormatError](err)
	if _, hasLeft := errors.AsType[*refusal.LeftError](err); isNewer || hasLeft {
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

// openWorkspace opens the agent's folder.
func (g *gateway) openWorkspace(ctx context.Context) (err error) {
	c := g.Config
	g.files, err = stores.Workspace{
		Store: g.store, Folder: c.Workspace, DataDir: c.DataDir, Config: c.File, Anew: g.Anew, Log: g.Log,
		Restore: c.Command("restore", "--force", "FILE"), Begin: c.Command("run", "--begin-anew"),
	}.Open(ctx)
	if _, isLost := errors.AsType[*stores.LostError](err); isLost {
		return exit{exitUsage, err}
	}
	return err
}
