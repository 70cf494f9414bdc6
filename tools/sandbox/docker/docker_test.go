package docker

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/tools/sandbox"
	"parley/tools/sandbox/docker/dockertest"
)

// TestMain lets the test binary be the command docker.
func TestMain(m *testing.M) {
	dockertest.Main()
	os.Exit(m.Run())
}

func image() string { return dockertest.Image }

func newRunner(t *testing.T) (r *Runner, state string) {
	return &Runner{Image: image, Owner: "a test, of\" /x"}, dockertest.Install(t)
}

// How a program ended is told, and no container is left.
func TestOutcomes(t *testing.T) {
	r, state := newRunner(t)
	dir := t.TempDir()
	for _, c := range []struct {
		name string
		spec sandbox.Spec
		want sandbox.Outcome
		out  string
		errs string
	}{
		{name: "output", spec: sandbox.Spec{Args: []string{"sh", "-c", "echo out; echo err >&2; exit 3"}},
			want: sandbox.Outcome{End: sandbox.Exited, Exit: 3}, out: "out\n", errs: "err\n"},
		{name: "input", spec: sandbox.Spec{Args: []string{"cat"}, Stdin: strings.NewReader("in")}, want: sandbox.Outcome{End: sandbox.Exited}, out: "in"},
		{name: "no input", spec: sandbox.Spec{Args: []string{"cat"}}, want: sandbox.Outcome{End: sandbox.Exited}},
		{name: "signal", spec: sandbox.Spec{Args: []string{"sh", "-c", "kill -9 $$"}}, want: sandbox.Outcome{End: sandbox.Exited, Exit: 137}},
		{name: "CPU", spec: sandbox.Spec{Args: []string{"sh", "-c", "kill -XCPU $$"}}, want: sandbox.Outcome{End: sandbox.Exceeded, Exit: -1}},
		{name: "memory", spec: sandbox.Spec{Args: []string{"sh", "-c", "kill -9 $$"}, Env: map[string]string{"TEST_OOM": "1"}},
			want: sandbox.Outcome{End: sandbox.Exceeded, Exit: -1}},
		{name: "time", spec: sandbox.Spec{Args: []string{"sleep", "100"}, Limits: sandbox.Limits{Wall: time.Second}},
			want: sandbox.Outcome{End: sandbox.TimedOut, Exit: -1}},
		{name: "too much output", spec: sandbox.Spec{Args: []string{"sh", "-c", "head -c 100 /dev/zero | tr '\\0' x"}, Limits: sandbox.Limits{Output: 10}},
			want: sandbox.Outcome{End: sandbox.Exited, Dropped: 90}, out: "xxxxxxxxxx"},
		{name: "folder", spec: sandbox.Spec{Args: []string{"pwd"}, Dir: dir, Folders: []sandbox.Folder{{Path: dir, Access: sandbox.ReadWrite}}},
			want: sandbox.Outcome{End: sandbox.Exited}, out: dir + "\n"},
		{name: "127", spec: sandbox.Spec{Args: []string{"sh", "-c", "exit 127"}}, want: sandbox.Outcome{End: sandbox.Exited, Exit: 127}},
	} {
		var out, errs bytes.Buffer
		c.spec.Stdout = &out
		c.spec.Stderr = &errs
		got, err := r.Run(t.Context(), c.spec)
		got.Took = 0
		if err != nil || got.End != c.want.End || got.Exit != c.want.Exit || got.Dropped != c.want.Dropped || out.String() != c.out || errs.String() != c.errs {
			t.Errorf("%s: %+v %v, %q %q; want %+v, %q %q", c.name, got, err, out.String(), errs.String(), c.want, c.out, c.errs)
		}
	}
	if left := dockertest.Containers(t, state); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if _, err := os.Stat(filepath.Join(state, "removed")); err != nil {
		t.Error(err)
	}
}

// Both outputs to one writer keep their order.
func TestOneWriter(t *testing.T) {
	r, _ := newRunner(t)
	var both bytes.Buffer
	_, err := r.Run(t.Context(), sandbox.Spec{Args: []string{"sh", "-c", "echo 1; echo 2 >&2; echo 3"}, Stdout: &both, Stderr: &both})
	if err != nil || both.String() != "1\n2\n3\n" {
		t.Errorf("%q %v", both.String(), err)
	}
}

// Why a program did not run is an error.
func TestNotRun(t *testing.T) {
	r, state := newRunner(t)
	for _, c := range []struct {
		image string
		spec  sandbox.Spec
		is    error
		text  string
	}{
		{spec: sandbox.Spec{}, is: sandbox.ErrNoProgram},
		{spec: sandbox.Spec{Args: []string{""}}, is: sandbox.ErrNoProgram},
		{spec: sandbox.Spec{Args: []string{"nowhere"}}, is: sandbox.ErrNoProgram, text: "there is no such program as nowhere in the image debian:test"},
		{spec: sandbox.Spec{Args: []string{"true"}, Network: sandbox.Network{Hosts: []string{"pypi.org"}}}, is: sandbox.ErrHosts},
		{image: "missing:1", spec: sandbox.Spec{Args: []string{"true"}}, text: "create a container: docker create: Error response from daemon: No such image: missing:1"},
	} {
		one := &Runner{Image: r.Image, Owner: r.Owner}
		if c.image != "" {
			one.Image = func() string { return c.image }
		}
		_, err := one.Run(t.Context(), c.spec)
		if err == nil || c.is != nil && !errors.Is(err, c.is) || !strings.Contains(err.Error(), c.text) {
			t.Errorf("%v: %v, want %s", c.spec.Args, err, c.text)
		}
	}
	if left := dockertest.Containers(t, state); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	t.Setenv("PATH", t.TempDir())
	if _, err := (&Runner{}).Run(t.Context(), sandbox.Spec{Args: []string{"true"}}); err == nil || !strings.Contains(err.Error(), "find Docker") {
		t.Error(err)
	}
}

// A program that is cancelled ends, and its container with it.
func TestCancelled(t *testing.T) {
	r, state := newRunner(t)
	ctx, cancel := context.WithCancel(t.Context())
	begun := writerFunc(func([]byte) { cancel() })
	o, err := r.Run(ctx, sandbox.Spec{Args: []string{"sh", "-c", "trap '' TERM INT HUP; echo begun; sleep 100"}, Stdout: begun})
	if err != nil || o.End != sandbox.Cancelled {
		t.Errorf("%+v %v", o, err)
	}
	if left := dockertest.Containers(t, state); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
	if o, err := r.Run(ctx, sandbox.Spec{Args: []string{"true"}}); err != nil || o.End != sandbox.Cancelled {
		t.Errorf("with a context that has ended: %+v %v", o, err)
	}
	fresh := &Runner{Image: r.Image}
	if o, err := fresh.Run(ctx, sandbox.Spec{Args: []string{"true"}}); err != nil || o.End != sandbox.Cancelled {
		t.Errorf("before Docker was asked: %+v %v", o, err)
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}

// What a process that was killed has left is removed when the next one of the same owner begins, and nothing else.
func TestLeftContainers(t *testing.T) {
	r, state := newRunner(t)
	for name, owner := range map[string]string{"parley-a": r.Owner, "parley-b": r.Owner, "parley-c": "somebody else", "web": ""} {
		c := dockertest.Container{Name: name, CLI: map[string][]string{}, Flags: map[string][]string{"label": {label + "=" + owner}}}
		dockertest.Keep(t, state, c)
	}
	for range 2 {
		if _, err := r.Run(t.Context(), sandbox.Spec{Args: []string{"true"}}); err != nil {
			t.Fatal(err)
		}
	}
	left := dockertest.Containers(t, state)
	if len(left) != 2 || left[0].Name != "parley-c" || left[1].Name != "web" {
		t.Errorf("left: %+v", left)
	}
}

// R-S16, R-S17: what a container is made of.
func TestContainer(t *testing.T) {
	r, state := newRunner(t)
	t.Setenv("PARLEY_SECRET", "canary")
	t.Setenv("LD_PRELOAD_TEST", "canary")
	workspace := t.TempDir()
	for _, folder := range []string{"work", "hidden", "odd, \"name"} {
		if err := os.Mkdir(filepath.Join(workspace, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(workspace, "secret"), []byte("canary"), 0o600); err != nil {
		t.Fatal(err)
	}
	in := func(names ...string) string { return filepath.Join(append([]string{workspace}, names...)...) }
	_, err := r.Run(t.Context(), sandbox.Spec{
		Args: []string{"sh", "-c", "--", "x"}, Dir: in("work"),
		Env: map[string]string{"LD_PRELOAD": "/evil.so", "DOCKER_HOST": "evil", "TOKEN": "value-1"},
		Folders: []sandbox.Folder{
			{Path: in("work"), Access: sandbox.ReadWrite}, {Path: workspace, Access: sandbox.ReadOnly}, {Path: in("hidden")}, {Path: in("secret")},
			{Path: in("missing"), Access: sandbox.ReadWrite}, {Path: "/root"}, {Path: in("odd, \"name"), Access: sandbox.ReadWrite},
			{Path: in("work") + "/", Access: sandbox.ReadWrite},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := dockertest.Removed(t, state)[0]
	for name, want := range map[string]string{
		"network": "none", "read-only": "true", "init": "true", "cap-drop": "ALL", "security-opt": "no-new-privileges", "pull": "never",
		"memory": "1073741824", "memory-swap": "1073741824", "pids-limit": "256", "oom-score-adj": "1000", "workdir": in("work"),
		"ulimit": "core=0 fsize=1073741824 cpu=600:601", "label": label + "=" + r.Owner, "entrypoint": "sh", "env": "",
	} {
		if got := strings.Join(c.Flags[name], " "); got != want {
			t.Errorf("--%s %s, want %s", name, got, want)
		}
	}
	if want := []string{"sh", "-c", "--", "x"}; !slices.Equal(c.Args, want) {
		t.Errorf("runs %q", c.Args)
	}
	var mounts []string
	for _, m := range c.Flags["mount"] {
		mounts = append(mounts, strings.ReplaceAll(m, workspace, "W"))
	}
	all := strings.Join(mounts, "\n")
	for _, want := range []string{
		"^type=bind,source=W,target=W,readonly", "\ntype=bind,source=W/work,target=W/work\n", "/empty-folder,target=W/hidden,readonly",
		"/empty-file,target=W/secret,readonly", "\ntype=bind,\"source=W/odd, \"\"name\",\"target=W/odd, \"\"name\"$",
	} {
		if !strings.Contains("^"+all+"$", want) {
			t.Errorf("%s is missing in\n%s", want, all)
		}
	}
	if len(mounts) != 5 {
		t.Errorf("%d mounts, want 5:\n%s", len(mounts), all)
	}
	// The program has the environment of the Spec; docker itself has none of it, and the program none of Parley's.
	for _, want := range []string{"LD_PRELOAD=/evil.so", "DOCKER_HOST=evil", "TOKEN=value-1", "PAGER=cat", "HOME=/tmp"} {
		if !slices.Contains(c.Environ, want) {
			t.Errorf("%s is missing in %q", want, c.Environ)
		}
	}
	if text := strings.Join(c.Environ, " "); strings.Contains(text, "canary") {
		t.Error(text)
	}
	for command, environ := range c.CLI {
		text := strings.Join(environ, " ")
		if strings.Contains(text, "evil") || strings.Contains(text, "value-1") || strings.Contains(text, "canary") {
			t.Errorf("docker %s has %s", command, text)
		}
	}
	if len(c.CLI) != 3 {
		t.Errorf("the container was created, started and removed by %d commands", len(c.CLI))
	}
}

// R-S17: values of several lines reach the program as they are, and neither the arguments of docker, which other users
// can read, nor its environment.
func TestLinesInEnvironment(t *testing.T) {
	r, state := newRunner(t)
	values := map[string]string{"KEY": "BEGIN\n'canary' $(id) \\ \"x\"\r\nEND\n", "LD_DEBUG": "\ncanary", "ONE": "canary 1"}
	var out bytes.Buffer
	o, err := r.Run(t.Context(), sandbox.Spec{
		Args: []string{"sh", "-c", `printf '%s|' "$KEY" "$LD_DEBUG" "$ONE" "$HOME" "$@"; exit 3`, "sh", "an argument", "b"},
		Env:  values, Stdout: &out, Stdin: strings.NewReader("input"),
	})
	want := values["KEY"] + "|" + values["LD_DEBUG"] + "|canary 1|/tmp|an argument|b|"
	if err != nil || o.Exit != 3 || out.String() != want {
		t.Errorf("%+v, %v: %q, want %q", o, err, out.String(), want)
	}
	c := dockertest.Removed(t, state)[0]
	if given := fmt.Sprint(c.Flags, c.Args, c.CLI); strings.Contains(given, "canary") {
		t.Errorf("docker was given %s", given)
	}
	_, err = r.Run(t.Context(), sandbox.Spec{Args: []string{"true"}, Env: map[string]string{"a;id": "1\n2"}})
	if err == nil || !strings.Contains(err.Error(), "is no name of a variable") {
		t.Errorf("an odd name: %v", err)
	}
	if left := dockertest.Containers(t, state); len(left) > 0 {
		t.Errorf("left: %+v", left)
	}
}

// The whole network is the one of this machine.
func TestWholeNetwork(t *testing.T) {
	r, state := newRunner(t)
	_, err := r.Run(t.Context(), sandbox.Spec{Args: []string{"true"}, Network: sandbox.Network{All: true, Hosts: []string{"a.b"}}})
	if err != nil {
		t.Fatal(err)
	}
	if got := dockertest.Removed(t, state)[0].Flags["network"]; !slices.Equal(got, []string{"host"}) {
		t.Error(got)
	}
}

// The real command knows every flag: it complains of the daemon that is missing, and of nothing else.
func TestRealCommand(t *testing.T) {
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip(err)
	}
	t.Setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
	r := &Runner{program: "docker", user: "0:0"}
	c := &container{runner: r, image: dockertest.Image, folder: t.TempDir(), name: "parley-x", spec: sandbox.Spec{
		Args: []string{"true"}, Stdin: strings.NewReader("x"), Folders: []sandbox.Folder{{Path: t.TempDir(), Access: sandbox.ReadOnly}},
	}}
	args, err := c.createArgs()
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{args, {"start", "--attach", "--interactive", "x"}, {"rm", "--force", "--volumes", "x"}} {
		_, err := r.command(t.Context(), args...)
		if err == nil || !strings.Contains(err.Error(), "annot connect to the Docker daemon") && !strings.Contains(err.Error(), "failed to connect") {
			t.Errorf("%s: %v", args[0], err)
		}
	}
}
