package sandbox

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"early.parley"
)

// cgroupPrefix begins the names of cgroups of programs. The number of the process that made it
// follows, so that what a killed Parley left behind can be told.
const cgroupPrefix = "parley-"

// cgroupName returns the name of a new cgroup.
func cgroupName() string {
	return cgroupPrefix + strconv.Itoa(os.Getpid()) + "-" + rand.Text()[:8]
}

// cgroupPlaces are the folders in which this process can make cgroups; "" where it cannot. Machines
// with version 1 have a folder for each of the three, those with version 2 one for all.
type cgroupPlaces struct {
	kill   string // of version 2, where all processes of a cgroup can be ended at once
	pids   string
	memory string
}

// A cgroup has all processes of a run. The methods of a nil cgroup do nothing.
type cgroup struct {
	kept   []string // its folders, each once
	kill2  *os.File // the one with cgroup.kill; nil if there is none
	pids   string   // the one that limits processes; "" if none does
	memory string   // the one that limits memory; "" if none does
}

// newCgroup returns a cgroup with limits; nil if none can be made in which all processes can be
// found.
func (v *Supervisor) newCgroup(limits Limits) *cgroup {
	v.look.Do(func() {
		v.places = findCgroupPlaces()
		v.places.sweep()
	})
	g, err := v.places.open(limits)
	if err != nil {
		_ = g.remove()
		return nil
	}
	return g
}

// open makes a cgroup. If that fails, there may be a part of it.
func (c cgroupPlaces) open(limits Limits) (*cgroup, error) {
	if c.kill == "" && c.pids == "" {
		return nil, errors.ErrUnsupported
	}
	name := cgroupName()
	g := &cgroup{}
	in := func(place string) (string, error) {
		if place == "" {
			return "", nil
		}
		folder := filepath.Join(place, name)
		if slices.Contains(g.kept, folder) {
			return folder, nil
		}
		if err := os.Mkdir(folder, 0o755); err != nil {
			return "", err
		}
		g.kept = append(g.kept, folder)
		return folder, nil
	}
	unified, err := in(c.kill)
	if err != nil {
		return g, err
	}
	if unified != "" {
		fd, err := unix.Open(unified, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return g, os.NewSyscallError("open", err)
		}
		g.kill2 = os.NewFile(uintptr(fd), unified)
	}
	if g.pids, err = in(c.pids); err != nil {
		return g, err
	}
	if g.memory, err = in(c.memory); err != nil {
		return g, err
	}
	return g, g.limit(limits)
}

// limit sets the limits that g can set.
func (g *cgroup) limit(limits Limits) error {
	if g.pids != "" {
		most := strconv.Itoa(limits.Processes + spareThreads)
		if err := writeFile(filepath.Join(g.pids, "pids.max"), most); err != nil {
			return err
		}
	}
	if g.memory == "" {
		return nil
	}
	bytes := strconv.FormatInt(limits.Memory, 10)
	err := writeFile(filepath.Join(g.memory, "memory.max"), bytes)
	if errors.Is(err, fs.ErrNotExist) { // version 1
		return writeFile(filepath.Join(g.memory, "memory.limit_in_bytes"), bytes)
	}
	_ = writeFile(filepath.Join(g.memory, "memory.swap.max"), "0") // there may be no swap
	_ = writeFile(filepath.Join(g.memory, "memory.oom.group"), "1")
	return err
}

// bear starts a process by calling start with attributes, so that it is born in g. To move a process there
// takes the kernel up to 20 ms. With version 1 only a thread can be moved without delay, by itself, and
// what it starts is born where it is.
func (g *cgroup) bear(attributes *syscall.SysProcAttr, start func() (*os.Process, error)) (*os.Process, error) {
	if g == nil {
		return start()
	}
	runtime.LockOSThread()
	older := g.older()
	var places []string // where this thread is otherwise
	for _, folder := range older {
		places = append(places, filepath.Dir(folder))
	}
	defer func() {
		if moveThread(places) != nil {
			return // and the thread ends with this goroutine
		}
		runtime.UnlockOSThread()
	}()
	if err := moveThread(older); err != nil {
		return nil, err
	}
	return g.bearUnified(attributes, start)
}

// moveThread moves this thread into folders, each of a hierarchy of version 1.
func moveThread(folders []string) error {
	var all error
	for _, folder := range folders {
		all = errors.Join(all, writeFile(filepath.Join(folder, "tasks"), "0"))
	}
	if all != nil {
		return fmt.Errorf("enter a cgroup: %w", all)
	}
	return nil
}

// bearUnified has a process be born in the folder of g that is of version 2. Where that is forbidden, as
// in some containers, it is moved.
func (g *cgroup) bearUnified(attributes *syscall.SysProcAttr, start func() (*os.Process, error)) (*os.Process, error) {
	if g.kill2 == nil {
		return start()
	}
	attributes.UseCgroupFD = true
	attributes.CgroupFD = int(g.kill2.Fd())
	p, err := start()
	if !errors.Is(err, syscall.ENOSYS) && !errors.Is(err, syscall.EPERM) {
		return p, err
	}
	attributes.UseCgroupFD = false
	if p, err = start(); err != nil {
		return nil, err
	}
	if err := writeFile(filepath.Join(g.kill2.Name(), "cgroup.procs"), strconv.Itoa(p.Pid)); err != nil {
		_ = p.Kill()
		_, _ = p.Wait()
		return nil, fmt.Errorf("enter a cgroup: %w", err)
	}
	return p, nil
}

// older returns the folders of g that are of version 1.
func (g *cgroup) older() []string {
	if g.kill2 == nil {
		return g.kept
	}
	return g.kept[1:]
}

func (g *cgroup) limitsMemory() bool { return g != nil && g.memory != "" }

func (g *cgroup) limitsProcesses() bool { return g != nil && g.pids != "" }

// exceeded reports whether the kernel refused a process or ended one for want of memory.
func (g *cgroup) exceeded() bool {
	if g == nil {
		return false
	}
	return g.pids != "" && counter(filepath.Join(g.pids, "pids.events"), "max") > 0 ||
		g.memory != "" && counter(filepath.Join(g.memory, "memory.events"), "oom_kill") > 0 ||
		g.memory != "" && counter(filepath.Join(g.memory, "memory.oom_control"), "oom_kill") > 0
}

// kill ends all processes of g, and waits until they are gone.
func (g *cgroup) kill() error {
	alive := g.processes()
	if len(alive) == 0 {
		return nil
	}
	if g.kill2 == nil || writeFile(filepath.Join(g.kill2.Name(), "cgroup.kill"), "1") != nil {
		// Without new processes, those that there are can be ended one by one.
		if err := writeFile(filepath.Join(g.pids, "pids.max"), "0"); err != nil {
			return err
		}
	}
	pause := 50 * time.Microsecond
	for deadline := time.Now().Add(early.EndTimeout); len(alive) > 0; alive = g.processes() {
		for _, pid := range alive {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		if time.Now().After(deadline) {
			return early.ErrAlive
		}
		time.Sleep(pause)
		pause = min(2*pause, 5*time.Millisecond)
	}
	return nil
}

// processes returns the processes of g that are alive. One that is in another pid namespace, and has no
// number in that of Parley, is shown as 0, which for kill is Parley's own process group. Parley itself is
// never one of them, though a thread of it may be in g for a moment.
func (g *cgroup) processes() []int {
	var all []int
	for _, folder := range g.kept {
		data, _ := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
		for _, field := range strings.Fields(string(data)) {
			pid, err := strconv.Atoi(field)
			if err != nil || pid <= 0 || pid == os.Getpid() || slices.Contains(all, pid) {
				continue
			}
			all = append(all, pid)
		}
	}
	return all
}

// remove removes g, which has no processes any more.
func (g *cgroup) remove() error {
	if g == nil {
		return nil
	}
	closeAll(g.kill2)
	var all error
	for _, folder := range g.kept {
		all = errors.Join(all, removeCgroup(folder))
	}
	return all
}

// removeCgroup removes a folder. The kernel may need a moment after the end of a process.
func removeCgroup(folder string) error {
	pause := 50 * time.Microsecond
	for deadline := time.Now().Add(early.EndTimeout); ; time.Sleep(pause) {
		pause = min(2*pause, 5*time.Millisecond)
		err := syscall.Rmdir(folder)
		if err == nil || errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(deadline) {
			return fmt.Errorf("remove cgroup %s: %w", folder, err)
		}
	}
}

// sweep ends and removes what a Parley that was killed has left behind.
func (c cgroupPlaces) sweep() {
	places := []string{c.kill, c.pids, c.memory}
	for _, place := range slices.Compact(places) {
		if place == "" {
			continue
		}
		folders, _ := filepath.Glob(filepath.Join(place, cgroupPrefix+"*-*"))
		for _, folder := range folders {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(folder), cgroupPrefix), "-")
			owner, err := strconv.Atoi(number)
			if err != nil || syscall.Kill(owner, 0) == nil || owner == os.Getpid() {
				continue
			}
			left := cgroup{kept: []string{folder}}
			for _, pid := range left.processes() {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
			_ = syscall.Rmdir(folder) // if it is too early, the next start does it
		}
	}
}

// findCgroupPlaces finds out where this process can make cgroups, by making some.
func findCgroupPlaces() cgroupPlaces {
	var c cgroupPlaces
	mounts := cgroupMounts()
	own, err := readOwnCgroups()
	if err != nil {
		return c
	}
	for line := range strings.Lines(string(own)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, path, _ := strings.Cut(rest, ":")
		for _, controller := range strings.Split(controllers, ",") {
			mount, mounted := mounts[controller]
			if !mounted {
				continue
			}
			folder := filepath.Join(mount.folder, strings.TrimPrefix(path, strings.TrimSuffix(mount.root, "/")))
			switch controller {
			case "":
				c.useUnified(folder, mount.folder)
			case "pids":
				c.pids = usable(folder, "pids.max", c.pids)
			case "memory":
				c.memory = usable(folder, "memory.limit_in_bytes", c.memory)
			}
		}
	}
	return c
}

// readOwnCgroups returns what /proc says of the cgroups that this process is in. /proc/self is about its first
// thread, which may be in the cgroup of a program for a moment (see bear). This thread is not: bear keeps to
// itself the thread that it moves.
func readOwnCgroups() ([]byte, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	return os.ReadFile("/proc/thread-self/cgroup")
}

// useUnified finds out what a folder of version 2 can be used for. A cgroup with processes in it cannot
// pass on controllers. So systemd's DelegateSubgroup puts a service into a cgroup below its own, and
// then the one above is used.
func (c *cgroupPlaces) useUnified(folder, top string) {
	unit := slices.Contains([]string{".service", ".scope", ".slice"}, filepath.Ext(folder))
	if above := filepath.Dir(folder); !unit && folder != top && usable(above, "cgroup.kill", "") != "" {
		folder = above
	}
	if c.kill = usable(folder, "cgroup.kill", ""); c.kill == "" {
		return
	}
	for _, controller := range []string{"+pids", "+memory"} {
		_ = writeFile(filepath.Join(folder, "cgroup.subtree_control"), controller) // usable tells
	}
	c.pids = usable(folder, "pids.max", c.pids)
	c.memory = usable(folder, "memory.max", c.memory)
}

// usable returns folder if a cgroup that is made in it has the file; if not, it returns otherwise.
func usable(folder, file, otherwise string) string {
	probe := filepath.Join(folder, cgroupName())
	if os.Mkdir(probe, 0o755) != nil {
		return otherwise
	}
	defer func() { _ = syscall.Rmdir(probe) }()
	f, err := os.OpenFile(filepath.Join(probe, file), os.O_WRONLY, 0)
	if err != nil {
		return otherwise
	}
	_ = f.Close()
	return folder
}

// A cgroupMount is a file system of cgroups: which part of it is mounted, and where.
type cgroupMount struct{ root, folder string }

// cgroupMounts returns what is mounted, by controller; version 2 is "".
func cgroupMounts() map[string]cgroupMount {
	mounts := map[string]cgroupMount{}
	file, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return mounts
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		before, after, _ := strings.Cut(lines.Text(), " - ")
		where, what := strings.Fields(before), strings.Fields(after)
		if len(where) < 5 || len(what) < 3 {
			continue
		}
		mount := cgroupMount{root: where[3], folder: where[4]}
		switch what[0] {
		case "cgroup2":
			mounts[""] = mount
		case "cgroup":
			for _, option := range strings.Split(what[2], ",") {
				mounts[option] = mount
			}
		}
	}
	return mounts
}

// counter returns the number that follows name in a file of the kernel.
func counter(file, name string) int {
	data, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		if value, found := strings.CutPrefix(line, name+" "); found {
			n, _ := strconv.Atoi(strings.TrimSpace(value))
			return n
		}
	}
	return 0
}

// writeFile writes to a file of the kernel, which it does not make. Such files cannot be waited for, and
// package os would try.
func writeFile(name, value string) error {
	fd, err := unix.Open(name, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: name, Err: err}
	}
	_, err = unix.Write(fd, []byte(value))
	if err = errors.Join(err, unix.Close(fd)); err != nil {
		return &fs.PathError{Op: "write", Path: name, Err: err}
	}
	return nil
}
