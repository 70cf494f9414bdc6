package seccomp

import (
	"encoding/binary"
	"testing"

	"golang.org/x/sys/unix"

	"early.parley"
)

// A call is a system call as filters see it.
type call struct {
	arch, number uint32
	args         [6]uint64
}

// load returns the 32 bits at an offset of the data of c: seccomp_data.
func (c call) load(t *testing.T, offset uint32) uint32 {
	t.Helper()
	var data []byte
	data = binary.LittleEndian.AppendUint32(data, c.number)
	data = binary.LittleEndian.AppendUint32(data, c.arch)
	data = binary.LittleEndian.AppendUint64(data, 0) // where the program is
	for _, arg := range c.args {
		data = binary.LittleEndian.AppendUint64(data, arg)
	}
	if offset%4 != 0 || int(offset)+4 > len(data) {
		t.Fatalf("load at %d", offset)
	}
	return binary.LittleEndian.Uint32(data[offset:])
}

// run does what the kernel does with a filter, and returns what becomes of c. What the kernel would not accept fails
// the test.
func run(t *testing.T, filter []early.Instruction, c call) uint32 {
	t.Helper()
	if len(filter) > 4096 { // BPF_MAXINSNS
		t.Fatalf("%d instructions", len(filter))
	}
	var loaded uint32
	for at := 0; at < len(filter); at++ {
		i := filter[at]
		met := false
		switch i.Code {
		case early.Load:
			loaded = c.load(t, i.Constant)
			continue
		case early.And:
			loaded &= i.Constant
			continue
		case early.Return:
			return i.Constant
		case early.JumpEqual:
			met = loaded == i.Constant
		case early.JumpGreater:
			met = loaded > i.Constant
		case early.JumpAtLeast:
			met = loaded >= i.Constant
		case early.JumpBits:
			met = loaded&i.Constant != 0
		default:
			t.Fatalf("instruction %d has the code %#x", at, i.Code)
		}
		if met {
			at += int(i.IfTrue)
		} else {
			at += int(i.IfFalse)
		}
	}
	t.Fatal("the filter has no end")
	return 0
}

// An outcome is what becomes of a call.
type outcome struct {
	name     string
	number   uint32
	args     [6]uint64
	confined uint32 // without a network, with Landlock of version 6
	isolated uint32
}

// outcomes are of calls that all machines have; those of others are in outcomesHere.
var outcomes = []outcome{
	{"read", unix.SYS_READ, [6]uint64{}, early.Allow, early.Allow},
	{"execve", unix.SYS_EXECVE, [6]uint64{}, early.Allow, early.Allow},
	{"io_uring", unix.SYS_IO_URING_SETUP, [6]uint64{}, refuse, refuse},
	{"keyctl", unix.SYS_KEYCTL, [6]uint64{}, refuse, refuse},
	{"add_key", unix.SYS_ADD_KEY, [6]uint64{}, refuse, refuse},
	{"bpf", unix.SYS_BPF, [6]uint64{}, refuse, refuse},
	{"perf", unix.SYS_PERF_EVENT_OPEN, [6]uint64{}, refuse, refuse},
	{"userfaultfd", unix.SYS_USERFAULTFD, [6]uint64{}, refuse, refuse},
	{"unshare", unix.SYS_UNSHARE, [6]uint64{}, refuse, refuse},
	{"setns", unix.SYS_SETNS, [6]uint64{}, refuse, refuse},
	{"clock", unix.SYS_CLOCK_SETTIME, [6]uint64{}, refuse, refuse},
	{"module", unix.SYS_FINIT_MODULE, [6]uint64{}, refuse, refuse},
	{"ptrace", unix.SYS_PTRACE, [6]uint64{}, refuse, early.Allow},
	{"memory of others", unix.SYS_PROCESS_VM_WRITEV, [6]uint64{}, refuse, early.Allow},
	{"mount", unix.SYS_MOUNT, [6]uint64{}, refuse, early.Allow},
	{"shared memory", unix.SYS_SHMGET, [6]uint64{}, refuse, early.Allow},
	{"attribute", unix.SYS_SETXATTR, [6]uint64{}, early.Error | uint32(unix.EOPNOTSUPP), early.Allow},
	{"mode", unix.SYS_FCHMODAT, [6]uint64{}, early.Ask, early.Allow},
	{"mode with flags", unix.SYS_FCHMODAT2, [6]uint64{}, early.Ask, early.Allow},
	{"owner", unix.SYS_FCHOWNAT, [6]uint64{}, early.Ask, early.Allow},
	{"times", unix.SYS_UTIMENSAT, [6]uint64{}, early.Ask, early.Allow},
	{"size by path", unix.SYS_TRUNCATE, [6]uint64{}, early.Ask, early.Allow},
	{"size by file", unix.SYS_FTRUNCATE, [6]uint64{}, early.Allow, early.Allow},
	{"clone3", unix.SYS_CLONE3, [6]uint64{}, missing, missing},
	{"thread", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_THREAD}, early.Allow, early.Allow},
	{"namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_NEWUSER}, refuse, refuse},
	{"network namespace", unix.SYS_CLONE, [6]uint64{unix.CLONE_VM | unix.CLONE_NEWNET}, refuse, refuse},
	{"terminal", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCSTI}, refuse, refuse},
	{"flags of a file", unix.SYS_IOCTL, [6]uint64{0, unix.FS_IOC_SETFLAGS}, refuse, refuse},
	{"flags of a file, of 64 bits", unix.SYS_IOCTL, [6]uint64{0, 0x40086602}, refuse, refuse},
	{"flags of a file, of 32 bits", unix.SYS_IOCTL, [6]uint64{0, 0x40046602}, refuse, refuse},
	{"size of a window", unix.SYS_IOCTL, [6]uint64{0, unix.TIOCGWINSZ}, early.Allow, early.Allow},
	{"signal by file", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETSIG}, refuse, early.Allow},
	{"lease", unix.SYS_FCNTL, [6]uint64{0, unix.F_SETLEASE}, refuse, early.Allow},
	{"copy of a file", unix.SYS_FCNTL, [6]uint64{0, unix.F_DUPFD}, early.Allow, early.Allow},
	{"limits of its own", unix.SYS_PRLIMIT64, [6]uint64{0, unix.RLIMIT_NOFILE, 1}, early.Allow, early.Allow},
	{"limits of another", unix.SYS_PRLIMIT64, [6]uint64{7, unix.RLIMIT_NOFILE, 1}, refuse, early.Allow},
	{"reading those", unix.SYS_PRLIMIT64, [6]uint64{7, unix.RLIMIT_NOFILE, 0}, early.Allow, early.Allow},
	{"priority of its own", unix.SYS_SETPRIORITY, [6]uint64{0, 0}, early.Allow, early.Allow},
	{"priority of another", unix.SYS_SETPRIORITY, [6]uint64{0, 7}, refuse, early.Allow},
	{"processors of another", unix.SYS_SCHED_SETAFFINITY, [6]uint64{7}, refuse, early.Allow},
	{"internet", unix.SYS_SOCKET, [6]uint64{unix.AF_INET}, refuse, early.Allow},
	{"Unix socket", unix.SYS_SOCKET, [6]uint64{unix.AF_UNIX}, refuse, early.Allow},
	{"socket of a virtual machine", unix.SYS_SOCKET, [6]uint64{unix.AF_VSOCK}, refuse, refuse},
	{"pair of sockets", unix.SYS_SOCKETPAIR, [6]uint64{unix.AF_UNIX}, early.Allow, early.Allow},
	{"call of a kernel to come", lastCall + 1, [6]uint64{}, missing, missing},
	{"call of no kernel", 1<<32 - 1, [6]uint64{}, missing, missing},
}

// What becomes of each call is as the kernel would have it, by the numbers and arguments of the machine that the test
// runs on. TestArm has another one emulated.
func TestFilter(t *testing.T) {
	confined := Confined(false, withSignals)
	var isolated []early.Instruction
	for data := Isolated(); len(data) > 0; data = data[8:] {
		isolated = append(isolated, early.Instruction{
			Code: binary.LittleEndian.Uint16(data), IfTrue: data[2], IfFalse: data[3],
			Constant: binary.LittleEndian.Uint32(data[4:]),
		})
	}
	for _, o := range append(outcomes, outcomesHere...) {
		c := call{arch, o.number, o.args}
		if got := run(t, confined, c); got != o.confined {
			t.Errorf("%s: %#x of a confined program, want %#x", o.name, got, o.confined)
		}
		if got := run(t, isolated, c); got != o.isolated {
			t.Errorf("%s: %#x of an isolated one, want %#x", o.name, got, o.isolated)
		}
	}
	foreign := call{arch: arch + 1, number: unix.SYS_READ}
	for _, filter := range [][]early.Instruction{confined, isolated} {
		if got := run(t, filter, foreign); got != early.Kill {
			t.Errorf("a call of another machine: %#x", got)
		}
	}
}

// Where Landlock is old, filters do what it does not: those who send signals are asked about, and nothing is cut off
// by opening it.
func TestFilterOldLandlock(t *testing.T) {
	old := Confined(true, 1)
	for _, signal := range early.Signals {
		if got := run(t, old, call{arch: arch, number: signal}); got != early.Ask {
			t.Errorf("signal %d: %#x", signal, got)
		}
	}
	for number, flags := range openFlags {
		for opened, want := range map[uint64]uint32{
			unix.O_RDONLY: early.Allow, unix.O_RDONLY | unix.O_TRUNC: refuse, unix.O_WRONLY | unix.O_TRUNC: early.Allow,
		} {
			c := call{arch: arch, number: number}
			c.args[flags] = opened
			if got := run(t, old, c); got != want {
				t.Errorf("open %d with %#x: %#x, want %#x", number, opened, got, want)
			}
		}
	}
	for family, want := range map[uint64]uint32{
		unix.AF_INET: early.Allow, unix.AF_INET6: early.Allow, unix.AF_UNIX: refuse, unix.AF_PACKET: refuse,
	} {
		if got := run(t, old, call{arch, unix.SYS_SOCKET, [6]uint64{family}}); got != want {
			t.Errorf("socket of family %d: %#x, want %#x", family, got, want)
		}
	}
}
