package early

import (
	"errors"
	"os"
	"runtime"
	"syscall"
	"unsafe"
)

// What a launcher writes over its Plan.
const (
	Started = "started\n"
	Failed  = "failed\n" // and why
)

// exitFailed is the exit code of a launcher that did not start the program.
const exitFailed = 125

// launch runs the program of the plan, confined, and ends everything that the program leaves. It
// returns the program's exit code, or 128 and the signal that ended it.
func launch() int {
	closeOnExec()
	file := os.NewFile(PlanFile, "plan")
	tell := func(result string) { _, _ = file.WriteAt([]byte(result), 0) }
	plan, err := readPlan(file)
	if err != nil {
		tell(Failed + err.Error() + "\x00")
		return exitFailed
	}
	parley := os.Getppid()
	code, err := reap(func(l limits) (child, error) {
		p, err := start(plan, l)
		if err != nil {
			tell(Failed + err.Error() + "\x00")
			return p, err
		}
		tell(Started)
		return p, nil
	})
	if os.Getppid() != parley { // which would have removed it
		RemoveAll(plan.Temp)
	}
	if err != nil {
		return max(code, exitFailed)
	}
	return code
}

// closeOnExec keeps the files of this process from the program.
func closeOnExec() {
	for file := GateFile; file <= RulesetFile; file++ {
		syscall.CloseOnExec(file)
	}
}

func readPlan(file *os.File) (Plan, error) {
	info, err := file.Stat()
	if err != nil {
		return Plan{}, err
	}
	data := make([]byte, info.Size())
	if _, err := file.ReadAt(data, 0); err != nil {
		return Plan{}, err
	}
	return Decode(data)
}

// start starts the program of p from a thread that has confined itself. The other threads stay as they
// are, so that the program, which has the rights of that thread only, can do nothing to this process.
//
// Where Landlock keeps the signals of that thread from all but the program and what descends from it,
// the thread stays, to kill them all. The kernel does that at once: no process can fork meanwhile.
func start(p Plan, l limits) (child, error) {
	type result struct {
		child child
		err   error
	}
	started := make(chan result)
	kill := make(chan struct{})
	killed := make(chan struct{})
	go func() { // not the main thread: that is locked to init
		runtime.LockOSThread() // and never unlocked: the thread ends with this function
		scoped, err := confine(p)
		if err != nil {
			started <- result{err: err}
			return
		}
		l.lower()
		process, err := os.StartProcess(p.Path, p.Args, &os.ProcAttr{
			Dir: p.Dir, Env: p.Env, Files: []*os.File{os.Stdin, os.Stdout, os.Stderr},
			Sys: &syscall.SysProcAttr{Setsid: true},
		})
		one := child{process: process}
		if !scoped || err != nil {
			started <- result{one, err}
			return
		}
		one.killAll = func() {
			close(kill)
			<-killed
		}
		started <- result{one, nil}
		<-kill
		_ = syscall.Kill(-1, syscall.SIGKILL) // an error is that there are none left
		close(killed)
	}()
	r := <-started
	return r.child, r.err
}

// Numbers of prctl, Landlock and seccomp that package syscall lacks. They are the same on all
// machines.
const (
	prSetNoNewPrivs      = 38
	prCapbsetDrop        = 24
	lastCapability       = 63 // there are 64 bits
	capabilityVersion    = 0x20080522
	sysLandlockRestrict  = 446
	seccompSetModeFilter = 1
	seccompNewListener   = 1 << 3
)

// confine takes from this thread, and from what it starts, what a program may not do. It reports
// whether that includes signals to any process but those.
func confine(p Plan) (scoped bool, err error) {
	dropCapabilities()
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prSetNoNewPrivs, 1, 0, 0, 0, 0); errno != 0 {
		return false, os.NewSyscallError("no_new_privs", errno)
	}
	parley := os.Getppid()
	before := syscall.Kill(parley, 0)
	if _, _, errno := syscall.RawSyscall(sysLandlockRestrict, RulesetFile, 0, 0); errno != 0 {
		return false, os.NewSyscallError("landlock_restrict_self", errno)
	}
	// No filter is in force yet: if there is a difference, it is because of Landlock.
	scoped = before == nil && errors.Is(syscall.Kill(parley, 0), syscall.EPERM)
	if _, err := setFilter(protectLauncher(os.Getpid(), syscall.Gettid()), 0); err != nil {
		return false, err
	}
	listener, err := setFilter(p.Filter, seccompNewListener)
	if errors.Is(err, syscall.EBUSY) { // somebody outside listens: what would be asked fails
		_, err = setFilter(p.Filter, 0)
		return scoped, err
	}
	if err != nil {
		return false, err
	}
	go answer(listener, p)
	return scoped, nil
}

// dropCapabilities takes away what root may do beyond owning its files. No new privileges keep it
// from coming back.
func dropCapabilities() {
	for c := uintptr(0); c <= lastCapability; c++ {
		_, _, _ = syscall.RawSyscall6(syscall.SYS_PRCTL, prCapbsetDrop, c, 0, 0, 0, 0)
	}
	header := struct {
		version uint32
		pid     int32
	}{capabilityVersion, 0}
	var none [6]uint32
	_, _, _ = syscall.RawSyscall(
		syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none)), 0,
	)
}

// setFilter has the kernel apply filter to all further system calls of this thread.
func setFilter(filter []Instruction, flags uintptr) (int, error) {
	program := struct {
		length uint16
		filter *Instruction
	}{uint16(len(filter)), &filter[0]}
	fd, _, errno := syscall.RawSyscall(sysSeccomp, seccompSetModeFilter, flags, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return 0, os.NewSyscallError("seccomp", errno)
	}
	return int(fd), nil
}

// The instructions of seccomp filters.
const (
	Load         = 0x20 // the 32 bits at an offset of the data of the call
	JumpEqual    = 0x15
	JumpGreater  = 0x25
	JumpAtLeast  = 0x35
	JumpBits     = 0x45
	And          = 0x54
	Return       = 0x06
	OffsetNumber = 0
	OffsetArch   = 4
	OffsetArgs   = 16 // eight bytes each, the lower four first
)

// What a filter returns.
const (
	Allow = 0x7fff0000
	Error = 0x00050000 // and the errno
	Ask   = 0x7fc00000
	Kill  = 0x80000000
)

// protectLauncher returns a filter that keeps signals away from this process and from the thread
// that starts the program: that one is, while it lives, as confined as the program and so in its
// reach.
func protectLauncher(pid, tid int) []Instruction {
	calls := []uint32{
		syscall.SYS_KILL, syscall.SYS_TKILL, syscall.SYS_TGKILL,
		syscall.SYS_RT_SIGQUEUEINFO, syscall.SYS_RT_TGSIGQUEUEINFO, sysPidfdOpen,
	}
	filter := []Instruction{{Load, 0, 0, OffsetNumber}}
	for i, call := range calls {
		filter = append(filter, Instruction{JumpEqual, uint8(len(calls) - i), 0, call})
	}
	return append(filter,
		Instruction{Return, 0, 0, Allow},
		Instruction{Load, 0, 0, OffsetArgs}, // a process or a thread, for all of calls
		Instruction{JumpEqual, 1, 0, uint32(pid)},
		Instruction{JumpEqual, 0, 1, uint32(tid)},
		Instruction{Return, 0, 0, Error | uint32(syscall.EPERM)},
		Instruction{Return, 0, 0, Allow},
	)
}
