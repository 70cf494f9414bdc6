package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// actAsOwner has root go on as the user who owns the data folder dir: what root
// makes there, such as sockets and locks, would keep that user's gateway out. It
// cannot be undone. Where there is no such folder yet, nothing changes.
func actAsOwner(dir string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	info, err := os.Stat(dir)
	if err != nil {
		return nil // whoever needs the folder says what is wrong with it
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || owner.Uid == 0 {
		return nil
	}
	uid, gid := int(owner.Uid), int(owner.Gid)
	err = syscall.Setgroups([]int{gid})
	if err == nil {
		err = syscall.Setgid(gid)
	}
	if err == nil {
		err = syscall.Setuid(uid)
	}
	if err != nil {
		return fmt.Errorf("%s belongs to user %d: run this as that user (sudo -u '#%[2]d' parley …): %w", dir, uid, err)
	}
	return nil
}

// accessAdvice says what helps when the system refuses access to a file. It
// returns nothing if err is of another kind.
func accessAdvice(err error) string {
	var pe *fs.PathError
	switch {
	case errors.Is(err, syscall.EROFS):
		return "the disk is mounted read-only: mount it so that it can be written to"
	case !errors.Is(err, fs.ErrPermission) || !errors.As(err, &pe) || !filepath.IsAbs(pe.Path):
		return ""
	}
	path := pe.Path
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) { // it was to be made, or is out of sight
		path = filepath.Dir(path)
		info, err = os.Stat(path)
	}
	if err != nil {
		return ""
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	switch {
	case !ok:
		return ""
	case int(owner.Uid) == os.Geteuid():
		return "chmod u+rwX " + path
	}
	if !info.IsDir() {
		path = filepath.Dir(path) // what else is in it belongs to that user, too
	}
	return fmt.Sprintf("%s belongs to user %d, and this is user %d; run Parley as that user, or: sudo chown -R %[3]d %[1]s", path, owner.Uid, os.Geteuid())
}
