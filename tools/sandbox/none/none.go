// Package none runs programs without a sandbox: with all rights of Parley itself. It is used only if
// config says so.
package none

import (
	"cmp"
	"context"
	"errors"
	"os/exec"
	"syscall"
	"time"

	"parley/tools/sandbox"
)

// A Runner is a [sandbox.Runner] that confines nothing but time.
type Runner struct{}

// Run implements [sandbox.Runner].
func (Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	limited, stop := context.WithTimeout(ctx, cmp.Or(s.Limits.Wall, sandbox.DefaultLimits.Wall))
	defer stop()
	cmd := exec.CommandContext(limited, s.Args[0], s.Args[1:]...)
	cmd.Dir = s.Dir
	cmd.Env = s.Environ(nil)
	cmd.Stdout = s.Stdout
	cmd.Stderr = s.Stderr
	cmd.WaitDelay = time.Second
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	start := time.Now()
	if err := cmd.Start(); err != nil {
		return sandbox.Outcome{}, err
	}
	_ = cmd.Wait() // the exit code tells
	o := sandbox.Outcome{End: sandbox.Exited, Exit: cmd.ProcessState.ExitCode(), Took: time.Since(start)}
	switch {
	case ctx.Err() != nil:
		o.End = sandbox.Cancelled
	case errors.Is(limited.Err(), context.DeadlineExceeded):
		o.End = sandbox.TimedOut
	}
	return o, nil
}
