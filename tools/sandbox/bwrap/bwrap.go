// Package bwrap runs programs in a sandbox of Linux namespaces, which the program bwrap (bubblewrap)
// makes: with their own file system, processes, network and users. It needs a kernel that lets Parley
// make user namespaces; many containers do not.
package bwrap

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"parley/tools/sandbox"
	"parley/tools/sandbox/proxy"
	"parley/tools/sandbox/seccomp"
)

// Advice is what an operator can do if programs do not run in bwrap.
const Advice = "install bubblewrap (apt-get install bubblewrap); where user namespaces are restricted, as in Ubuntu " +
	"24.04, allow them to bwrap by an AppArmor profile, or to all by sysctl -w " +
	"kernel.apparmor_restrict_unprivileged_userns=0; a container needs --security-opt seccomp=unconfined"

// A Config says where a Runner keeps what it needs, and how programs reach hosts.
type Config struct {
	// Folder is for a copy of what programs see of /etc. No program may see it.
	Folder string

	// Relay is the path of a program that calls proxy.Relay for proxy.RelayCommand, and Proxy is
	// for the hosts of sandbox.Network. Without Relay there is no reaching them.
	Relay string
	Proxy proxy.Config
}

// A Runner is a [sandbox.Runner] that uses bwrap.
type Runner struct {
	config     Config
	supervisor sandbox.Supervisor
	etc        etcCopy
}

// New returns a Runner.
func New(c Config) *Runner { return &Runner{config: c, etc: etcCopy{folder: c.Folder}} }

// ConfinesHosts implements [sandbox.HostConfiner].
func (r *Runner) ConfinesHosts(context.Context) bool { return r.config.Relay != "" }

const (
	gate  = "3"           // sandbox.GateFile: no options, but bwrap waits for them
	tmp   = "/tmp"        // the temporary folder of a program, which nobody else sees
	relay = "/run/parley" // where the relay is in a sandbox
)

// Run implements [sandbox.Runner]. A program sees the machine's programs, read-only, and of its
// settings those without secrets (D-075, R-S16); of everything else, its Folders.
func (r *Runner) Run(ctx context.Context, s sandbox.Spec) (sandbox.Outcome, error) {
	if err := s.Check(); err != nil {
		return sandbox.Outcome{}, err
	}
	program, err := find()
	if err != nil {
		return sandbox.Outcome{}, err
	}
	if _, err := s.LookProgram(); err != nil {
		return sandbox.Outcome{}, err
	}
	if s.Network.All || len(s.Network.Hosts) == 0 {
		return r.run(ctx, s, program, nil)
	}
	if !r.ConfinesHosts(ctx) {
		return sandbox.Outcome{}, sandbox.ErrHosts
	}
	p, err := proxy.Start(s.Network.Hosts, s.Network.Key, r.config.Proxy)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	defer p.Close()
	defer p.Started()
	o, err := r.run(ctx, s, program, p.File())
	o.Refused = p.Refused()
	o.Reached = p.Reached()
	return o, err
}

// find returns the path of bwrap.
func find() (string, error) {
	program, err := sandbox.Spec{Args: []string{"bwrap"}}.LookProgram()
	if err != nil {
		return "", errors.New("bwrap (bubblewrap) is not installed")
	}
	return program, nil
}

// run runs s in bwrap. The options go to it by a file: the list of arguments can be read by every
// user of the machine, and by the program itself.
//
// handover is where the relay finds the proxy; nil if the program is to have none.
func (r *Runner) run(
	ctx context.Context, s sandbox.Spec, program string, handover *os.File,
) (sandbox.Outcome, error) {
	view, err := newView(s.Folders)
	if err != nil {
		return sandbox.Outcome{}, err
	}
	etc := r.etc.hold()
	if etc != nil {
		defer etc.Close()
	}
	var own files // what is to be closed
	defer own.close()
	filter, err := own.secret("bwrap-filter", seccomp.Isolated())
	if err != nil {
		return sandbox.Outcome{}, err
	}
	all := append(isolation(s), "--seccomp", filter)
	all = append(all, showEtc(etc)...)
	all = append(all, system()...)
	all = append(all, view.options()...)
	args := s.Args
	if handover != nil {
		all = append(all, "--ro-bind", r.config.Relay, relay)
		last := sandbox.FirstFile + len(own) + 1 // after the options
		args = append([]string{relay}, proxy.RelayArgs(last, s.Args)...)
	}
	all = append(all, ending(s)...)
	number, err := own.secret("bwrap-options", []byte(strings.Join(all, "\x00")+"\x00"))
	if err != nil {
		return sandbox.Outcome{}, err
	}
	handed := slices.Clone(own)
	if handover != nil {
		handed = append(handed, handover)
	}
	o, err := r.supervisor.Run(ctx, s, sandbox.Command{
		Args:  append([]string{program, "--args", gate, "--args", number, "--"}, args...),
		Dir:   "/",
		Env:   []string{}, // /proc/1/environ shows it in the sandbox
		Files: handed,
		Kind:  sandbox.Namespace,
	})
	if err != nil && strings.Contains(err.Error(), "execvp ") {
		err = fmt.Errorf("%w: %s", sandbox.ErrNoProgram, s.Args[0])
	}
	return o, err
}

// files are those that bwrap is given.
type files []*os.File

// add has bwrap given f, and returns the number it has there.
func (f *files) add(file *os.File) string {
	*f = append(*f, file)
	return strconv.Itoa(sandbox.FirstFile + len(*f) - 1)
}

// secret adds a file with content that nobody else can read.
func (f *files) secret(name string, content []byte) (string, error) {
	file, err := sandbox.SecretFile(name, content)
	if err != nil {
		return "", fmt.Errorf("write what bwrap is given: %w", err)
	}
	return f.add(file), nil
}

func (f *files) close() {
	for _, file := range *f {
		_ = file.Close()
	}
}

// isolation returns the options that give s its own namespaces, and no rights in them.
func isolation(s sandbox.Spec) []string {
	options := []string{
		"--unshare-all",
		"--unshare-user",   // or fail, where --unshare-all only tries
		"--disable-userns", // in a further one the program would have rights again
		"--cap-drop", "ALL",
		"--new-session",
		"--die-with-parent",
		"--hostname", "sandbox",
		"--json-status-fd", strconv.Itoa(sandbox.StatusFile),
	}
	if s.Network.All {
		options = append(options, "--share-net")
	}
	memory := strconv.FormatInt(s.Limits.WithDefaults().Memory, 10)
	return append(options,
		"--proc", "/proc",
		// What bwrap protects of /proc by itself is not this: root may write there without any
		// capability, and core_pattern names a program that the kernel runs outside.
		"--ro-bind", "/proc/sys", "/proc/sys",
		"--dev", "/dev",
		"--size", memory, "--perms", "1777", "--tmpfs", "/dev/shm",
		"--size", memory, "--perms", "1777", "--tmpfs", tmp,
		"--dir", "/var", "--symlink", "../tmp", "/var/tmp", "--dir", "/run",
	)
}

// showEtc returns the options that show the files of /etc that programs need: those of a copy or, if that is
// nil, the files themselves. No disk has to have room, or be able to hold them, for programs to run.
func showEtc(held *os.File) []string {
	if held != nil {
		return []string{"--ro-bind", held.Name(), "/etc"}
	}
	options := []string{"--dir", "/etc"}
	for _, path := range sandbox.EtcFiles() {
		options = append(options, "--ro-bind-try", path, path)
	}
	return options
}

// system returns the options that show the programs of this machine.
func system() (options []string) {
	for _, path := range sandbox.ProgramFolders() {
		if target, err := os.Readlink(path); err == nil && filepath.Dir(path) == "/" {
			options = append(options, "--symlink", target, path)
			continue
		}
		options = append(options, "--ro-bind-try", path, path)
	}
	return options
}

// ending returns the options that come after all that is mounted: nothing of what holds it together
// can be written to, and the environment.
func ending(s sandbox.Spec) []string {
	options := []string{"--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cmp.Or(s.Dir, tmp), "--clearenv"}
	for _, variable := range s.Environ(map[string]string{"HOME": tmp, "TMPDIR": tmp}) {
		name, value, _ := strings.Cut(variable, "=")
		options = append(options, "--setenv", name, value)
	}
	return options
}
