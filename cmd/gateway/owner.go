package main

import (
	"fmt"
	"os"
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
