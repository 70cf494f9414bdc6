package compact

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// DraftOf returns the path of the compact copy of the file at path.
func DraftOf(path string) string { return path + ".compact" }

// Resolve returns the path of the file itself if path is a link to it.
func Resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return path
}

// RemoveDraft removes what a crash has left of a compaction.
func RemoveDraft(path string) error {
	err := os.Remove(DraftOf(Resolve(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// CopyOwner gives the file to the mode and the owner of from.
func CopyOwner(to, from string) error {
	want, err := os.Stat(from)
	if err != nil {
		return err
	}
	has, err := os.Stat(to)
	if err != nil {
		return err
	}
	if err := os.Chmod(to, want.Mode().Perm()); err != nil {
		return err
	}
	wantSys, ok := want.Sys().(*syscall.Stat_t)
	hasSys, ok2 := has.Sys().(*syscall.Stat_t)
	if !ok || !ok2 || wantSys.Uid == hasSys.Uid && wantSys.Gid == hasSys.Gid {
		return nil
	}
	return os.Chown(to, int(wantSys.Uid), int(wantSys.Gid))
}
