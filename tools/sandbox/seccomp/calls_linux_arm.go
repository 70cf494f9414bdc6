package seccomp

import "golang.org/x/sys/unix"

const (
	arch     = unix.AUDIT_ARCH_ARM
	lastCall = unix.SYS_RSEQ_SLICE_YIELD // of those that were looked at
)

// The system calls of kernel and shared that other machines lack.
var (
	kernelHere = []uint32{
		unix.SYS_USELIB, unix.SYS_USTAT, unix.SYS_SYSFS, unix.SYS__SYSCTL, unix.SYS_BDFLUSH, unix.SYS_VSERVER,
		unix.SYS_PCICONFIG_IOBASE, unix.SYS_PCICONFIG_READ, unix.SYS_PCICONFIG_WRITE,
		unix.SYS_CLOCK_SETTIME64, unix.SYS_CLOCK_ADJTIME64,
		// Calls of the old convention. Two of them make any other call of their kind.
		stime, utime, syscallOfArgs, socketcall, ipc,
	}
	sharedHere = []uint32{unix.SYS_UTIMES, unix.SYS_FUTIMESAT} // programs use utimensat
)

// Numbers of the old convention (OABI), which kernels that have filters do not have.
const (
	stime         = 25
	utime         = 30
	socketcall    = 102
	syscallOfArgs = 113
	ipc           = 117
)

// private are calls that only this machine has, above all others. Programs cannot begin without them.
var private = []uint32{
	0xf0001, // breakpoint
	0xf0002, // cacheflush
	0xf0005, // set_tls
	0xf0006, // get_tls
}

// openFlags has the system calls that open files, and which argument has their flags.
var openFlags = map[uint32]uint32{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}

// fcntls are the system calls that control open files.
var fcntls = []uint32{unix.SYS_FCNTL, unix.SYS_FCNTL64}
