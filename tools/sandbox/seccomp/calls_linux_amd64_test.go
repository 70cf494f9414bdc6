package seccomp

import (
	"golang.org/x/sys/unix"

	"early.parley"
)

const x32 = 1 << 30

var outcomesHere = []outcome{
	{"a call of x32", x32 | unix.SYS_READ, [6]uint64{}, missing, missing},
	{"ports of the machine", unix.SYS_IOPL, [6]uint64{}, refuse, refuse},
	{"times of old", unix.SYS_UTIMES, [6]uint64{}, refuse, early.Allow},
	{"mode by path", unix.SYS_CHMOD, [6]uint64{}, early.Ask, early.Allow},
	{"upper half of an address", unix.SYS_PRLIMIT64, [6]uint64{7, 0, 1 << 32}, refuse, early.Allow},
	{"upper half of flags", unix.SYS_CLONE, [6]uint64{1<<32 | unix.CLONE_NEWUSER}, refuse, refuse},
}
