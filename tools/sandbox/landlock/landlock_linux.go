package landlock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"early.parley"
	"parley/tools/sandbox"
	"parley/tools/sandbox/seccomp"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

// A Runner is a [sandbox.Runner]. The zero value is ready to use.
type Runner struct {
	supervisor sandbox.Supervisor
	system     system
	most       int // the highest version of Landlock to use, for tests; 0 is what the kernel has
}

// New returns a Runner.
func New() *Runner { return &Runner{} }

// Run implements [sandbox.Runner].
func (r *Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if err := s.Check(); err != nil {
		return sandbox.Outcome{}, err
	}
	if len(s.Network.Hosts) > 0 && !s.Network.All {
		return sandbox.Outcome{}, sandbox.ErrHosts
	}
	program, err := s.LookProgram()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	made, err := sandbox.MakeTemp()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer made.Remove()
	temp := made.Path
	view, err := newView(r.system.list(), s.Folders, temp)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	version, err := r.version()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	ruleset, err := view.ruleset(version, s.Network.All)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer ruleset.Close()
	plan := early.Plan{
		Path: program,
		Args: s.Args,
		Dir:  s.Dir,
		Env: s.Environ(map[string]string{
			"HOME": temp, "TMPDIR": temp,
			"GIT_CONFIG_NOSYSTEM": "1", // it is there and cannot be read, which git finds odd
		}),
		Temp:   temp,
		Filter: seccomp.Confined(s.Network.All, version),
	}
	if plan.Dir == "" {
		plan.Dir = temp
	}
	for _, f := range view {
		plan.Folders = append(plan.Folders, early.Folder{Path: f.Path, Writable: f.Access == sandbox.ReadWrite})
	}
	return r.launch(ctx, s, plan, ruleset)
}

// launch has a launcher run plan.
func (r *Runner) launch(ctx context.Context, s sandbox.Spec, p early.Plan, ruleset *os.File) (sandbox.Outcome, error) {
	file, err := sandbox.SecretFile("plan", p.Encode())
	if err != nil {
		return sandbox.Outcome{}, fmt.Errorf("hand over to the launcher: %w", err)
	}
	defer file.Close()
	o, err := r.supervisor.Run(ctx, s, sandbox.Command{
		Args:  []string{early.Path, early.Launcher},
		Dir:   "/",
		Env:   []string{"GOMAXPROCS=1"},
		Files: []*os.File{file, ruleset},
		Kind:  sandbox.Reaper,
	})
	if err != nil || o.End != sandbox.Exited {
		return o, err
	}
	return o, result(file)
}

// result returns why the launcher did not start the program; nil if it did.
func result(file *os.File) error {
	var text [1024]byte
	n, _ := file.ReadAt(text[:], 0)
	told := string(text[:n])
	if strings.HasPrefix(told, early.Started) {
		return nil
	}
	if reason, failed := strings.CutPrefix(told, early.Failed); failed {
		reason, _, _ = strings.Cut(reason, "\x00")
		return errors.New(reason)
	}
	return errors.New("the launcher ended before it started the program")
}

// version returns the version of Landlock that is used, and ErrNoSandbox if the kernel has none.
func (r *Runner) version() (int, error) {
	version, err := ll.LandlockGetABIVersion()
	if err != nil {
		return 0, fmt.Errorf("%w: this kernel has no Landlock, or it is switched off (%w)", sandbox.ErrNoSandbox, err)
	}
	if r.most > 0 {
		version = min(version, r.most)
	}
	return version, nil
}
