package host

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// releaseProgram gives up the pages of the program's own file, of which its start has touched most. Those that
// are needed are mapped again at the next touch: the system still has them. It does what it can.
func releaseProgram() {
	program, err := os.Executable()
	if err != nil {
		return
	}
	smaps, err := os.Open("/proc/self/smaps")
	if err != nil {
		return
	}
	defer smaps.Close()
	for _, a := range unchangedAreas(smaps, program) {
		_, _, _ = unix.Syscall(unix.SYS_MADVISE, a.start, a.end-a.start, unix.MADV_DONTNEED)
	}
}

// An area is a part of the address space.
type area struct{ start, end uintptr }

// unchangedAreas returns where file is mapped, according to smaps (see proc_pid_smaps(5)), and cannot be
// changed and never was: what is in memory there is what is in the file.
func unchangedAreas(smaps io.Reader, file string) (all []area) {
	var current area
	isOfFile := false
	for lines := bufio.NewScanner(smaps); lines.Scan(); {
		line := lines.Text()
		var next area
		var flags string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &next.start, &next.end, &flags); err == nil {
			current = next
			isOfFile = strings.HasSuffix(line, " "+file) && !strings.Contains(flags, "w")
			continue
		}
		if isOfFile && strings.HasPrefix(line, "Anonymous:") && strings.HasSuffix(line, " 0 kB") {
			all = append(all, current)
		}
	}
	return all
}
