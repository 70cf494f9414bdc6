package early

import (
	"os"
	"strconv"
	"strings"
	"syscall"
)

// Signals are the system calls that send signals. The filter of a Plan must Ask about them where
// Landlock does not keep signals from what is outside: before Linux 6.12.
var Signals = []uint32{
	syscall.SYS_KILL, syscall.SYS_TKILL, syscall.SYS_TGKILL,
	syscall.SYS_RT_SIGQUEUEINFO, syscall.SYS_RT_TGSIGQUEUEINFO, sysPidfdSendSignal,
}

// isSignal reports whether r is one of Signals.
func (r request) isSignal() bool {
	for _, call := range Signals {
		if uint32(r.call) == call {
			return true
		}
	}
	return false
}

// maySignal reports whether r is for processes of the program only. All its arguments are numbers,
// so that they cannot change meanwhile.
func (r request) maySignal() bool {
	target := int(int32(r.args[0]))
	switch {
	case r.call == sysPidfdSendSignal:
		target = r.processOf(int32(r.args[0]))
	case target == 0: // its own group
		return true
	case target == -1:
		return false
	case target < 0:
		return ownGroup(-target)
	}
	return descends(target)
}

// processOf returns the number of the process that r's thread has open; 0 if it is none.
func (r request) processOf(fd int32) int {
	info, err := os.ReadFile("/proc/" + strconv.Itoa(int(r.tid)) + "/fdinfo/" + strconv.Itoa(int(fd)))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(info)) {
		if value, found := strings.CutPrefix(line, "Pid:"); found {
			pid, _ := strconv.Atoi(strings.TrimSpace(value))
			return pid
		}
	}
	return 0
}

// descends reports whether a process or thread is below this process.
func descends(pid int) bool {
	for range maxDepth {
		s, ok := readStat(pid)
		if !ok {
			return false
		}
		if s.parent == os.Getpid() {
			return true
		}
		pid = s.parent
	}
	return false
}

// maxDepth is how many generations of processes are looked at.
const maxDepth = 1000

// ownGroup reports whether all processes of a group are below this process.
func ownGroup(group int) bool {
	found := false
	for pid, s := range readStats() {
		if s.group != group {
			continue
		}
		if !descends(pid) {
			return false
		}
		found = true
	}
	return found
}
