package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"parley/store"
)

// ErrWorkspaceLost says that the workspace is gone or empty although there was one.
var ErrWorkspaceLost = errors.New("it is gone or empty")

// A Place remembers in the store where the workspace is.
type Place struct {
	table store.Table[place]
	log   *slog.Logger
}

type place struct {
	Folder string `json:"folder"`
}

// NewPlace returns the Place of the store s.
func NewPlace(s store.Store, log *slog.Logger) Place {
	bucket := s.Bucket(store.BucketGateway)
	return Place{store.NewTable(bucket, store.Forget[place](log, "place of the workspace")), log}
}

const placeKey = "workspace"

// Check returns ErrWorkspaceLost if there was a workspace, but neither folder nor the
// one before has anything in it: they may be on a disk that is not mounted. With
// beginAnew it goes on with an empty one.
func (p Place) Check(ctx context.Context, folder string, beginAnew bool) error {
	known, _, err := p.table.Get(ctx, placeKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look up the workspace: %w", err)
	}
	if known.Folder == "" || len(Existing(folder, known.Folder)) > 0 {
		return nil
	}
	if !beginAnew {
		return ErrWorkspaceLost
	}
	p.log.Warn("beginning with an empty workspace", "folder", folder)
	return nil
}

// Remember notes that folder is the workspace.
func (p Place) Remember(ctx context.Context, folder string) error {
	known, _, err := p.table.Get(ctx, placeKey)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("look up the workspace: %w", err)
	}
	if known.Folder == folder {
		return nil
	}
	if known.Folder != "" {
		p.log.Warn("the workspace is another folder than before", "folder", folder, "before", known.Folder)
	}
	return p.table.Set(ctx, placeKey, place{folder})
}
