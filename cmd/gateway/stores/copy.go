package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"reflect"

	"parley/backup"
	"parley/cmd/gateway/endpoints"
	"parley/handover"
	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/contents"
	"parley/store/bolt/dirlock"
	"parley/store/bolt/refusal"
	"parley/store/transfer"
)

// A CopyResult says what Copy has done.
type CopyResult struct {
	transfer.Report
	MovedTo string // the folder where the file is now that was copied; "": none was
}

// A Place is where a config keeps the store.
type Place struct {
	Driver any
	Type   string
	Dir    string // the data folder
}

// Copy copies the store at from to to, where there must be nothing. One of them may be the file of the data folder. A
// file that was copied is moved to a folder beside it, and other stores know that they were left: no gateway answers
// from either again. No gateway may run meanwhile.
func Copy(ctx context.Context, from, to Place, log *slog.Logger) (c CopyResult, err error) {
	for _, s := range []Place{from, to} {
		if s.Type == "mem" {
			return c, errors.New(`a store of type "mem" keeps nothing: there is nothing to copy`)
		}
	}
	defer func() { err = AdviseStop(err) }()
	switch {
	case IsFile(from.Driver) && IsFile(to.Driver):
		return c, errors.New("both configs keep the store in the file of the data folder: " +
			"parley move brings it to another folder")
	case reflect.DeepEqual(from.Driver, to.Driver):
		return c, errors.New("both configs name the same store")
	}
	for _, s := range []Place{from, to} {
		if err := s.checkUnused(ctx); err != nil {
			return c, err
		}
	}
	switch {
	case IsFile(from.Driver):
		return copyFile(ctx, from.Dir, to, log)
	case IsFile(to.Driver):
		return copyToFile(ctx, from, to.Dir, log)
	}
	unlock, err := dirlock.Wait(ctx, from.Dir, true, Patience, log)
	if err != nil {
		return c, err
	}
	c.Report, err = copyAll(ctx, opener(from, log), opener(to, log))
	return c, errors.Join(err, unlock())
}

// checkUnused returns an error at once if a gateway on any machine answers from the store at p. One that runs here has
// the lock of the data folder.
func (p Place) checkUnused(ctx context.Context) error {
	servers, ok := p.Driver.(store.Locator)
	if !ok {
		return nil
	}
	found, err := servers.Locate(ctx, endpoints.Admin)
	if found == nil || err != nil {
		return err
	}
	return errors.Join(&answersError{found.Name}, found.Close())
}

// An answersError says that a gateway uses a store that nobody may use.
type answersError struct{ gateway string }

// Error implements error.
func (e *answersError) Error() string { return "a gateway answers from the store: " + e.gateway }

// AdviseStop adds to err what to do if it says that a gateway uses what a command needs for itself.
func AdviseStop(err error) error {
	locked, isLocked := errors.AsType[*dirlock.LockedError](err)
	_, answers := errors.AsType[*answersError](err)
	switch {
	case answers, isLocked && locked.Answers != "":
		return fmt.Errorf("stop all gateways first, on all machines: %w", err)
	case isLocked && !locked.Brief:
		return fmt.Errorf("stop the gateway first: %w", err)
	}
	return err
}

// copyFile copies the store in the folder dir, and moves it to another folder. Until the end nobody else has the lock.
func copyFile(ctx context.Context, dir string, to Place, log *slog.Logger) (c CopyResult, err error) {
	if _, err := os.Stat(dir); err != nil { // there is not even a folder to lock
		return c, err
	}
	unlock, err := dirlock.Wait(ctx, dir, true, Patience, log)
	if err != nil {
		return c, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	file := filepath.Join(dir, backup.StoreFile)
	if err := cmp.Or(handover.Check(dir), refusal.CheckLeft(file)); err != nil {
		return c, err
	}
	if len(backup.Existing(file)) == 0 {
		return c, fmt.Errorf("there is no store in %s", dir)
	}
	open := func(ctx context.Context) (store.Store, error) {
		return bolt.Open(ctx, bolt.Config{Dir: dir, Log: log, Locked: true})
	}
	if c.Report, err = copyAll(ctx, open, opener(to, log)); err != nil {
		return c, err
	}
	if c.MovedTo, err = (backup.Restorer{DataDir: dir, Log: log}).Leave("copied-", to.Type); err != nil {
		return c, fmt.Errorf("all was copied, and is to be used there; but %s cannot be moved to a folder of its own, "+
			"so do that by hand: %w", file, err)
	}
	return c, nil
}

// copyToFile copies the store at from into a new file, and puts that into the folder dir.
func copyToFile(ctx context.Context, from Place, dir string, log *slog.Logger) (c CopyResult, err error) {
	if err := handover.Check(dir); err != nil {
		return c, err
	}
	into := func(draft string) error {
		open := func(ctx context.Context) (store.Store, error) {
			return bolt.Open(ctx, bolt.Config{Dir: draft, Log: log})
		}
		c.Report, err = copyAll(ctx, opener(from, log), open)
		return err
	}
	err = backup.Restorer{DataDir: dir, Log: log}.TakeIn(ctx, into)
	return c, err
}

// opener returns what opens the store at p.
func opener(p Place, log *slog.Logger) func(context.Context) (store.Store, error) {
	return func(ctx context.Context) (store.Store, error) {
		return p.Driver.(store.Driver).Open(ctx, store.Host{Log: log, Brief: true})
	}
}

// portable returns s as one whose content can be moved.
func portable(s store.Store) (store.Portable, error) {
	switch s := s.(type) {
	case *bolt.Store:
		return contents.Of(s), nil
	case interface{ Portable() store.Portable }:
		return s.Portable(), nil
	}
	return nil, errors.New("the content of this type of store cannot be moved")
}

// copyAll opens two stores and copies one to the other.
func copyAll(ctx context.Context, from, to func(context.Context) (store.Store, error)) (r transfer.Report, err error) {
	source, err := from(ctx)
	if err != nil {
		return r, fmt.Errorf("open the store to copy: %w", err)
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	target, err := to(ctx)
	if err != nil {
		return r, fmt.Errorf("open the store to copy to: %w", err)
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	a, err := portable(source)
	if err != nil {
		return r, err
	}
	b, err := portable(target)
	if err != nil {
		return r, err
	}
	r, err = transfer.Copy(store.Deferred(ctx), a, b) // Close writes what was deferred to the disk
	if err != nil {
		return r, fmt.Errorf("%w\nall is still where it was", err)
	}
	if _, isFile := source.(*bolt.Store); isFile {
		return r, nil
	}
	return r, transfer.Leave(ctx, source)
}
