// Package dockertest has a strict stand-in for the command docker. It knows the flags that Docker knows, refuses what
// Docker refuses, and runs programs without a container. It is a test binary that calls Main.
package dockertest

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// Image is the one image that there is.
const Image = "debian:test"

// A Container is what the stand-in keeps of one.
type Container struct {
	Name, Image string
	Flags       map[string][]string // of create
	Args        []string
	Environ     []string            // of the program
	CLI         map[string][]string // the environment of each command of docker that concerned it
	PID         int                 // of the program
	State       State
}

// A State is that of Docker, as far as it is asked for.
type State struct {
	ExitCode  int
	OOMKilled bool
	Error     string
	StartedAt time.Time
}

// Install has programs of this test find the stand-in as docker. It returns where that keeps its containers.
func Install(t *testing.T) (state string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if err := os.Symlink(self, filepath.Join(bin, "docker")); err != nil {
		t.Fatal(err)
	}
	state = t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	t.Setenv("DOCKER_CONFIG", state)
	return state
}

// Containers returns the containers that there are.
func Containers(t testing.TB, state string) (all []Container) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(state, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		c, err := read(file)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
	}
	return all
}

// Removed returns the containers that were removed, in the order of their names.
func Removed(t testing.TB, state string) []Container {
	t.Helper()
	return Containers(t, filepath.Join(state, "removed"))
}

// Keep puts a container there, as a process that was killed leaves it.
func Keep(t testing.TB, state string, c Container) {
	t.Helper()
	if err := write(state, c); err != nil {
		t.Fatal(err)
	}
}

func read(file string) (c Container, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	return c, json.Unmarshal(text, &c)
}

func write(state string, c Container) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	file := filepath.Join(state, c.Name)
	if err := os.WriteFile(file+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file+".json") // whoever reads it, finds it whole
}

// lock keeps other commands from changing containers until unlock is called.
func (d *docker) lock() (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(d.state, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return func() {}, err
	}
	return func() { _ = file.Close() }, syscall.Flock(int(file.Fd()), syscall.LOCK_EX)
}

// Main is the command docker, if it was started under that name. It returns otherwise.
func Main() {
	if filepath.Base(os.Args[0]) != "docker" {
		return
	}
	d := &docker{state: os.Getenv("DOCKER_CONFIG")}
	code, err := d.run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error response from daemon:", err)
		code = 1
	}
	os.Exit(code)
}

type docker struct{ state string }

func (d *docker) run(args []string) (code int, err error) {
	if d.state == "" {
		return 0, errors.New("DOCKER_CONFIG is missing in the environment")
	}
	if len(args) == 0 {
		return 0, errors.New("no command")
	}
	name := args[0]
	known, ok := flags[name]
	if !ok {
		return 0, fmt.Errorf("docker: %q is not a docker command", name)
	}
	given, rest, err := parse(known, args[1:])
	if err != nil {
		return 0, err
	}
	switch name {
	case "info":
		fmt.Println(`["name=seccomp,profile=default"]`)
	case "ps":
		return 0, d.list(given)
	case "create":
		return 0, d.create(given, rest)
	case "start":
		return d.start(given, rest)
	case "inspect":
		return 0, d.inspect(rest)
	case "rm":
		return 0, d.remove(rest)
	}
	return 0, nil
}

// flags has the flags of each command that this package knows. The value says whether a flag takes one.
var flags = map[string]map[string]bool{
	"info":    {"format": true},
	"ps":      {"all": false, "quiet": false, "no-trunc": false, "filter": true},
	"inspect": {"type": true, "format": true},
	"rm":      {"force": false, "volumes": false},
	"start":   {"attach": false, "interactive": false},
	"create": {
		"name": true, "label": true, "pull": true, "network": true, "init": false, "read-only": false, "user": true,
		"cap-drop": true, "security-opt": true, "log-driver": true, "no-healthcheck": false, "hostname": true,
		"memory": true, "memory-swap": true, "pids-limit": true, "oom-score-adj": true, "ulimit": true, "tmpfs": true,
		"workdir": true, "interactive": false, "env-file": true, "env": true, "mount": true, "entrypoint": true,
	},
}

// parse returns the flags of args, and what follows them.
func parse(known map[string]bool, args []string) (given map[string][]string, rest []string, err error) {
	given = map[string][]string{}
	for len(args) > 0 {
		name, isFlag := strings.CutPrefix(args[0], "--")
		if !isFlag {
			return given, args, nil
		}
		args = args[1:]
		if name == "" { // "--"
			return given, args, nil
		}
		takes, ok := known[name]
		if !ok {
			return nil, nil, fmt.Errorf("unknown flag: --%s", name)
		}
		value := "true"
		if takes {
			if len(args) == 0 {
				return nil, nil, fmt.Errorf("flag needs an argument: --%s", name)
			}
			value = args[0]
			args = args[1:]
		}
		given[name] = append(given[name], value)
	}
	return given, nil, nil
}

func (d *docker) file(name string) string { return filepath.Join(d.state, name+".json") }

func (d *docker) list(given map[string][]string) error {
	files, err := filepath.Glob(d.file("*"))
	if err != nil {
		return err
	}
	for _, file := range files {
		c, err := read(file)
		if err != nil {
			return err
		}
		has := func(filter string) bool {
			return slices.Contains(c.Flags["label"], strings.TrimPrefix(filter, "label="))
		}
		if slices.ContainsFunc(given["filter"], has) {
			fmt.Println(c.Name)
		}
	}
	return nil
}

var (
	isName   = regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]+$`)
	isUlimit = regexp.MustCompile(`^[a-z]+=[0-9]+(:[0-9]+)?$`)
	isNumber = regexp.MustCompile(`^[0-9]+$`)
)

func (d *docker) create(given map[string][]string, rest []string) error {
	if len(rest) == 0 {
		return errors.New(`"docker create" requires at least 1 argument`)
	}
	c := Container{Name: given["name"][0], Image: rest[0], Flags: given, CLI: map[string][]string{"create": os.Environ()}}
	if c.Image != Image {
		return fmt.Errorf("No such image: %s", c.Image) //nolint:staticcheck // Docker's words
	}
	if !isName.MatchString(c.Name) {
		return fmt.Errorf("Invalid container name (%s)", c.Name) //nolint:staticcheck // Docker's words
	}
	for _, limit := range given["ulimit"] {
		if !isUlimit.MatchString(limit) {
			return fmt.Errorf("invalid ulimit argument: %s", limit)
		}
	}
	for _, name := range []string{"memory", "memory-swap", "pids-limit", "oom-score-adj"} {
		for _, value := range given[name] {
			if !isNumber.MatchString(value) {
				return fmt.Errorf("invalid argument %q for --%s", value, name)
			}
		}
	}
	if err := checkMounts(given["mount"]); err != nil {
		return err
	}
	if err := c.readEnviron(); err != nil {
		return err
	}
	c.Args = append(slices.Clone(given["entrypoint"]), rest[1:]...)
	return write(d.state, c)
}

// checkMounts does with values of --mount what Docker does.
func checkMounts(values []string) error {
	targets := map[string]bool{}
	for _, value := range values {
		fields, err := csv.NewReader(strings.NewReader(value)).Read()
		if err != nil {
			return fmt.Errorf("invalid argument %q for --mount: %w", value, err)
		}
		parts := map[string]string{}
		for _, field := range fields {
			key, value, hasValue := strings.Cut(field, "=")
			if !slices.Contains([]string{"type", "source", "target", "readonly"}, key) || hasValue == (key == "readonly") {
				return fmt.Errorf("unexpected key %q in %q", key, field)
			}
			parts[key] = value
		}
		if _, err := os.Lstat(parts["source"]); err != nil {
			return fmt.Errorf("invalid mount config for type %q: bind source path does not exist: %s", parts["type"], parts["source"])
		}
		if !filepath.IsAbs(parts["target"]) || targets[parts["target"]] {
			return fmt.Errorf("Duplicate mount point: %s", parts["target"]) //nolint:staticcheck // Docker's words
		}
		targets[parts["target"]] = true
	}
	return nil
}

// mounted returns the arguments of the program. There is no container in which a file of /run could be: where one is
// named, it is that of this machine.
func (c Container) mounted() []string {
	args := slices.Clone(c.Args)
	for _, value := range c.Flags["mount"] {
		source, target, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(value, "type=bind,source="), ",readonly"), ",target=")
		if !strings.HasPrefix(target, "/run/") {
			continue
		}
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], target, source)
		}
	}
	return args
}

// readEnviron makes the environment of the program.
func (c *Container) readEnviron() error {
	for _, name := range c.Flags["env-file"] {
		file, err := os.Open(name)
		if err != nil {
			return err
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			if line := strings.TrimLeft(lines.Text(), " \t"); line != "" && line[0] != '#' {
				c.Environ = append(c.Environ, line)
			}
		}
	}
	for _, variable := range c.Flags["env"] {
		if !strings.Contains(variable, "=") {
			return fmt.Errorf("%s would be taken from the environment of docker", variable)
		}
		c.Environ = append(c.Environ, variable)
	}
	return nil
}

func (d *docker) start(given map[string][]string, rest []string) (code int, err error) {
	unlock, err := d.lock()
	if err != nil {
		return 0, err
	}
	defer func() { unlock() }()
	c, err := read(d.file(rest[0]))
	if err != nil {
		return 0, fmt.Errorf("No such container: %s", rest[0]) //nolint:staticcheck // Docker's words
	}
	c.CLI["start"] = os.Environ()
	c.State.StartedAt = time.Now()
	args := c.mounted()
	cmd := exec.Command(args[0], args[1:]...) //nolint:noctx // remove ends it
	cmd.Env = c.Environ
	cmd.Dir = c.Flags["workdir"][0]
	if given["interactive"] != nil && c.Flags["interactive"] != nil {
		cmd.Stdin = os.Stdin
	}
	cmd.Stdout = os.Stdout
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it does not end with this command
	if err := cmd.Start(); err != nil {
		c.State.ExitCode = 127
		fmt.Fprintf(os.Stderr, "[FATAL tini (7)] exec %s failed: No such file or directory\n", c.Args[0])
		return 127, write(d.state, c)
	}
	c.PID = cmd.Process.Pid
	if err := write(d.state, c); err != nil {
		return 0, err
	}
	unlock()
	_ = cmd.Wait()
	if unlock, err = d.lock(); err != nil {
		return 0, err
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	c.State.ExitCode = status.ExitStatus()
	if status.Signaled() {
		c.State.ExitCode = 128 + int(status.Signal())
	}
	if _, err := os.Lstat(d.file(c.Name)); err != nil {
		return c.State.ExitCode, nil // removed meanwhile
	}
	return c.State.ExitCode, write(d.state, c)
}

func (d *docker) inspect(rest []string) error {
	c, err := read(d.file(rest[0]))
	if err != nil {
		return fmt.Errorf("No such container: %s", rest[0]) //nolint:staticcheck // Docker's words
	}
	c.State.OOMKilled = slices.Contains(c.Environ, "TEST_OOM=1")
	text, err := json.Marshal(c.State)
	fmt.Println(string(text))
	return err
}

func (d *docker) remove(names []string) error {
	unlock, err := d.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for _, name := range names {
		c, err := read(d.file(name))
		if err != nil {
			return fmt.Errorf("No such container: %s", name) //nolint:staticcheck // Docker's words
		}
		if c.PID > 0 {
			_ = syscall.Kill(-c.PID, syscall.SIGKILL)
		}
		maps.Copy(c.CLI, map[string][]string{"rm": os.Environ()})
		removed := filepath.Join(d.state, "removed")
		if err := errors.Join(os.MkdirAll(removed, 0o700), write(removed, c), os.Remove(d.file(name))); err != nil {
			return err
		}
	}
	return nil
}
