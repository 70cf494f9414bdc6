package sandbox

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"early.parley"
)

// A program is born in its cgroup, and no thread of Parley stays there.
func TestBornInCgroup(t *testing.T) {
	v := &Supervisor{}
	if g := v.newCgroup(Limits{}.WithDefaults()); g == nil {
		t.Skip("this process can make no cgroups")
	} else if err := g.remove(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	spec := Spec{Args: []string{"program"}, Stdout: &out}
	o, err := v.Run(t.Context(), spec, Command{Args: []string{"/bin/cat", "/proc/self/cgroup"}, Dir: "/", Env: []string{}})
	if err != nil || o.Exit != 0 {
		t.Fatal(o, err)
	}
	for _, place := range []string{v.places.kill, v.places.pids, v.places.memory} {
		if place != "" && !strings.Contains(out.String(), filepath.Base(place)+"/"+cgroupPrefix) &&
			!strings.Contains(out.String(), ":/"+cgroupPrefix) {
			t.Errorf("of %s there is no cgroup in\n%s", place, out.String())
		}
	}
	threads, err := filepath.Glob("/proc/self/task/*/cgroup")
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if data, _ := os.ReadFile(thread); bytes.Contains(data, []byte(cgroupPrefix)) {
			t.Errorf("%s is in\n%s", thread, data)
		}
	}
}

// Where this process can make cgroups does not depend on which thread has a program born in one just then,
// not even if it is the first.
func TestPlacesWhileProgramsAreBorn(t *testing.T) {
	want := findCgroupPlaces()
	if want.pids == want.kill {
		t.Skip("there are no cgroups of version 1, for which threads move")
	}
	var v Supervisor
	found := make(chan cgroupPlaces)
	done := make(chan struct{})
	begin := func() {
		g := v.newCgroup(Limits{}.WithDefaults())
		_, err := g.bear(&syscall.SysProcAttr{}, func() (*os.Process, error) {
			if unix.Gettid() == os.Getpid() {
				go func() { found <- findCgroupPlaces() }()
			}
			<-done
			return nil, nil
		})
		if err := errors.Join(err, g.remove()); err != nil {
			t.Error(err)
		}
	}
	check := func() {
		if got := <-found; got != want {
			t.Errorf("found %+v, want %+v", got, want)
		}
		close(done)
	}
	var births sync.WaitGroup
	defer births.Wait()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if unix.Gettid() == os.Getpid() {
		births.Go(check)
		begin()
		return
	}
	births.Go(check)
	for { // all keep their threads: one of them is the first
		select {
		case <-done:
			return
		case <-time.After(time.Millisecond):
			births.Go(begin)
		}
	}
}

// A command of a namespace can tell by its gate when its limits are set.
func TestGateOfNamespace(t *testing.T) {
	const script = `cat <&3; ulimit -f; echo '{"child-pid": 999999999} {"exit-code": 0}' >&4`
	var out bytes.Buffer
	spec := Spec{Args: []string{"program"}, Stdout: &out, Limits: Limits{FileSize: 512 << 10}}
	var v Supervisor
	o, err := v.Run(t.Context(), spec, Command{
		Args: []string{"/bin/sh", "-c", script}, Dir: "/", Env: []string{}, Kind: Namespace,
	})
	if err != nil || o.End != Exited || out.String() != "1024\n" {
		t.Errorf("it ended with %+v, %v and wrote %q", o, err, out.String())
	}
}

// A command whose limits cannot be set does nothing, although its gate is closed.
func TestAbandonedAtGate(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ran")
	for range 20 {
		read, write, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		p := &process{exited: make(chan struct{})}
		c := Command{Args: []string{"/bin/sh", "-c", `read x <&3; : >"$0"`, file}, Dir: "/", Env: []string{}, Kind: Namespace}
		if err := p.spawn(c, []*os.File{nil, nil, nil, read}); err != nil {
			t.Fatal(err)
		}
		read.Close()
		p.tree.Root = p.handle.Pid
		if err := p.abandon(write, nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("it went through its gate")
	}
}

// What a Parley that was killed left of its cgroups is removed, also while it found out where it can make
// some.
func TestSweepOfProbes(t *testing.T) {
	place := t.TempDir()
	gone := exec.CommandContext(t.Context(), "true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	own := strconv.Itoa(os.Getpid())
	left := strings.Replace(cgroupName(), own, strconv.Itoa(gone.Process.Pid), 1)
	for _, name := range []string{left, cgroupName()} {
		if err := os.Mkdir(filepath.Join(place, name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cgroupPlaces{pids: place}.sweep()
	entries, err := os.ReadDir(place)
	if err != nil || len(entries) != 1 || !strings.Contains(entries[0].Name(), own) {
		t.Errorf("there are %v, %v", entries, err)
	}
	if usable(place, "pids.max", "") != "" {
		t.Error("a folder without pids.max is usable")
	}
}

// Where nothing keeps a program from making processes, it is found out at once that it has too many, and
// not taken for another that has.
func TestCrowd(t *testing.T) {
	limits := Limits{Processes: 5}
	p := &process{tree: early.Tree{Root: os.Getpid(), Below: true}, allThreads: countThreads()}
	other := &process{tree: early.Tree{Root: 1 << 30}, allThreads: countThreads()}
	if p.crowds(limits) {
		t.Error("it has none yet")
	}
	for range limits.Processes + spareThreads + 1 {
		start(t, "sleep", "60")
	}
	p.allThreads = 0 // what else ends on the machine meanwhile is no reason not to look
	other.allThreads = 0
	if !p.crowds(limits) {
		t.Error("it has too many")
	}
	if other.crowds(limits) {
		t.Error("the other has none")
	}
}

func start(t *testing.T, name string, args ...string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	c := exec.CommandContext(ctx, name, args...)
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.Wait()
	})
}
