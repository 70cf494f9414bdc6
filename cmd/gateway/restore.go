package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"parley/agent"
	"parley/channels"
	"parley/scheduler"
	"parley/store"
	"parley/store/bolt"
)

// restore puts what is in the backup file in the place of c's data, or says why
// not and changes nothing. Data that is there is moved aside with force, and
// else a reason not to. It returns what to tell the person.
func restore(ctx context.Context, c *Config, file string, force bool, log *slog.Logger) (told []string, err error) {
	if err := os.MkdirAll(c.DataDir, 0o700); err != nil {
		return nil, err
	}
	unlock, err := bolt.Lock(c.DataDir) // no gateway may run meanwhile
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	db := filepath.Join(c.DataDir, storeFile)
	if there := existing(db, db+".mark", c.Workspace); len(there) > 0 && !force {
		return nil, fmt.Errorf("there is data already: %s; --force moves it aside", there[0])
	}
	there := existing(db, c.Workspace)
	if isStore(file) { // a copy of the store alone
		there = existing(db)
	}
	aside := unusedPath(filepath.Join(c.DataDir, "before-restore-"+time.Now().Format("20060102-150405")))
	shelved, err := exchange(ctx, c, there, aside, log, func(draft string) error {
		made, err := unpackFrom(ctx, file, draft)
		if err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
		told = append(told, "backup of "+made.In(c.zone()).Format(time.DateTime))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, path := range there {
		told = append(told, "moved "+path+" to "+aside)
	}
	if c.found {
		told = append(told, "kept "+c.file+"; the config of the backup is not put in its place")
	}
	if shelved.messages+shelved.replies > 0 {
		told = append(told, fmt.Sprintf("put aside what waited when the backup was made: messages %d, replies %d", shelved.messages, shelved.replies))
	}
	return told, nil
}

// exchange puts what fill makes in a folder in the place of c's data. What is
// there is moved to the folder aside, but the mark of the store stays until there
// is another: without one, a gateway would start empty after a kill (P18).
// Whoever calls it holds the lock. It returns how much was put aside.
func exchange(ctx context.Context, c *Config, there []string, aside string, log *slog.Logger, fill func(draft string) error) (shelved shelvedCount, err error) {
	draft, err := os.MkdirTemp(c.DataDir, ".restore-*")
	if err != nil {
		return shelved, err
	}
	defer os.RemoveAll(draft)
	if err := fill(draft); err != nil {
		return shelved, err
	}
	if shelved, err = settle(ctx, c, draft, log); err != nil {
		return shelved, err
	}
	if err := syncTree(draft); err != nil {
		return shelved, err
	}
	if err := moveAside(aside, there); err != nil {
		return shelved, err
	}
	if err = c.takeIn(draft); err != nil && len(there) > 0 {
		err = fmt.Errorf("%w; what was there is in %s", err, aside)
	}
	return shelved, err
}

// unusedPath returns path, or path with a number behind it if it is in use.
func unusedPath(path string) string {
	for n := 1; ; n++ {
		free := path
		if n > 1 {
			free = fmt.Sprintf("%s-%d", path, n)
		}
		if _, err := os.Lstat(free); err != nil { // whoever uses it finds out what else is wrong
			return free
		}
	}
}

// existing returns those of paths that exist, and are no empty folders.
func existing(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		entries, notFolder := os.ReadDir(path)
		return err != nil || notFolder == nil && len(entries) == 0
	})
}

// isStore reports whether file is a copy of a store, and no backup, which begins
// as all files of gzip do.
func isStore(file string) bool {
	head := make([]byte, 2)
	f, err := os.Open(file)
	if err != nil {
		return false
	}
	defer f.Close()
	_, err = io.ReadFull(f, head)
	return err == nil && string(head) != "\x1f\x8b" && filepath.Ext(file) == filepath.Ext(storeFile)
}

// unpackFrom unpacks file into the folder dir and returns when the backup was made.
func unpackFrom(ctx context.Context, file, dir string) (time.Time, error) {
	if isStore(file) {
		info, err := os.Stat(file)
		if err == nil {
			err = copyFile(filepath.Join(dir, storeFile), file)
		}
		if err != nil {
			return time.Time{}, err
		}
		return info.ModTime(), nil
	}
	f, err := os.Open(file)
	if err != nil {
		return time.Time{}, err
	}
	defer f.Close()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return time.Time{}, err
	}
	defer root.Close()
	m, err := unpack(ctx, f, root)
	return m.Made, err
}

// shelvedCount is how much that waited when a backup was made was put aside.
type shelvedCount struct{ messages, replies int }

// settle makes a copied store fit to go on with: what waited in it when it was
// copied has been answered and sent since, and is put aside to be looked at (P20).
func settle(ctx context.Context, c *Config, dir string, log *slog.Logger) (shelved shelvedCount, err error) {
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Log: log, Probe: probeInChild})
	if err != nil {
		return shelved, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Renew(ctx); err != nil {
		return shelved, err
	}
	queues, err := s.Queues(ctx)
	if err != nil {
		return shelved, err
	}
	for name := range c.Channels.Discord { // what was said since has been answered, too: nothing is asked for again
		if err := empty(ctx, s.Bucket("seen/"+name)); err != nil {
			return shelved, err
		}
	}
	if err := scheduler.New(scheduler.Config{Store: s}).Shelve(ctx); err != nil {
		return shelved, err
	}
	shelved.messages, err = agent.Shelve(ctx, s)
	if err != nil {
		return shelved, err
	}
	shelved.replies, err = channels.NewHub(channels.Config{Store: s, Log: slog.New(slog.DiscardHandler)}).Shelve(ctx, queues, "it waited when the backup was made")
	return shelved, err
}

func empty(ctx context.Context, b store.Bucket) error {
	for key, err := range b.Keys(ctx, "") {
		if err == nil {
			err = b.Delete(ctx, key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// moveAside moves paths into a new folder: all of them, or none.
func moveAside(dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	err := os.Mkdir(dir, 0o700)
	for i, path := range paths {
		if err == nil {
			err = os.Rename(path, filepath.Join(dir, filepath.Base(path)))
		}
		if err != nil { // such as a workspace on another disk
			for _, moved := range paths[:i] {
				err = errors.Join(err, os.Rename(filepath.Join(dir, filepath.Base(moved)), moved))
			}
			return errors.Join(err, os.Remove(dir))
		}
	}
	folders := []string{dir, filepath.Dir(dir)}
	for _, path := range paths {
		folders = append(folders, filepath.Dir(path))
	}
	return syncFolders(folders...)
}

// syncFolders makes the names in folders survive a power cut.
func syncFolders(folders ...string) error {
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		d, err := os.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", folder, err)
		}
	}
	return nil
}

// syncTree is syncFolders of a folder and all in it.
func syncTree(folder string) error {
	var folders []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.IsDir() {
			folders = append(folders, path)
		}
		return err
	})
	if err != nil {
		return err
	}
	return syncFolders(folders...)
}

// takeIn moves what was unpacked in the folder draft to where c has it. The
// config stays where there is one.
func (c *Config) takeIn(draft string) error {
	if err := os.MkdirAll(filepath.Dir(c.Workspace), 0o700); err != nil {
		return err
	}
	moves := []struct{ from, to string }{
		{filesFolder, c.Workspace},
		{storeFile, filepath.Join(c.DataDir, storeFile)}, // the store comes last but for its mark, which says that there is one
		{storeFile + ".mark", filepath.Join(c.DataDir, storeFile+".mark")},
	}
	if !c.found {
		moves = append(moves, struct{ from, to string }{configFile, c.file})
	}
	if entries, err := os.ReadDir(c.Workspace); err == nil && len(entries) == 0 {
		if err := os.Remove(c.Workspace); err != nil {
			return err
		}
	}
	for _, m := range moves {
		err := os.Rename(filepath.Join(draft, m.from), m.to)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil { // before the next: the order counts after a power cut, too
			err = syncFolders(filepath.Dir(m.to))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyFile copies a file to a new one that only its owner can read.
func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
