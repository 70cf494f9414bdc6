package seccomp

import (
	"golang.org/x/sys/unix"

	"early.parley"
)

var outcomesHere = []outcome{
	// What programs begin with, and what makes code while they run. The others of this machine's own are useless.
	{"set_tls", 0xf0005, [6]uint64{}, early.Allow, early.Allow},
	{"cacheflush", 0xf0002, [6]uint64{}, early.Allow, early.Allow},
	{"usr26", 0xf0003, [6]uint64{}, missing, missing},
	{"above them", 0xf0007, [6]uint64{}, missing, missing},
	{"mmap2", unix.SYS_MMAP2, [6]uint64{}, early.Allow, early.Allow},
	{"futex with times of 64 bits", unix.SYS_FUTEX_TIME64, [6]uint64{}, early.Allow, early.Allow},
	{"clock with times of 64 bits", unix.SYS_CLOCK_SETTIME64, [6]uint64{}, refuse, refuse},
	{"adjusted clock with times of 64 bits", unix.SYS_CLOCK_ADJTIME64, [6]uint64{}, refuse, refuse},
	{"PCI", unix.SYS_PCICONFIG_WRITE, [6]uint64{}, refuse, refuse},
	// One call in the place of another, of the old convention.
	{"socketcall", 102, [6]uint64{1}, refuse, refuse},
	{"ipc", 117, [6]uint64{}, refuse, refuse},
	{"syscall", 113, [6]uint64{unix.SYS_PTRACE}, refuse, refuse},
	// The same in two or three sizes.
	{"times of 64 bits", unix.SYS_UTIMENSAT_TIME64, [6]uint64{}, early.Ask, early.Allow},
	{"times of old", unix.SYS_UTIMES, [6]uint64{}, refuse, early.Allow},
	{"size by path, of 64 bits", unix.SYS_TRUNCATE64, [6]uint64{}, early.Ask, early.Allow},
	{"owner of 16 bits", unix.SYS_CHOWN, [6]uint64{}, early.Ask, early.Allow},
	{"owner of 32 bits", unix.SYS_CHOWN32, [6]uint64{}, early.Ask, early.Allow},
	{"owner of a link", unix.SYS_LCHOWN32, [6]uint64{}, early.Ask, early.Allow},
	{"owner of an open file", unix.SYS_FCHOWN32, [6]uint64{}, early.Ask, early.Allow},
	{"signal by file", unix.SYS_FCNTL64, [6]uint64{0, unix.F_SETSIG}, refuse, early.Allow},
	{"lease", unix.SYS_FCNTL64, [6]uint64{0, unix.F_SETLEASE}, refuse, early.Allow},
	{"copy of a file", unix.SYS_FCNTL64, [6]uint64{0, unix.F_DUPFD}, early.Allow, early.Allow},
}
