// Package none runs programs without a sandbox: with all rights of Parley itself. It is used only if
// config says so.
package none

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"parley/tools/sandbox"
)

// A Runner is a [sandbox.Runner] that confines nothing but what Limits says. Its programs have the
// whole network.
type Runner struct {
	// Reaper is the command that calls sandbox.RunReaper and takes the program as further arguments.
	// Without it, what leaves the program's session and loses its parent may outlive the program
	// where no cgroup can be made.
	Reaper []string
}

// Run implements [sandbox.Runner].
func (r Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if len(s.Args) == 0 {
		return sandbox.Outcome{}, sandbox.ErrNoProgram
	}
	if len(s.Network.Hosts) > 0 && !s.Network.All {
		return sandbox.Outcome{}, sandbox.ErrHosts
	}
	temp, err := os.MkdirTemp("", "parley-run-")
	if err != nil {
		return sandbox.Outcome{}, fmt.Errorf("make a temporary folder: %w", err)
	}
	defer os.RemoveAll(temp)
	program, err := s.LookProgram()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	c := sandbox.Command{
		Args: append([]string{program}, s.Args[1:]...),
		Dir:  cmp.Or(s.Dir, temp),
		Env:  s.Environ(map[string]string{"HOME": temp, "TMPDIR": temp}),
	}
	if len(r.Reaper) > 0 {
		c.Args = append(r.Reaper[:len(r.Reaper):len(r.Reaper)], c.Args...)
		c.Kind = sandbox.Reaper
	}
	var supervisor sandbox.Supervisor
	return supervisor.Run(ctx, s, c)
}
