package early

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// Numbers of prctl that package syscall lacks.
const (
	prSetPdeathsig      = 1
	prSetChildSubreaper = 36
)

// exitSIGKILL is the exit code for a program that was killed.
const exitSIGKILL = 128 + 9

// endTimeout is how long the end of killed processes is waited for. One that the kernel has waiting
// for a disk may take longer.
const endTimeout = 5 * time.Second

// errAlive is the error of a run whose processes could not be ended.
var errAlive = errors.New("processes of the program are still alive, although they were killed")

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
	code, err := reap(func() (*os.Process, error) { return os.StartProcess(args[0], args, &attributes) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		return max(code, exitNoProgram)
	}
	return code
}

// exitNoProgram is the code of shells if a program cannot be started.
const exitNoProgram = 127

// reap starts a process by calling start, waits until that process or Parley has ended, ends everything
// that descends from this process, and returns the exit code of the process it started.
//
// Processes that lose their parent become children of this one, so that none gets away.
func reap(start func() (*os.Process, error)) (int, error) {
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
	main, err := start()
	if err != nil {
		return 0, err
	}
	over := make(chan int, 1)
	go func() {
		var one [1]byte
		_, _ = lifeline.Read(one[:]) // nothing is ever written
		over <- exitSIGKILL
	}()
	go func() { over <- waitFor(main.Pid) }()
	code := <-over
	return code, endDescendants()
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

// endDescendants ends all processes below this one. As long as there are any, it has children.
func endDescendants() error {
	below := Tree{Root: os.Getpid(), Below: true}
	for deadline := time.Now().Add(endTimeout); ; {
		pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(err, syscall.ECHILD):
			return nil
		case pid > 0, errors.Is(err, syscall.EINTR):
		case time.Now().After(deadline):
			return errAlive
		default:
			_ = below.Kill() // Wait4 tells what became of it
		}
	}
}
