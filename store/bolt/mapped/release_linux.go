package mapped

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"syscall"
)

// release unmaps the pages of the file that is mapped at address, to be shared: what was changed there is not lost.
func release(address uintptr) error {
	size, err := sizeAt(address)
	if err != nil {
		return err
	}
	if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, address, size, syscall.MADV_DONTNEED); errno != 0 {
		return os.NewSyscallError("madvise", errno)
	}
	return nil
}

// sizeAt returns how many bytes are mapped at address. That is more than the file has: the system maps pages
// behind those that are read, too.
func sizeAt(address uintptr) (uintptr, error) {
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0, err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var start, end uintptr
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x", &start, &end); err == nil && start == address {
			return end - start, nil
		}
	}
	if err := lines.Err(); err != nil {
		return 0, err
	}
	return 0, errors.New("nothing is mapped where the file should be")
}
