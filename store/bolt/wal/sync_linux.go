package wal

import (
	"errors"
	"os"
	"syscall"
)

// syncData returns when the data of f is on disk, and of its metadata what it takes to
// read that: not the time of the last change, which would be another write.
func syncData(f *os.File) error {
	for {
		err := syscall.Fdatasync(int(f.Fd()))
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		return os.NewSyscallError("fdatasync", err)
	}
}
