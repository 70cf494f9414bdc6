// Package docker runs programs in containers. It is used only if config says so: the system's programs are those
// of an image, and starting a container takes half a second.
package docker

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"parley/lazyregexp"
	"parley/tools/sandbox"
)

// Advice is what an operator can do if programs do not run in containers.
const Advice = "start Docker (25 or later, with its seccomp profile), let Parley's user use it, and pull the " +
	"image of tools.exec.image (docker pull NAME); a daemon on another machine has no files of this one"

const (
	label         = "parley.sandbox" // of all containers; its value is Runner.Owner
	commandTime   = 20 * time.Second // of one command of Docker's that does not wait for the program
	removeTime    = 30 * time.Second
	maxOutput     = 64 << 10 // bytes that such a command may write
	commandMemory = 1 << 30  // bytes of the command that waits
)

// A Runner is a [sandbox.Runner] that runs each program in a container of its own, which is removed afterwards. It
// needs the command docker and a daemon on this machine.
type Runner struct {
	Image func() string // is not pulled: a program would have to wait for that
	Owner string        // says whose containers these are; of two runners at the same time, each has its own

	supervisor sandbox.Supervisor

	mu      sync.Mutex
	ready   bool   // the daemon was asked, and what an earlier process left has been removed
	program string // the path of docker
	user    string // of programs, as --user has it
}

// Run implements [sandbox.Runner].
func (r *Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return sandbox.Outcome{}, sandbox.ErrNoProgram
	}
	if len(s.Network.Hosts) > 0 && !s.Network.All {
		return sandbox.Outcome{}, sandbox.ErrHosts
	}
	if err := r.prepare(ctx); err != nil {
		if ctx.Err() != nil {
			return sandbox.Outcome{End: sandbox.Cancelled, Exit: -1}, nil
		}
		return sandbox.Outcome{}, err
	}
	temp, err := sandbox.MakeTemp()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer temp.Remove()
	c := &container{
		runner: r, image: r.Image(), spec: s, folder: temp.Path,
		name: "parley-" + strings.ToLower(rand.Text()),
	}
	return c.run(ctx)
}

// prepare asks the daemon once, and removes what an earlier process of the same owner has left.
func (r *Runner) prepare(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ready {
		return nil
	}
	program, err := exec.LookPath("docker")
	if err != nil {
		return fmt.Errorf("find Docker: %w", err)
	}
	r.program = program
	options, err := r.command(ctx, "info", "--format", "{{json .SecurityOptions}}")
	if err != nil {
		return fmt.Errorf("ask Docker: %w", err)
	}
	r.user = strconv.Itoa(os.Getuid()) + ":" + strconv.Itoa(os.Getgid())
	if strings.Contains(options, "name=rootless") {
		r.user = "0:0" // there, this is who runs the daemon
	}
	left, err := r.command(ctx, "ps", "--all", "--quiet", "--no-trunc", "--filter", "label="+label+"="+r.Owner)
	if err != nil {
		return fmt.Errorf("look for containers that were left: %w", err)
	}
	if ids := strings.Fields(left); len(ids) > 0 {
		if _, err := r.command(ctx, append([]string{"rm", "--force", "--volumes"}, ids...)...); err != nil {
			return fmt.Errorf("remove containers that were left: %w", err)
		}
	}
	r.ready = true
	return nil
}

// passed are the variables of Parley's environment by which docker finds the daemon.
var passed = []string{
	"HOME", "PATH", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH",
	"DOCKER_TLS_VERIFY", "DOCKER_API_VERSION",
}

func environment() (all []string) {
	for _, name := range passed {
		if value := os.Getenv(name); value != "" {
			all = append(all, name+"="+value)
		}
	}
	return all
}

// command runs a command of docker and returns what it writes.
func (r *Runner) command(ctx context.Context, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Env = environment()
	cmd.WaitDelay = time.Second
	var stdout, stderr limitedBuffer
	cmd.Stdout = &stdout
	cmd.Stderr = &stderr
	err := cmd.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("docker %s: %s", args[0], cmp.Or(strings.TrimSpace(stderr.String()), err.Error()))
	}
	return stdout.String(), nil
}

// A limitedBuffer keeps the first maxOutput bytes.
type limitedBuffer struct{ kept bytes.Buffer }

func (b *limitedBuffer) Write(p []byte) (int, error) {
	b.kept.Write(p[:min(len(p), maxOutput-b.kept.Len())])
	return len(p), nil
}

func (b *limitedBuffer) String() string { return b.kept.String() }

// A container runs one program.
type container struct {
	runner *Runner
	spec   sandbox.Spec
	image  string
	folder string // of files that docker reads; nobody else sees them
	name   string

	sourced bool // its shell reads variables from a file

	complaint complaint
}

// run creates the container, starts it, waits for its end and removes it.
func (c *container) run(ctx context.Context) (o sandbox.Outcome, err error) {
	args, err := c.createArgs()
	if err != nil {
		return o, err
	}
	defer func() {
		if gone := c.remove(ctx); gone != nil {
			err = errors.Join(err, fmt.Errorf("remove the container of a program: %w", gone))
		}
	}()
	if _, err := c.runner.command(ctx, args...); err != nil {
		if ctx.Err() != nil {
			return sandbox.Outcome{End: sandbox.Cancelled, Exit: -1}, nil
		}
		return o, fmt.Errorf("create a container: %w", err)
	}
	o, err = c.attach(ctx)
	if err != nil || o.End != sandbox.Exited {
		return o, err
	}
	return c.judge(ctx, o)
}

// attach starts the container and passes on what its program reads and writes. Docker's own command is supervised
// for that. It may use more than the program.
func (c *container) attach(ctx context.Context) (sandbox.Outcome, error) {
	limits := c.spec.Limits.WithDefaults()
	stdout, stderr := c.outputs()
	watched := sandbox.Spec{
		Args:   []string{c.runner.program},
		Stdin:  c.spec.Stdin,
		Stdout: stdout,
		Stderr: stderr,
		Limits: sandbox.Limits{
			Wall: limits.Wall, Output: limits.Output, CPU: limits.Wall + time.Minute, Memory: commandMemory,
		},
	}
	start := []string{c.runner.program, "start", "--attach"}
	if c.spec.Stdin != nil {
		start = append(start, "--interactive")
	}
	command := sandbox.Command{Args: append(start, c.name), Dir: c.folder, Env: environment()}
	return c.runner.supervisor.Run(ctx, watched, command)
}

// judge returns o with how the program ended, as Docker tells it.
func (c *container) judge(ctx context.Context, o sandbox.Outcome) (sandbox.Outcome, error) {
	text, err := c.runner.command(ctx, "inspect", "--type", "container", "--format", "{{json .State}}", c.name)
	if err != nil {
		return o, fmt.Errorf("ask how the program ended: %w", err)
	}
	var state struct {
		ExitCode  int
		OOMKilled bool
		Error     string
		StartedAt time.Time
	}
	if err := json.Unmarshal([]byte(text), &state); err != nil {
		return o, fmt.Errorf("read how the program ended: %w", err)
	}
	switch {
	case state.ExitCode == exitNotFound && c.complaint.isNoProgram():
		err := fmt.Errorf("%w as %s in the image %s", sandbox.ErrNoProgram, c.spec.Args[0], c.image)
		return sandbox.Outcome{}, err
	case state.StartedAt.IsZero():
		reason := cmp.Or(state.Error, "docker does not say why not")
		return sandbox.Outcome{}, fmt.Errorf("start the container: %s", reason)
	case state.OOMKilled && state.ExitCode != 0, state.ExitCode == exitCPU,
		state.ExitCode == exitKilled && o.Took >= c.spec.Limits.WithDefaults().CPU:
		o.End = sandbox.Exceeded
		o.Exit = -1
	default:
		o.Exit = state.ExitCode
	}
	return o, nil
}

const (
	exitCPU      = 128 + 24 // of a program that has used all its time: SIGXCPU
	exitKilled   = 128 + 9
	exitNotFound = 127
)

// outputs returns where the program writes. They are one if those of the Spec are.
func (c *container) outputs() (stdout, stderr io.Writer) {
	c.complaint.to = c.spec.Stderr
	if c.spec.Stdout != nil && sandbox.SameWriter(c.spec.Stdout, c.spec.Stderr) {
		return &c.complaint, &c.complaint
	}
	return c.spec.Stdout, &c.complaint
}

// A complaint passes on what is written to it, and keeps the beginning.
type complaint struct {
	to    io.Writer // may be nil
	begin []byte
}

func (c *complaint) Write(p []byte) (int, error) {
	c.begin = append(c.begin, p[:min(len(p), 1000-len(c.begin))]...)
	if c.to == nil {
		return len(p), nil
	}
	return c.to.Write(p)
}

// isNoProgram reports whether this is what Docker's init says of a program that is missing.
func (c *complaint) isNoProgram() bool {
	return bytes.HasPrefix(c.begin, []byte("[FATAL tini (")) &&
		bytes.Contains(c.begin, []byte(" failed: No such file or directory"))
}

// remove ends the container and everything in it, although ctx has ended.
func (c *container) remove(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
	defer cancel()
	_, err := c.runner.command(ctx, "rm", "--force", "--volumes", c.name)
	if err != nil && strings.Contains(err.Error(), "No such container") {
		return nil
	}
	return err
}

// createArgs returns the arguments that create the container, and writes the files they name.
func (c *container) createArgs() ([]string, error) {
	limits := c.spec.Limits.WithDefaults()
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	network := "none"
	if c.spec.Network.All {
		network = "host"
	}
	memory := number(limits.Memory)
	seconds := int64((limits.CPU + time.Second - 1) / time.Second)
	args := []string{
		"create", "--name", c.name, "--label", label + "=" + c.runner.Owner, "--pull", "never",
		"--network", network, "--init", "--read-only", "--user", c.runner.user, "--cap-drop", "ALL",
		"--security-opt", "no-new-privileges", "--log-driver", "none", "--no-healthcheck", "--hostname", "sandbox",
		"--memory", memory, "--memory-swap", memory, "--pids-limit", strconv.Itoa(limits.Processes),
		"--oom-score-adj", "1000", "--ulimit", "core=0", "--ulimit", "fsize=" + number(limits.FileSize),
		"--ulimit", "cpu=" + number(seconds) + ":" + number(seconds+1), // SIGXCPU, then SIGKILL
		"--tmpfs", "/tmp:rw,exec,nosuid,nodev,mode=1777,size=" + memory,
		"--workdir", cmp.Or(c.spec.Dir, "/tmp"),
	}
	if c.spec.Stdin != nil {
		args = append(args, "--interactive")
	}
	environ, err := c.environArgs()
	if err != nil {
		return nil, err
	}
	mounts, err := c.mountArgs()
	if err != nil {
		return nil, err
	}
	args = append(append(args, environ...), mounts...)
	return append(args, c.program()...), nil
}

// environArgs has docker read the environment from a file, because other users can read its arguments. Values of
// several lines cannot be in such a file, and the environment of docker itself is no place for what a program may
// have chosen: the container's shell reads these from a file that is mounted there, and then becomes the program.
func (c *container) environArgs() (args []string, err error) {
	var file, script strings.Builder
	for _, variable := range c.spec.Environ(map[string]string{"HOME": "/tmp", "TMPDIR": "/tmp"}) {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case !strings.ContainsAny(variable, "\r\n"):
			file.WriteString(variable + "\n")
		case !isVariable.MatchString(name):
			return nil, fmt.Errorf("%q is no name of a variable, for a value of several lines", name)
		default:
			script.WriteString("export " + name + "='" + strings.ReplaceAll(value, "'", `'\''`) + "'\n")
		}
	}
	name := filepath.Join(c.folder, "environment")
	if err := os.WriteFile(name, []byte(file.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the environment of a container: %w", err)
	}
	args = []string{"--env-file", name}
	if script.Len() == 0 {
		return args, nil
	}
	name = filepath.Join(c.folder, "variables")
	if err := os.WriteFile(name, []byte(script.String()), 0o600); err != nil {
		return nil, fmt.Errorf("write the environment of a container: %w", err)
	}
	c.sourced = true
	return append(args, "--mount", mount(name, variablesFile, true)), nil
}

// variablesFile is where a container has the values of several lines, for sh.
const variablesFile = "/run/parley-variables"

var isVariable = lazyregexp.New(`^[A-Za-z_][A-Za-z0-9_]*$`)

// program returns what the container runs, as the arguments of create that come last.
func (c *container) program() []string {
	if !c.sourced {
		return append([]string{"--entrypoint", c.spec.Args[0], "--", c.image}, c.spec.Args[1:]...)
	}
	const script = `. ` + variablesFile + ` && exec "$@"`
	return append([]string{"--entrypoint", "/bin/sh", "--", c.image, "-c", script, "sh"}, c.spec.Args...)
}
