package backup

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// The store is copied to the folder backups of the data folder once a day, for
// the day it is found damaged (P18). These copies are on the same disk: only an
// archive kept elsewhere helps when the disk is lost.
const (
	copyInterval  = 24 * time.Hour
	checkInterval = 10 * time.Minute // between two looks whether a copy is due
	copiesKept    = 3
)

func copiesFolder(dataDir string) string { return filepath.Join(dataDir, "backups") }

// Copies returns the paths of the daily copies of the store in dataDir, the latest
// first.
func Copies(dataDir string) []string {
	paths, _ := filepath.Glob(filepath.Join(copiesFolder(dataDir), "parley-*.db")) // the pattern is valid
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths
}

// Copy makes another daily copy, which backup writes to a path, and removes the
// oldest ones.
func Copy(ctx context.Context, dataDir string, backup func(ctx context.Context, path string) error) error {
	folder := copiesFolder(dataDir)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	name := "parley-" + time.Now().UTC().Format("20060102-150405") + ".db"
	draft := filepath.Join(dataDir, ".backup-"+name) // half a copy must not count as one
	if err := backup(ctx, draft); err != nil {
		return err
	}
	if err := os.Rename(draft, filepath.Join(folder, name)); err != nil {
		return err
	}
	if err := syncFolders(folder, dataDir); err != nil { // before older ones go
		return err
	}
	for i, old := range Copies(dataDir) {
		if i < copiesKept {
			continue
		}
		if err := os.Remove(old); err != nil {
			return err
		}
	}
	return nil
}

// SweepDrafts removes the temporary files of backups, restores and uploads that
// were killed. The caller holds the lock of the data folder.
func SweepDrafts(dataDir string) (err error) {
	for _, drafts := range []string{".backup-*", ".restore-*", ".upload-*"} {
		left, _ := filepath.Glob(filepath.Join(dataDir, drafts)) // the pattern is valid
		for _, path := range left {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// A Keeper makes copies of a store that is in use.
type Keeper struct {
	DataDir string
	Store   any // copied if it has the method Backup, as bolt.Store has; a store in memory has not
	// Room returns an error if a disk does not have space for so many more bytes:
	// a copy must not use the space that is reserved for accepted messages.
	Room func(folder string, bytes uint64) error
	Log  *slog.Logger
}

// A copier is a store that can be copied to a file while it is in use.
type copier interface {
	Backup(ctx context.Context, path string) error
}

// Run makes a copy whenever one is due, until ctx ends.
func (k Keeper) Run(ctx context.Context) {
	if _, ok := k.Store.(copier); !ok {
		return
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(checkInterval):
		}
		if !k.due() {
			continue
		}
		if err := Copy(ctx, k.DataDir, k.copyStore); err != nil && ctx.Err() == nil {
			k.Log.Warn("daily copy of the store failed", "err", err)
		}
	}
}

// due reports whether the latest copy is too old, or missing.
func (k Keeper) due() bool {
	copies := Copies(k.DataDir)
	if len(copies) == 0 {
		return true
	}
	info, err := os.Stat(copies[0])
	return err != nil || time.Since(info.ModTime()) >= copyInterval
}

// ErrNoFile says that there is no file to be copied.
var ErrNoFile = errors.New("only a store that is a file can be copied: " +
	"use the backups of the servers that keep the store")

// copyStore copies the store to the file path, if there is space for it.
func (k Keeper) copyStore(ctx context.Context, path string) error {
	s, ok := k.Store.(copier)
	if !ok {
		return ErrNoFile
	}
	size, err := storeSize(filepath.Join(k.DataDir, StoreFile))
	if err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	if err := k.Room(k.DataDir, size); err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	return s.Backup(ctx, path)
}

// Send makes an archive of c and of the store, and passes it to send after it is
// complete and was checked (P20).
func (k Keeper) Send(ctx context.Context, c Contents, send func(io.Reader)) error {
	dir, err := os.MkdirTemp(k.DataDir, ".backup-*")
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer os.RemoveAll(dir)
	c.Store = filepath.Join(dir, StoreFile)
	if err := k.copyStore(ctx, c.Store); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "backup"), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	defer f.Close()
	write := func(w io.Writer) error { return Write(ctx, w, c) }
	if err := fillChecked(ctx, f, write); err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	send(io.NewSectionReader(f, 0, math.MaxInt64))
	return nil
}
