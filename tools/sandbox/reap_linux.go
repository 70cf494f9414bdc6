package sandbox

import (
	"errors"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Reap is the work of a Reaper command, and is called in a process of its own. It has start start a
// process, waits until that or Parley has ended, ends everything that descends from this process,
// and returns the exit code of the one started. start may confine this thread and all others.
//
// What loses its parent becomes a child of this process, so that nothing gets away.
func Reap(start func() (*os.Process, error)) (int, error) {
	lifeline := os.NewFile(StatusFile, "lifeline")
	if lifeline == nil {
		return 0, errors.New("file descriptor 4 is missing")
	}
	unix.CloseOnExec(StatusFile)
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
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

// endDescendants ends all processes below this one.
func endDescendants() error {
	below := tree{root: os.Getpid(), below: true}
	err := below.kill()
	for deadline := time.Now().Add(endTimeout); ; {
		pid, failed := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		switch {
		case errors.Is(failed, syscall.ECHILD):
			return err
		case pid > 0, errors.Is(failed, syscall.EINTR):
		case time.Now().After(deadline):
			return errors.Join(err, errAlive)
		default:
			time.Sleep(time.Millisecond)
			err = below.kill()
		}
	}
}
