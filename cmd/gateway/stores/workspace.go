package stores

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/backup"
	"parley/host"
	"parley/store"
	"parley/workspace"
)

// A Workspace is the agent's folder, before it is opened.
type Workspace struct {
	Store   store.Store // which knows where the folder was
	Folder  string
	DataDir string
	Config  string // the config file, which the agent must not change
	Anew    bool   // an empty folder may take the place of one that is gone
	Log     *slog.Logger

	Restore, Begin string // command lines that say what to do if it is gone
}

// A LostError says that the workspace is gone, and what to do. Nothing was started or changed.
type LostError struct{ text string }

// Error implements error.
func (e *LostError) Error() string { return e.text }

// Open opens the folder, with the agent's first files in it. One that was lost is not replaced by an empty one unasked:
// the memory of everybody is in it. Then the error is a [*LostError]. What is returned is to be closed, also with an
// error.
func (w Workspace) Open(ctx context.Context) (*workspace.Workspace, error) {
	place := backup.NewPlace(w.Store, w.Log)
	err := place.Check(ctx, w.Folder, w.Anew)
	if errors.Is(err, backup.ErrWorkspaceLost) {
		const text = "the workspace %s is gone or empty, and the agent's memory and files with it; " +
			"nothing was started or changed\nmount it or put it back, or take it from a backup: %s\n" +
			"or begin with an empty one: %s"
		return nil, &LostError{fmt.Sprintf(text, w.Folder, w.Restore, w.Begin)}
	}
	if err != nil {
		return nil, err
	}
	files, err := workspace.Open(w.Folder)
	if err != nil {
		return nil, err
	}
	if err := files.Protect(w.DataDir, w.Config); err != nil {
		return files, err
	}
	host.Restrict(w.Log, w.DataDir, w.Folder)
	workspace.OriginsOf(files).Prune(w.Log)
	if _, err := files.Seed(); err != nil {
		return files, fmt.Errorf("write the agent's first files: %w", err)
	}
	return files, place.Remember(ctx, w.Folder)
}
