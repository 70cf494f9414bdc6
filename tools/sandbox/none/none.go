// Package none runs programs without a sandbox: with all rights of Parley itself. It is used only if
// config says so.
package none

import (
	"cmp"
	"context"
	"runtime"

	"early.parley"
	"parley/tools/sandbox"
)

// A Runner is a [sandbox.Runner] that confines nothing but what Limits says. Its programs have the
// whole network, whatever their Spec says.
type Runner struct{}

// Run implements [sandbox.Runner].
func (Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if len(s.Args) == 0 {
		return sandbox.Outcome{}, sandbox.ErrNoProgram
	}
	temp, err := sandbox.MakeTemp()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer temp.Remove()
	program, err := s.LookProgram()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	c := sandbox.Command{
		Args: append([]string{program}, s.Args[1:]...),
		Dir:  cmp.Or(s.Dir, temp.Path),
		Env:  s.Environ(map[string]string{"HOME": temp.Path, "TMPDIR": temp.Path}),
	}
	if runtime.GOOS == "linux" { // elsewhere what leaves the program's group may outlive it
		c.Args = append([]string{early.Path, early.Reaper}, c.Args...)
		c.Kind = sandbox.Reaper
	}
	var supervisor sandbox.Supervisor
	return supervisor.Run(ctx, s, c)
}
