package seccomp

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_X86_64
	lastCall = unix.SYS_RSEQ_SLICE_YIELD // of those that were looked at
)

// The system calls of kernel and shared that other machines lack.
var (
	kernelHere = []uint32{
		unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB, unix.SYS_USTAT,
		unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_CREATE_MODULE,
	}
	sharedHere = []uint32{unix.SYS_UTIME, unix.SYS_UTIMES, unix.SYS_FUTIMESAT} // programs use utimensat
)

// openFlags has the system calls that open files, and which argument has their flags.
var openFlags = map[uint32]uint32{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}

// fcntls are the system calls that control open files.
var fcntls = []uint32{unix.SYS_FCNTL}

// private are calls that only this machine has, above all others.
var private []uint32
