package landlock

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_AARCH64
	lastCall = unix.SYS_RSEQ_SLICE_YIELD // of those that were looked at
)

// deniedHere are those of denied that other machines lack.
var deniedHere []uint32
