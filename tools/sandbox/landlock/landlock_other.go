//go:build !linux

package landlock

import (
	"context"

	"parley/tools/sandbox"
)

// A Runner runs nothing: only Linux has Landlock.
type Runner struct{}

// New returns a Runner.
func New() *Runner { return &Runner{} }

// Run implements [sandbox.Runner].
func (*Runner) Run(context.Context, sandbox.Spec) (sandbox.Outcome, error) {
	return sandbox.Outcome{}, sandbox.ErrNoSandbox
}
