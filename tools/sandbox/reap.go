package sandbox

import (
	"fmt"
	"os"
	"syscall"
)

// exitNoProgram is the code of shells if a program cannot be started.
const exitNoProgram = 127

// RunReaper is what a process of its own does that Parley starts as a Reaper command: it runs args
// without a sandbox, in the environment that it has itself, and returns the exit code.
func RunReaper(args []string) int {
	var attributes os.ProcAttr
	attributes.Env = os.Environ()
	attributes.Files = []*os.File{os.Stdin, os.Stdout, os.Stderr}
	attributes.Sys = &syscall.SysProcAttr{Setsid: true}
	code, err := Reap(func() (*os.Process, error) {
		if len(args) == 0 {
			return nil, ErrNoProgram
		}
		return os.StartProcess(args[0], args, &attributes)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		return max(code, exitNoProgram)
	}
	return code
}
