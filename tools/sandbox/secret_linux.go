package sandbox

import (
	"os"

	"golang.org/x/sys/unix"
)

// SecretFile returns a file with content that is in memory only, for Command.Files. What a driver
// tells its command in arguments can be read by everybody on the machine.
func SecretFile(name string, content []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	file := os.NewFile(uintptr(fd), name)
	if _, err := file.Write(content); err != nil {
		file.Close()
		return nil, err
	}
	if _, err := file.Seek(0, 0); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}
