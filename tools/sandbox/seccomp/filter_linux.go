// Package seccomp has filters of system calls for programs in sandboxes. They are written by hand,
// as the kernel takes them, because the library for it needs C.
package seccomp

import (
	"slices"

	"golang.org/x/sys/unix"

	"early.parley"
)

// kernel are the system calls that fail with EPERM in every sandbox: those about the kernel and the
// machine, those about what programs of one user share and which has no path, and large parts of the
// kernel that programs rarely need and attacks often do. Requests of io_uring pass no filter.
var kernel = append([]uint32{
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_FANOTIFY_INIT,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_KEXEC_LOAD,
	unix.SYS_KEXEC_FILE_LOAD, unix.SYS_REBOOT, unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_SYSLOG,
	unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY,
	unix.SYS_CLOCK_SETTIME, unix.SYS_CLOCK_ADJTIME, unix.SYS_ADJTIMEX, unix.SYS_SETHOSTNAME,
	unix.SYS_SETDOMAINNAME, unix.SYS_VHANGUP, unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_UNSHARE, unix.SYS_SETNS,
}, kernelHere...)

// shared are the system calls that fail with EPERM where a program shares namespaces with others:
// those by which it could get at other processes, or at files in a way that Landlock knows nothing
// about.
var shared = append([]uint32{
	// Other processes. Landlock keeps programs from tracing what is outside, and signals from
	// reaching it.
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE,
	unix.SYS_PROCESS_MRELEASE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD, unix.SYS_MIGRATE_PAGES,
	unix.SYS_MOVE_PAGES,

	// File systems and roots.
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_MOVE_MOUNT,
	unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR, unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT,
	unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_STATMOUNT, unix.SYS_LISTMOUNT, unix.SYS_LISTNS,
	unix.SYS_NAME_TO_HANDLE_AT,

	// What names and attributes there are in folders that must not be read, or not be changed.
	unix.SYS_FANOTIFY_MARK, unix.SYS_INOTIFY_ADD_WATCH, unix.SYS_FILE_SETATTR,

	// Memory and messages that processes share.
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_MSGGET, unix.SYS_SEMGET,
	unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}, sharedHere...)

// attributes are the system calls that fail as if the file system had none of the kind.
var attributes = []uint32{
	unix.SYS_SETXATTR,
	unix.SYS_LSETXATTR,
	unix.SYS_FSETXATTR,
	unix.SYS_REMOVEXATTR,
	unix.SYS_LREMOVEXATTR,
	unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT,
	unix.SYS_REMOVEXATTRAT,
}

// namespaces are the flags of clone that make namespaces.
const namespaces = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET |
	unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP

// controls are the requests of ioctl that put words into a terminal or change a file that is only
// read.
var controls = []uint32{
	unix.TIOCSTI, unix.TIOCLINUX,
	0x40086602, // FS_IOC_SETFLAGS of 64 bits, which kernels of 64 bits also take from programs of 32
	0x40046602, // FS_IOC32_SETFLAGS, FS_IOC_SETFLAGS of 32 bits
	0x401c5820, // FS_IOC_FSSETXATTR
	unix.FS_IOC_ENABLE_VERITY,
	unix.FS_IOC_SET_ENCRYPTION_POLICY,
}

// A program is a seccomp filter in the making.
type program []early.Instruction

func (p *program) add(code uint16, constant uint32) {
	*p = append(*p, early.Instruction{Code: code, Constant: constant})
}

// load loads the lower half of an argument.
func (p *program) load(arg uint32) { p.add(early.Load, early.OffsetArgs+8*arg) }

// loadUpper loads the upper half of an argument.
func (p *program) loadUpper(arg uint32) { p.add(early.Load, early.OffsetArgs+8*arg+4) }

// returnIf returns action if the comparison code with constant is true.
func (p *program) returnIf(code uint16, constant, action uint32) {
	*p = append(*p, early.Instruction{Code: code, IfFalse: 1, Constant: constant})
	p.add(early.Return, action)
}

// returnUnless returns action if the loaded value is not constant.
func (p *program) returnUnless(constant, action uint32) {
	*p = append(*p, early.Instruction{Code: early.JumpEqual, IfTrue: 1, Constant: constant})
	p.add(early.Return, action)
}

// forCall has what body adds apply to one system call, and allows what it does not return.
func (p *program) forCall(call uint32, body func()) {
	*p = append(*p, early.Instruction{Code: early.JumpEqual, Constant: call})
	jump := len(*p) - 1
	body()
	p.add(early.Return, early.Allow)
	(*p)[jump].IfFalse = uint8(len(*p) - jump - 1)
}

// What calls fail with.
const (
	refuse  = early.Error | uint32(unix.EPERM)
	missing = early.Error | uint32(unix.ENOSYS)
)

// Versions of Landlock.
const (
	withTruncate = 3 // files are protected from being cut off: Linux 6.2
	withSignals  = 6 // processes outside are protected from signals: Linux 6.12
)

// Confined returns the filter of a program that shares namespaces with others and has confined
// itself with Landlock, which is of a version. It may use the network or not. About early.Changers
// and, if Landlock is old, early.Signals somebody has to be asked.
func Confined(network bool, version int) []early.Instruction {
	var p program
	p.begin()
	if version < withSignals {
		for _, call := range early.Signals {
			p.returnIf(early.JumpEqual, call, early.Ask)
		}
	}
	if version < withTruncate {
		p.refuseTruncation()
	}
	for _, call := range shared {
		p.returnIf(early.JumpEqual, call, refuse)
	}
	for _, call := range attributes {
		p.returnIf(early.JumpEqual, call, early.Error|uint32(unix.EOPNOTSUPP))
	}
	calls := early.Changers()
	slices.Sort(calls)
	for _, call := range calls {
		p.returnIf(early.JumpEqual, call, early.Ask)
	}
	p.forCall(unix.SYS_SOCKET, func() {
		if !network {
			p.add(early.Return, refuse)
			return
		}
		p.socketFamilies()
	})
	for _, call := range fcntls {
		p.forCall(call, func() {
			p.load(1)
			p.returnIf(early.JumpEqual, unix.F_SETLEASE, refuse)
			p.returnIf(early.JumpEqual, unix.F_SETSIG, refuse) // it sends any signal to threads of the launcher
		})
	}
	p.forCall(unix.SYS_PRLIMIT64, func() { // a process may limit itself, and read what others have
		p.load(0)
		p.returnIf(early.JumpEqual, 0, early.Allow)
		p.load(2)
		p.returnUnless(0, refuse)
		p.loadUpper(2)
		p.returnUnless(0, refuse)
	})
	// A process may say how it is scheduled itself.
	own := func(arg uint32, calls ...uint32) {
		for _, call := range calls {
			p.forCall(call, func() {
				p.load(arg)
				p.returnUnless(0, refuse)
			})
		}
	}
	own(0, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR)
	own(1, unix.SYS_SETPRIORITY, unix.SYS_IOPRIO_SET)
	return p.end()
}

// Isolated returns the filter of a program that has namespaces of its own, as the kernel takes it.
// That of the network confines the sockets of the internet and of its own machine, and no others:
// those of AF_VSOCK lead to the host of a virtual machine.
func Isolated() []byte {
	var p program
	p.begin()
	p.forCall(unix.SYS_SOCKET, func() {
		p.load(0)
		p.returnIf(early.JumpEqual, unix.AF_UNIX, early.Allow)
		p.socketFamilies()
	})
	return early.EncodeFilter(p.end())
}

// begin adds what all filters begin with.
func (p *program) begin() {
	p.add(early.Load, early.OffsetArch)
	p.returnUnless(arch, early.Kill)
	p.add(early.Load, early.OffsetNumber)
	for _, call := range private {
		p.returnIf(early.JumpEqual, call, early.Allow)
	}
	// Above are the numbers of x32, another set of calls, and calls of kernels to come, about which
	// nobody knows. The flags of clone3 are in memory, where a filter cannot see them. Programs have
	// another way for each.
	p.returnIf(early.JumpGreater, lastCall, missing)
	p.returnIf(early.JumpEqual, unix.SYS_CLONE3, missing)
	for _, call := range kernel {
		p.returnIf(early.JumpEqual, call, refuse)
	}
}

// end adds what all filters end with, and returns the whole.
func (p *program) end() []early.Instruction {
	p.forCall(unix.SYS_CLONE, func() {
		p.load(0)
		p.returnIf(early.JumpBits, namespaces, refuse)
	})
	p.forCall(unix.SYS_IOCTL, func() {
		p.load(1)
		for _, request := range controls {
			p.returnIf(early.JumpEqual, request, refuse)
		}
	})
	p.add(early.Return, early.Allow)
	return *p
}

// refuseTruncation refuses to open a file for reading and cut it off at the same time. Opening for
// writing is a matter of Landlock of any version.
func (p *program) refuseTruncation() {
	p.returnIf(early.JumpEqual, unix.SYS_OPENAT2, missing) // its flags are in memory
	for call, arg := range openFlags {
		p.forCall(call, func() {
			p.load(arg)
			p.add(early.And, unix.O_TRUNC|unix.O_ACCMODE)
			p.returnIf(early.JumpEqual, unix.O_TRUNC|unix.O_RDONLY, refuse)
			p.returnIf(early.JumpEqual, unix.O_TRUNC|unix.O_ACCMODE, refuse) // for neither, but ioctl
		})
	}
}

// socketFamilies allows the sockets of the internet, and those that tell of the machine's own
// addresses. Where files are shared with other programs, Unix sockets lead to their services, such
// as Docker's, and have paths that Landlock does not know about.
func (p *program) socketFamilies() {
	p.load(0)
	p.returnIf(early.JumpEqual, unix.AF_INET, early.Allow)
	p.returnIf(early.JumpEqual, unix.AF_INET6, early.Allow)
	p.returnUnless(unix.AF_NETLINK, refuse)
	p.load(2)
	p.returnUnless(unix.NETLINK_ROUTE, refuse)
}
