package seccomp

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_AARCH64
	lastCall = unix.SYS_RSEQ_SLICE_YIELD // of those that were looked at
)

// The system calls of kernel and shared that other machines lack.
var kernelHere, sharedHere []uint32

// openFlags has the system calls that open files, and which argument has their flags.
var openFlags = map[uint32]uint32{unix.SYS_OPENAT: 2}

// fcntls are the system calls that control open files.
var fcntls = []uint32{unix.SYS_FCNTL}

// private are calls that only this machine has, above all others.
var private []uint32
