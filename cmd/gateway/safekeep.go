package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/workspace"
)

// The store is copied to the folder backups of the data folder once a day, for
// the day it is found damaged (P18). These copies do not save from the loss of
// the disk: "parley backup" does.
const (
	safeEvery = 24 * time.Hour
	safeKept  = 3
	safeLook  = 10 * time.Minute // between two looks at the clock
)

func safeFolder(c *Config) string { return filepath.Join(c.DataDir, "backups") }

// safeCopies returns the paths of the copies, latest first.
func safeCopies(c *Config) []string {
	paths, _ := filepath.Glob(filepath.Join(safeFolder(c), "parley-*.db")) // the pattern is a good one
	slices.Sort(paths)
	slices.Reverse(paths)
	return paths
}

// copied is a store that can be copied to a file while it is used.
type copied interface {
	Backup(ctx context.Context, path string) error
}

// copyStore copies the store to the file path, if there is room for it: a copy
// must not use up what is kept for messages that were accepted before.
func (h *house) copyStore(ctx context.Context, path string) error {
	s, ok := h.store.(copied)
	if !ok {
		return errors.New("the store is in memory: there is nothing to keep")
	}
	info, err := os.Stat(filepath.Join(h.Config.DataDir, storeFile))
	if err == nil {
		err = h.space.roomFor(h.Config.DataDir, uint64(info.Size()))
	}
	if err != nil {
		return fmt.Errorf("copy the store: %w", err)
	}
	return s.Backup(ctx, path)
}

// safekeep copies the store when it is time to, until ctx ends.
func (h *house) safekeep(ctx context.Context) {
	_, ok := h.store.(copied)
	for ok {
		select {
		case <-ctx.Done():
			return
		case <-time.After(safeLook):
		}
		if copies := safeCopies(h.Config); len(copies) > 0 {
			if info, err := os.Stat(copies[0]); err == nil && time.Since(info.ModTime()) < safeEvery {
				continue
			}
		}
		if err := safeCopy(ctx, h.Config, h.copyStore); err != nil && ctx.Err() == nil {
			h.Log.Warn("the daily copy of the store was not made", "err", err)
		}
	}
}

// sweepDrafts removes what backups, restores and uploads have left that were killed.
// Whoever calls it holds the lock.
func sweepDrafts(c *Config) (err error) {
	for _, drafts := range []string{".backup-*", ".restore-*", ".upload-*"} {
		left, _ := filepath.Glob(filepath.Join(c.DataDir, drafts)) // the pattern is a good one
		for _, path := range left {
			err = errors.Join(err, os.RemoveAll(path))
		}
	}
	return err
}

// safeCopy makes a copy and forgets the oldest ones.
func safeCopy(ctx context.Context, c *Config, backup func(context.Context, string) error) error {
	if err := os.MkdirAll(safeFolder(c), 0o700); err != nil {
		return err
	}
	name := "parley-" + time.Now().UTC().Format("20060102-150405") + ".db"
	draft := filepath.Join(c.DataDir, ".backup-"+name) // half a copy must not count as one
	err := backup(ctx, draft)
	if err == nil {
		err = os.Rename(draft, filepath.Join(safeFolder(c), name))
	}
	if err == nil { // before older ones go
		err = syncFolders(safeFolder(c), c.DataDir)
	}
	if err != nil {
		return err
	}
	for i, old := range safeCopies(c) {
		if i >= safeKept {
			if err := os.Remove(old); err != nil {
				return err
			}
		}
	}
	return nil
}

// lockPatience is how long the gateway waits for a command that has the data
// folder and soon ends.
const lockPatience = 20 * time.Second

// openBolt opens the store. One that is damaged is moved aside, and the latest
// copy that is whole takes its place; notes say so (P18). Where to go on would
// lose what may still be there, it says what to do and changes nothing.
func (h *house) openBolt(ctx context.Context, stopped func(error)) (s store.Store, notes []string, err error) {
	c, log := h.Config, h.Log
	if err := h.checkForLoss(); err != nil {
		return nil, nil, err
	}
	cfg := bolt.Config{
		Dir: c.DataDir, Log: log, Brief: h.Brief, Patience: lockPatience,
		Probe: probeInChild, Stopped: stopped, Committed: h.observer.Committed,
	}
	opened, err := bolt.Open(ctx, cfg)
	var damage *bolt.DamagedError
	if errors.As(err, &damage) {
		for _, path := range safeCopies(c) {
			note, e := h.replace(ctx, path)
			if e != nil {
				log.Error("copy of the store cannot be used", "file", path, "err", e)
				continue
			}
			log.Error("the store is damaged, a copy takes its place", "err", damage.Cause, "copy", path)
			notes = append(notes, note)
			opened, err = bolt.Open(ctx, cfg)
			break
		}
	}
	if err != nil {
		return nil, nil, explainStore(c, err) // not a nil *bolt.Store, which is no nil store.Store
	}
	if err := sweepDrafts(c); err != nil {
		log.Warn("drafts of backups not removed", "err", err)
	}
	return opened, notes, nil
}

// checkForLoss refuses to begin with an empty store where copies tell of one
// that is gone, its mark included: a disk that is not mounted, a folder that
// was half copied.
func (h *house) checkForLoss() error {
	c := h.Config
	file, copies := filepath.Join(c.DataDir, storeFile), safeCopies(c)
	if len(copies) == 0 || len(existing(file, file+".mark")) > 0 {
		return nil
	}
	if !h.Anew {
		return exit{exitUsage, fmt.Errorf("the store %s is gone, though there are copies of it; nothing was started or changed\n"+
			"put it back, or go on with the latest copy: %s\nor begin with an empty store: %s", file, c.command("restore", copies[0]), c.command("run", "--begin-anew"))}
	}
	kept := safeFolder(c) + "-" + time.Now().Format("20060102-150405")
	h.Log.Warn("beginning with an empty store", "copies of the former one", kept)
	return os.Rename(safeFolder(c), kept)
}

// explainStore says what to do about a store that is there and must not be used.
func explainStore(c *Config, err error) error {
	var older *bolt.OlderError
	var newer *bolt.FormatError
	switch {
	case errors.As(err, &older):
		return exit{exitUsage, fmt.Errorf("%w\nto go on with it, and lose what came after it: %s", err, c.command("restore", "--force", older.File))}
	case errors.As(err, &newer):
		return exit{exitUsage, err}
	}
	return err
}

// A place is what the store knows of the workspace.
type place struct {
	Folder string `json:"folder"`
}

// openWorkspace opens the agent's folder. One that the store knows, and that is
// gone or empty, is not made anew unasked, also elsewhere: it may be on a disk
// that is not mounted, and the memory of everybody with it.
func (h *house) openWorkspace(ctx context.Context) error {
	c, b := h.Config, h.store.Bucket("gateway")
	known, _, err := store.Load[place](ctx, b, "workspace")
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrDamaged) {
		return fmt.Errorf("look up the workspace: %w", err)
	}
	if known.Folder != "" && len(existing(c.Workspace, known.Folder)) == 0 {
		if !h.Anew {
			return exit{exitUsage, fmt.Errorf("the workspace %s is gone or empty, and the agent's memory and files with it; nothing was started or changed\n"+
				"mount it or put it back, or take it from a backup: %s\nor begin with an empty one: %s", c.Workspace, c.command("restore", "--force", "FILE"), c.command("run", "--begin-anew"))}
		}
		h.Log.Warn("beginning with an empty workspace", "folder", c.Workspace)
	}
	if h.files, err = workspace.Open(c.Workspace); err != nil {
		return err
	}
	if err := h.files.Protect(c.DataDir, c.file); err != nil {
		return err
	}
	h.closeToOthers()
	if _, err := h.files.Seed(); err != nil {
		return fmt.Errorf("write the agent's first files: %w", err)
	}
	if known.Folder == c.Workspace {
		return nil
	}
	if known.Folder != "" {
		h.Log.Warn("the workspace is another folder than before", "folder", c.Workspace, "before", known.Folder)
	}
	_, err = store.Save(ctx, b, "workspace", place{c.Workspace}, store.Any)
	return err
}

// replace puts the copy of the store in the place of the damaged one.
func (h *house) replace(ctx context.Context, path string) (note string, err error) {
	c, say := h.Config, h.texts.Gateway.Owners
	unlock, err := bolt.Lock(c.DataDir)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	aside := unusedPath(filepath.Join(c.DataDir, "damaged-"+time.Now().Format("20060102-150405")))
	there := existing(filepath.Join(c.DataDir, storeFile))
	shelved, err := exchange(ctx, c, there, aside, h.Log, func(draft string) error {
		return copyFile(filepath.Join(draft, storeFile), path)
	})
	note = say.StoreReplaced.With(info.ModTime().In(c.zone()).Format(time.DateTime))
	if len(there) > 0 {
		note += say.DamagedFileIn.With(aside)
	}
	if shelved.messages+shelved.replies > 0 {
		note += say.PutAside.With(shelved.messages, shelved.replies)
	}
	return note, err
}

// probeInChild has a child process read the whole store file: a damaged one
// can end the process that reads it (P18). It returns where single values are
// damaged; its error says what is wrong with the file itself.
func probeInChild(ctx context.Context, file string) (damaged []string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("probe store: %w", err)
	}
	cmd := exec.CommandContext(ctx, self, "probe", file)
	cmd.Env = []string{} // not ours (R-S17)
	var out, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &stderr
	err = cmd.Run()
	said, _, _ := strings.Cut(strings.TrimPrefix(stderr.String(), "parley: "), "\n")
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("probe store: %w", ctx.Err())
	case err != nil && cmd.ProcessState == nil: // it was never read
		return nil, fmt.Errorf("probe store: %w", err)
	case killed(cmd.ProcessState): // from outside, as for want of memory
		return nil, fmt.Errorf("probe store: %w: %w", err, syscall.EINTR)
	case err == nil:
		for line := range strings.Lines(out.String()) {
			damaged = append(damaged, strings.TrimSuffix(line, "\n"))
		}
		return damaged, nil
	case !cmd.ProcessState.Exited() || cmd.ProcessState.ExitCode() != exitFailure || said == "":
		return nil, fmt.Errorf("reading it ended the process that did: %w", err)
	}
	return nil, errors.New(said)
}

// killed reports whether somebody ended the process of s.
func killed(s *os.ProcessState) bool {
	status, ok := s.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && (status.Signal() == syscall.SIGKILL || status.Signal() == syscall.SIGTERM || status.Signal() == syscall.SIGINT)
}
