// Package stores opens the store that the config names, if it is not the file of the data folder, and examines it.
package stores

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"parley/backup"
	"parley/doctor"
	"parley/handover"
	"parley/host"
	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/dirlock"
	"parley/store/nats"
	"parley/store/transfer"
)

// Patience is how long whoever needs the data folder waits for a command that has it and soon ends.
const Patience = 20 * time.Second

// Config says for which process a store is opened.
type Config struct {
	Dir     string // the data folder
	Brief   bool   // this is a command that soon ends
	Chat    bool   // only the terminal is served, so that a gateway on another machine goes first
	Log     *slog.Logger
	Stderr  io.Writer   // told of a wait
	Stopped func(error) // see [store.Host]
	// Forward passes what reaches this gateway on to the one that answers, with dial, until ctx ends.
	Forward func(ctx context.Context, dial store.Dial, servers store.Remote)
}

// IsFile reports whether driver keeps everything in a file of the data folder.
func IsFile(driver any) bool {
	_, ok := driver.(*bolt.Config)
	return ok
}

// CheckFile returns an error unless driver, whose type is named so, keeps everything in a file: commands make copies of
// that, and restore them.
func CheckFile(driver any, name string) error {
	if IsFile(driver) {
		return nil
	}
	return fmt.Errorf(`this needs the store to be a file: "store": { "type": "bolt" }, and not %q`, name)
}

// Open opens the store of driver. It has the data folder for itself, until unlock is called (P17).
func Open(ctx context.Context, driver store.Driver, c Config) (s store.Store, unlock func() error, err error) {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, nil, err
	}
	unlock, err = dirlock.Wait(ctx, c.Dir, c.Brief, Patience, c.Log)
	if err != nil {
		return nil, nil, err
	}
	if s, err = c.open(ctx, driver); err != nil {
		return nil, nil, errors.Join(err, unlock())
	}
	return s, unlock, nil
}

func (c Config) open(ctx context.Context, driver store.Driver) (store.Store, error) {
	if err := handover.Check(c.Dir); err != nil {
		return nil, err
	}
	waited := false
	process := store.Host{Log: c.Log, Brief: c.Brief || c.Chat, Stopped: c.Stopped}
	waiting, end := context.WithCancel(ctx)
	var forwarding sync.WaitGroup
	process.Waiting = func(holder string, dial store.Dial, servers store.Remote) {
		if process.Brief {
			return
		}
		if !waited {
			fmt.Fprintf(c.Stderr, standingBy, holder)
			host.Restrict(c.Log, c.Dir)
			forwarding.Go(func() { c.Forward(waiting, dial, servers) })
		}
		waited = true
		c.Log.Info("another gateway uses the store; standing by until it ends", "gateway", holder)
		c.note(holder)
	}
	s, err := driver.Open(ctx, process)
	end()
	forwarding.Wait()
	if err != nil {
		return nil, err
	}
	if err := transfer.CheckState(ctx, s); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if unused := backup.Existing(filepath.Join(c.Dir, backup.StoreFile)); len(unused) > 0 {
		c.Log.Warn("there is a store of before, which is not used: parley store copy takes it along", "file", unused[0])
	}
	if waited {
		c.note("")
		c.Log.Info("the other gateway has ended or does not respond; this one takes over")
	}
	return s, nil
}

// IsRefused reports whether err says that the store must not be used, whatever else is tried.
func IsRefused(err error) bool {
	_, moved := errors.AsType[*handover.MovedError](err)
	return moved || errors.Is(err, nats.ErrNewer) ||
		errors.Is(err, transfer.ErrLeft) || errors.Is(err, transfer.ErrIncomplete)
}

// StandsBy reports whether a gateway stands by with the data in dir, and tells out which one answers.
func StandsBy(dir string, out io.Writer) bool {
	answers := dirlock.StandsBy(dir)
	if answers != "" {
		fmt.Fprintln(out, "stands by:", answers, "answers")
	}
	return answers != ""
}

// note has commands on this machine know which gateway answers.
func (c Config) note(holder string) {
	if err := dirlock.StandBy(c.Dir, holder); err != nil {
		c.Log.Warn("commands on this machine do not know which gateway answers", "err", err)
	}
}

const standingBy = "Another gateway uses the store: %s. " +
	"This one stands by, and takes over when that one ends or does not respond.\n"

// Check is what the doctor finds: of the servers of driver, or of file if it has none.
func Check(ctx context.Context, driver any, file doctor.Store, running doctor.Gateway) doctor.Finding {
	servers, ok := driver.(store.Examiner)
	if !ok {
		return file.Check(ctx, running)
	}
	well, err := servers.Examine(ctx)
	if err != nil {
		const advice = "fix that; a gateway loses nothing meanwhile, but ends, until its service starts it again"
		return doctor.Finding{Status: doctor.Fail, Text: err.Error(), Advice: advice}
	}
	return doctor.Finding{Status: doctor.OK, Text: well}
}
