package early

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"
	"unsafe"
)

// Numbers of prctl that package syscall lacks.
const (
	prSetPdeathsig      = 1
	prSetChildSubreaper = 36
)

// exitSIGKILL is the exit code for a program that was killed.
const exitSIGKILL = 128 + 9

// runReaper runs args without confining it, in the environment that it has itself, and returns the
// exit code.
func runReaper(args []string) int {
	if len(args) == 0 {
		return exitFailed
	}
	closeOnExec()
	attributes := os.ProcAttr{Sys: &syscall.SysProcAttr{Setsid: true}}
	attributes.Env = os.Environ()
	attributes.Files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	code, err := reap(func(l limits) (child, error) {
		l.lower()
		p, err := os.StartProcess(args[0], args, &attributes)
		return child{process: p}, err
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		return max(code, exitNoProgram)
	}
	return code
}

// exitNoProgram is the code of shells if a program cannot be started.
const exitNoProgram = 127

// A child is the program that a reaper has started.
type child struct {
	process *os.Process
	killAll func() // kills it and all that descends from it at once; nil where the kernel cannot do that
}

// reap starts a process by calling start, waits until that process or Parley has ended, ends everything
// that descends from this process, and returns the exit code of the process it started.
//
// Processes that lose their parent become children of this one, so that none gets away.
func reap(start func(limits) (child, error)) (int, error) {
	lifeline := os.NewFile(LifelineFile, "lifeline")
	if lifeline == nil {
		return 0, errors.New("file descriptor 4 is missing")
	}
	syscall.CloseOnExec(LifelineFile)
	// It does not die with Parley, because it has work to do then.
	for option, value := range map[uintptr]uintptr{prSetPdeathsig: 0, prSetChildSubreaper: 1} {
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, option, value, 0, 0, 0, 0); errno != 0 {
			return 0, os.NewSyscallError("prctl", errno)
		}
	}
	if err := waitAtGate(); err != nil {
		return 0, err
	}
	taken := takeLimits()
	main, err := start(taken)
	taken.lift()
	if err != nil {
		return 0, err
	}
	taken.pass(main.process.Pid)
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte(oomScore), 0) // or this process goes as easily as the program
	over := make(chan int, 1)
	go func() {
		var one [1]byte
		_, _ = lifeline.Read(one[:]) // nothing is ever written
		over <- exitSIGKILL
	}()
	go func() { over <- waitFor(main.process.Pid) }()
	code := <-over
	if main.killAll != nil {
		main.killAll()
	}
	endDescendants()
	return code, nil
}

// limits are what Parley has set for the program, by their numbers.
type limits map[int]syscall.Rlimit

// graceLimits are limits of this process that it frees itself of, and by how much the kernel is to
// exceed them before it kills the program.
var graceLimits = map[int]uint64{syscall.RLIMIT_CPU: 1, rlimitNPROC: 0}

// takeLimits frees this process of the limits that are for the program. It must not end before the
// program: neither by the CPU time that its work takes, nor for want of a thread when the program takes
// all that the user may have.
func takeLimits() limits {
	taken := limits{}
	for which := range graceLimits {
		var limit syscall.Rlimit
		if err := prlimit(0, which, nil, &limit); err != nil || limit.Cur >= limit.Max {
			continue
		}
		taken[which] = limit
	}
	taken.lift()
	prepareThreads()
	return taken
}

func (l limits) lift() {
	for which, limit := range l {
		_ = prlimit(0, which, &syscall.Rlimit{Cur: limit.Max, Max: limit.Max}, nil)
	}
}

// lower gives this process the limits, for it to pass on: a program could have started others before
// it has them by pass.
func (l limits) lower() {
	for which, limit := range l {
		_ = prlimit(0, which, &limit, nil)
	}
}

// pass makes l the limits of the program for good, and lets everything of Parley's run before it.
func (l limits) pass(program int) {
	for which, limit := range l {
		limit.Max = min(limit.Cur+graceLimits[which], limit.Max)
		_ = prlimit(program, which, &limit, nil) // it may have ended
	}
	_ = syscall.Setpriority(syscall.PRIO_PROCESS, program, Niceness)
}

// prepareThreads has Go's scheduler make threads that it can use later, when this process may not be
// able to get any: the scheduler ends the process then.
func prepareThreads() {
	var ready, done sync.WaitGroup
	release := make(chan struct{})
	for range spareThreads {
		ready.Add(1)
		done.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			ready.Done()
			<-release
		})
	}
	ready.Wait()
	close(release)
	done.Wait()
}

// spareThreads is how many threads are made: for the lifeline, the program's end, requests, the thread
// that is confined, and two more.
const spareThreads = 6

// rlimitNPROC is the number of a limit that package syscall lacks.
const rlimitNPROC = 6

// oomScore has the kernel end other processes first. Those of programs have 1000.
const oomScore = "900"

// prlimit sets a limit of a process, if limit is given, and reads the one it had, if old is.
func prlimit(pid, which int, limit, old *syscall.Rlimit) error {
	_, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(pid), uintptr(which),
		uintptr(unsafe.Pointer(limit)), uintptr(unsafe.Pointer(old)), 0, 0)
	return errorOf(errno)
}

// waitAtGate waits until Parley has set the limits of this process. They are for the program.
func waitAtGate() error {
	gate := os.NewFile(GateFile, "gate")
	if gate == nil {
		return errors.New("file descriptor 3 is missing")
	}
	defer gate.Close()
	var one [1]byte
	if _, err := gate.Read(one[:]); err != nil {
		return fmt.Errorf("wait for limits: %w", err)
	}
	return nil
}

// waitFor waits for all children until that of the number given has ended, and returns its exit
// code.
func waitFor(pid int) int {
	for {
		var wait syscall.WaitStatus
		ended, err := syscall.Wait4(-1, &wait, 0, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return exitSIGKILL
		case ended != pid || !wait.Exited() && !wait.Signaled():
		case wait.Signaled():
			return 128 + int(wait.Signal())
		default:
			return wait.ExitStatus()
		}
	}
}

// endDescendants ends all processes below this one. As long as there are any, it has children. It
// does not give up: if it did, they would be nobody's.
//
// A process that forks and ends all the time is gone before it can be found in /proc. But what it
// leaves becomes a child of this process, and these can be looked at faster than they can fork.
func endDescendants() {
	below := Tree{Root: os.Getpid(), Below: true}
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		for range childRounds {
			if !reapEnded() {
				return
			}
			killChildren()
		}
		below.sweep()
		time.Sleep(pause)
	}
}

// childRounds is how often children are looked at before all other processes are.
const childRounds = 50

// reapEnded reaps the children that have ended, and reports whether there are others.
func reapEnded() bool {
	for {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return false
		case pid == 0:
			return true
		}
	}
}

// killChildren kills the children of the main thread, which gets all that have lost their parent.
func killChildren() {
	self := strconv.Itoa(os.Getpid())
	list, err := os.ReadFile("/proc/" + self + "/task/" + self + "/children")
	if err != nil {
		return // a kernel without that file
	}
	for field := range bytes.FieldsSeq(list) {
		pid, err := strconv.Atoi(string(field))
		if err != nil {
			return
		}
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}
