package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// ActAsOwner makes a process of root that of the user who owns dir. Files that root
// creates there, such as sockets and locks, would keep that user's gateway from
// starting. It cannot be undone. If dir does not exist yet, nothing changes.
func ActAsOwner(dir string) error {
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
	uid := int(owner.Uid)
	if err := setUser(uid, int(owner.Gid)); err != nil {
		return fmt.Errorf("%s belongs to user %d: run this as that user (sudo -u '#%[2]d' parley …): %w", dir, uid, err)
	}
	return nil
}

func setUser(uid, gid int) error {
	if err := syscall.Setgroups([]int{gid}); err != nil {
		return err
	}
	if err := syscall.Setgid(gid); err != nil {
		return err
	}
	return syscall.Setuid(uid)
}

// AccessAdvice returns what the operator can do when the system refuses access to
// a file, and "" if err is of another kind.
func AccessAdvice(err error) string {
	var refused *fs.PathError
	switch {
	case errors.Is(err, syscall.EROFS):
		return "the disk is mounted read-only: mount it so that it can be written to"
	case !errors.Is(err, fs.ErrPermission) || !errors.As(err, &refused) || !filepath.IsAbs(refused.Path):
		return ""
	}
	path := refused.Path
	info, err := os.Stat(path)
	for err != nil && path != filepath.Dir(path) { // it was to be made, or its folder cannot be read
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
		path = filepath.Dir(path) // the other files in it belong to that user, too
	}
	const advice = "%s belongs to user %d, and this is user %d; run Parley as that user, or: sudo chown -R %[3]d %[1]s"
	return fmt.Sprintf(advice, path, owner.Uid, os.Geteuid())
}
