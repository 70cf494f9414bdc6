package backup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"parley/store/bolt"
	"parley/store/bolt/refusal"
)

// A LostError says that the store is missing although there are copies of it:
// perhaps a disk is not mounted, or a folder was copied only in part.
type LostError struct{ File, LatestCopy string }

func (e *LostError) Error() string {
	return fmt.Sprintf("the store %s is gone, though there are copies of it", e.File)
}

// OpenStore opens the store of cfg. A damaged store is moved aside and replaced by
// what is sound of it, if only its log is damaged, or else by the latest usable copy,
// which replaced describes (P18). If the store is missing,
// OpenStore changes nothing and returns a [LostError], unless beginAnew allows an
// empty store. Other errors are those of [bolt.Open].
func (r Restorer) OpenStore(
	ctx context.Context, cfg bolt.Config, beginAnew bool,
) (s *bolt.Store, replaced *Report, err error) {
	if err := r.checkForLoss(beginAnew); err != nil {
		return nil, nil, err
	}
	s, err = bolt.Open(ctx, cfg)
	if damage, ok := errors.AsType[*refusal.DamagedError](err); ok {
		if replaced = r.replaceDamaged(ctx, damage); replaced != nil {
			s, err = bolt.Open(ctx, cfg)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if err := SweepDrafts(r.DataDir); err != nil {
		r.Log.Warn("drafts of backups not removed", "err", err)
	}
	return s, replaced, nil
}

// checkForLoss returns a LostError if neither the store nor its mark exists, but
// copies do. With beginAnew, it moves the copies aside instead.
func (r Restorer) checkForLoss(beginAnew bool) error {
	file := filepath.Join(r.DataDir, StoreFile)
	copies := Copies(r.DataDir)
	if len(copies) == 0 || len(Existing(file, file+".mark")) > 0 {
		return nil
	}
	if !beginAnew {
		return &LostError{File: file, LatestCopy: copies[0]}
	}
	folder := copiesFolder(r.DataDir)
	kept := folder + "-" + time.Now().Format("20060102-150405")
	r.Log.Warn("beginning with an empty store", "copies of the former one", kept)
	return os.Rename(folder, kept)
}

// replaceDamaged replaces the store by itself without what is damaged of its log, or by
// the latest usable copy, and returns nil if it changed nothing.
func (r Restorer) replaceDamaged(ctx context.Context, damage *refusal.DamagedError) *Report {
	if damage.InLog {
		report, err := r.ReplaceStore(ctx, damage.File)
		if err == nil {
			r.Log.Error("the log of the store is damaged, its latest changes are lost", "err", damage.Cause)
			return &report
		}
		r.Log.Error("the store cannot be used without what is damaged of its log", "err", err)
		if _, ok := errors.AsType[*refusal.DamagedError](err); !ok {
			return nil // a full disk, perhaps: a copy would lose more
		}
	}
	for _, file := range Copies(r.DataDir) {
		report, err := r.ReplaceStore(ctx, file)
		if err != nil {
			r.Log.Error("copy of the store cannot be used", "file", file, "err", err)
			continue
		}
		r.Log.Error("the store is damaged, a copy takes its place", "err", damage.Cause, "copy", file)
		return &report
	}
	return nil
}
