package seccomp

import (
	"golang.org/x/sys/unix"

	"early.parley"
)

var outcomesHere = []outcome{
	{"upper half of an address", unix.SYS_PRLIMIT64, [6]uint64{7, 0, 1 << 32}, refuse, early.Allow},
	{"upper half of flags", unix.SYS_CLONE, [6]uint64{1<<32 | unix.CLONE_NEWUSER}, refuse, refuse},
}
