package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley/tools/mcp/flood"
	"parley/tools/sandbox"
	"parley/workspace"
)

const (
	// closeTimeout is how long a server may take to end after its standard input was closed.
	closeTimeout = 2 * time.Second

	// noLimit is for what servers may use any amount of: they run as long as Parley.
	noLimit = 100 * 365 * 24 * time.Hour

	// explainTimeout is how long the end of a program is waited for, to say why a connection ended.
	explainTimeout = 300 * time.Millisecond
)

// A process is the program of a server. Its runner ends everything that it has started, and so does
// the end of Parley (R-S22).
type process struct {
	v      *supervisor
	stdin  *os.File // to write to
	stdout *os.File // to read from
	cancel context.CancelFunc
	ended  chan struct{}

	outcome sandbox.Outcome // when ended
	err     error           // when ended
}

// transport returns what messages are exchanged by.
func (c *connection) transport() (sdk.Transport, error) {
	if kind := c.v.server.transport(); kind != typeStdio {
		return c.httpTransport(kind), nil
	}
	p, err := c.v.start(c.ctx)
	if err != nil {
		return nil, err
	}
	c.process = p
	stdout := c.newIntake().Reader(p.stdout, flood.Lines())
	return &sdk.IOTransport{Reader: stdout, Writer: p.stdin, MaxLineLength: maxMessage}, nil
}

// start starts the program of the server.
func (v *supervisor) start(ctx context.Context) (*process, error) {
	runner := v.config.Sandbox
	if v.server.Sandbox == sandboxNone {
		runner = v.config.Bare
	}
	if runner == nil {
		return nil, errors.New("programs cannot be started here")
	}
	spec, err := v.spec()
	if err != nil {
		return nil, err
	}
	theirIn, ourIn, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	ourOut, theirOut, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, theirIn.Close(), ourIn.Close())
	}
	v.stderr.reset()
	ctx, cancel := context.WithCancel(ctx)
	p := &process{v: v, stdin: ourIn, stdout: ourOut, cancel: cancel, ended: make(chan struct{})}
	closeTheirs := sync.OnceFunc(func() { _, _ = theirIn.Close(), theirOut.Close() })
	spec.Stdin = theirIn
	spec.Stdout = theirOut
	spec.Stderr = v.stderr
	spec.Started = func(pid int) {
		closeTheirs()
		v.setPID(pid)
	}
	go func() { // close waits for it
		defer close(p.ended)
		p.outcome, p.err = runner.Run(ctx, spec)
		closeTheirs()
		v.setPID(0)
	}()
	return p, nil
}

func (v *supervisor) setPID(pid int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pid = pid
}

// close ends the program: it closes its standard input, which tells it to end, and has it killed if it
// does not.
func (p *process) close() {
	_ = p.stdin.Close()
	select {
	case <-p.ended:
	case <-time.After(closeTimeout):
	}
	p.cancel()
	<-p.ended
	_ = p.stdout.Close()
}

// explain returns err with how the program ended, if it has.
func (p *process) explain(err error) error {
	select {
	case <-p.ended:
	case <-time.After(explainTimeout):
		return err
	}
	switch {
	case errors.Is(p.err, sandbox.ErrHosts):
		return fmt.Errorf(`the sandbox of this machine cannot let a program reach some hosts only (%s): install `+
			`bubblewrap, or allow the server everything by "hostNetwork": true`, strings.Join(p.v.server.hosts(), ", "))
	case errors.Is(p.err, sandbox.ErrNoProgram):
		return fmt.Errorf("%w in %s: install it, or give its whole path as command", p.err, p.v.path())
	case p.err != nil:
		return p.err
	}
	text := fmt.Sprintf("the program ended with exit code %d", p.outcome.Exit)
	switch p.outcome.End {
	case sandbox.Exceeded:
		text = "the program used more memory or processes than it may, and was ended"
	case sandbox.Cancelled, sandbox.TimedOut:
		return err
	}
	if last := p.v.stderr.last(); last != "" {
		text += "; it wrote: " + last
	}
	for _, refused := range p.outcome.Refused {
		host, _, _ := net.SplitHostPort(refused)
		reason := `"network" does not name it`
		if slices.Contains(p.v.server.hosts(), host) {
			reason = `it is no public address: "hostNetwork": true opens the networks of this machine`
		}
		text += fmt.Sprintf("; it may not reach %s: %s", refused, reason)
	}
	switch {
	case errors.Is(err, io.EOF), errors.Is(err, sdk.ErrConnectionClosed), errors.Is(err, errEnded):
		return errors.New(text)
	case p.outcome.Exit == 0: // because its standard input was closed
		return err
	}
	return fmt.Errorf("%w; %s", err, text)
}

// hosts returns what the program may reach.
func (s *Server) hosts() []string {
	if slices.Contains(s.Network, "*") {
		return []string{"*"}
	}
	all := slices.Concat(s.Network, s.registries())
	slices.Sort(all)
	return slices.Compact(all)
}

// spec says what the program is, and what it may touch.
func (v *supervisor) spec() (spec sandbox.Spec, err error) {
	s := v.server
	home := filepath.Join(v.config.Folder, wrap(v.key.server))
	if err := os.MkdirAll(home, 0o700); err != nil {
		return spec, fmt.Errorf("make the folder of the server: %w", err)
	}
	spec = sandbox.Spec{
		Args: append([]string{s.Command}, s.Args...),
		Dir:  home,
		Env: map[string]string{
			"HOME":                       home,
			"PATH":                       v.path(),
			"npm_config_update_notifier": "false",
			"npm_config_fund":            "false",
			"npm_config_audit":           "false",
		},
		Network: sandbox.Network{Hosts: s.hosts(), Key: v.configKey("network"), All: s.HostNetwork},
		Limits:  sandbox.Limits{Wall: noLimit, CPU: noLimit, Output: 1 << 62},
	}
	if s.Sandbox == sandboxNone {
		for _, name := range bareVariables { // R-S17
			if value, has := os.LookupEnv(name); has {
				spec.Env[name] = value
			}
		}
		spec.Network = sandbox.Network{All: true}
	}
	for name, value := range s.Env {
		spec.Env[name] = value
	}
	if s.Cwd != "" {
		spec.Dir = expandHome(s.Cwd)
	}
	spec.Folders, err = v.folders(home)
	return spec, err
}

// configKey returns the whole name of a key of the server in the config.
func (v *supervisor) configKey(name string) string {
	return "tools.mcpServers." + v.key.server + "." + name
}

// bareVariables are what a program without a sandbox gets of Parley's environment.
var bareVariables = []string{"HOME", "PATH", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "TZ", "TMPDIR"}

// path returns where programs are looked up: where the command is, if it is given by its whole path,
// because what it starts, such as node, may be beside it.
func (v *supervisor) path() string {
	if filepath.IsAbs(v.server.Command) && runtime.GOOS != "windows" {
		return filepath.Dir(v.server.Command) + ":" + sandbox.Path
	}
	return sandbox.Path
}

// folders returns what the program may touch, besides the machine's programs: its home, its cwd, the
// folders of its config, and the files and folders that its arguments name by their whole paths.
// Whoever writes "server-filesystem /home/ann/notes" wants the server to see that folder.
func (v *supervisor) folders(home string) ([]sandbox.Folder, error) {
	s := v.server
	all := []sandbox.Folder{{Path: home, Access: sandbox.ReadWrite}}
	add := func(path string, access sandbox.Access) { all = append(all, v.grant(path, access)...) }
	if filepath.IsAbs(s.Command) {
		add(programFolder(s.Command), sandbox.ReadOnly)
	}
	for _, arg := range s.Args {
		_, value, isOption := strings.Cut(arg, "=")
		if !isOption || filepath.IsAbs(arg) {
			value = arg
		}
		if !filepath.IsAbs(value) {
			continue
		}
		info, err := os.Stat(value)
		switch {
		case err != nil:
		case info.IsDir():
			add(value, sandbox.ReadWrite)
		case isSource(value):
			add(programFolder(value), sandbox.ReadOnly)
		default:
			add(value, sandbox.ReadWrite)
		}
	}
	if s.Cwd != "" {
		add(expandHome(s.Cwd), sandbox.ReadWrite)
	}
	for _, folder := range s.Folders {
		path, readOnly := strings.CutSuffix(folder, readOnlySuffix)
		path = expandHome(path)
		if _, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("folders: %w", err)
		}
		access := sandbox.ReadWrite
		if readOnly {
			access = sandbox.ReadOnly
		}
		add(path, access)
	}
	for _, path := range v.config.Hidden {
		inside := func(f sandbox.Folder) bool { return workspace.Within(path, f.Path) }
		if slices.ContainsFunc(all, inside) {
			all = append(all, sandbox.Folder{Path: path, Access: sandbox.Hidden})
		}
	}
	return all, nil
}

// grant returns what lets a program use path. What all programs see anyway stays read-only, and
// nobody gets the whole machine.
func (v *supervisor) grant(path string, access sandbox.Access) (list []sandbox.Folder) {
	path = filepath.Clean(path)
	target, err := filepath.EvalSymlinks(path)
	if err != nil {
		return nil
	}
	for _, p := range slices.Compact([]string{path, target}) {
		inSystem := func(folder string) bool { return workspace.Within(p, folder) || workspace.Within(folder, p) }
		if p == "/" || slices.Contains(v.config.Hidden, p) || slices.ContainsFunc(sandbox.SystemFolders(), inSystem) {
			continue
		}
		list = append(list, sandbox.Folder{Path: p, Access: access})
	}
	return list
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// isSource reports whether a file is part of a program, which must be seen whole to run.
func isSource(path string) bool {
	extensions := []string{".js", ".mjs", ".cjs", ".ts", ".mts", ".py", ".rb", ".jar", ".php", ".sh"}
	return slices.Contains(extensions, strings.ToLower(filepath.Ext(path)))
}

// programFolder returns the folder that has all of the program that path is part of: the closest one
// above it with the mark of a project, or what is around a folder named bin. If there is none, it is
// path itself.
func programFolder(path string) string {
	marks := []string{"package.json", "node_modules", "pyproject.toml", "requirements.txt", "pyvenv.cfg", "Gemfile"}
	home, _ := os.UserHomeDir()
	outermost := ""
	for folder := filepath.Dir(path); folder != "/" && folder != home; folder = filepath.Dir(folder) {
		for _, mark := range marks {
			if exists(filepath.Join(folder, mark)) {
				outermost = folder
			}
		}
	}
	if outermost != "" {
		return outermost
	}
	if folder := filepath.Dir(path); filepath.Base(folder) == "bin" {
		return filepath.Dir(folder)
	}
	return cmp.Or(outermost, path)
}
