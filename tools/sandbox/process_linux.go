package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"early.parley"
)

// gate holds a Plain command back until its limits are set, and ends it if Parley dies before. It is
// another program's work, because between fork and exec nothing of Go can run.
const gate = `read -r _ <&3 || exit 125; exec 3<&-; exec "$@"`

// oomScore has the kernel kill programs rather than Parley when memory is short.
const oomScore = "1000"

// A process is a command that runs, and all that it started.
type process struct {
	handle *os.Process
	exited chan struct{} // closed when it has ended
	state  *os.ProcessState

	group    *cgroup    // nil if none can be made
	tell     *status    // of a Namespace command; else nil
	lifeline *os.File   // of a Reaper command; else nil
	tree     early.Tree // the processes that were seen

	userThreads func() int // how many threads this user has
	allThreads  int        // how many the machine had
}

// A status is what a Namespace command tells about itself.
type status struct {
	done chan struct{} // closed when all has been told

	mu   sync.Mutex
	init *os.File // a pidfd of the first process of the namespace; nil if that is not known
	exit *int     // the exit code of the program; nil if it did not run, or not to its end
}

// start starts c, with the standard files given, and sets its limits before it does anything.
func (v *Supervisor) start(c Command, files []*os.File, limits Limits) (_ *process, err error) {
	gateRead, gateWrite, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer closeAll(gateRead, gateWrite)
	count := func() int { return early.CountThreads(os.Getuid()) }
	p := &process{exited: make(chan struct{}), userThreads: func() int { return v.threads.get(count) }}
	var fourth, ours *os.File
	switch c.Kind {
	case Namespace:
		ours, fourth, err = os.Pipe()
	case Reaper:
		fourth, ours, err = os.Pipe()
		p.lifeline = ours
	}
	if err != nil {
		return nil, err
	}
	defer func() { closeAll(fourth) }()
	p.group = v.newCgroup(limits)
	if err := p.spawn(c, append(append(files[:len(files):len(files)], gateRead, fourth), c.Files...)); err != nil {
		closeAll(ours)
		return nil, errors.Join(err, p.group.remove())
	}
	if c.Kind == Namespace {
		p.tell = &status{done: make(chan struct{})}
		go p.tell.read(ours)
	}
	p.tree.Root = p.handle.Pid
	if err := p.confine(limits); err != nil {
		return nil, errors.Join(err, p.abandon(gateWrite, fourth))
	}
	if c.Kind != Namespace { // for which the end of the gate is enough
		if _, err := gateWrite.WriteString("\n"); err != nil {
			return nil, errors.Join(err, p.abandon(gateWrite, fourth))
		}
	}
	return p, nil
}

// abandon ends p, which waits at its gate, and closes the gate and what else Parley has of p's files. To
// close the gate can open it, so p is killed first.
func (p *process) abandon(gate, fourth *os.File) error {
	_ = p.handle.Kill() // if it has ended, so much the better
	closeAll(gate, fourth)
	return p.end()
}

// spawn starts c, or the gate before it, in a session of its own. It keeps the thread that did for as long as
// the process lives: PDEATHSIG is about the thread.
func (p *process) spawn(c Command, files []*os.File) error {
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		path := c.Args[0]
		args := c.Args
		if c.Kind == Plain { // the others are gates themselves
			path = "/bin/sh"
			args = append([]string{"sh", "-c", gate, "sh"}, c.Args...)
		}
		attributes := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL}
		handle, err := p.group.bear(attributes, func() (*os.Process, error) {
			return os.StartProcess(path, args, &os.ProcAttr{Dir: c.Dir, Env: c.Env, Files: files, Sys: attributes})
		})
		if err != nil {
			started <- err
			return
		}
		p.handle = handle
		started <- nil
		p.state, _ = handle.Wait()
		close(p.exited)
	}()
	return <-started
}

// confine sets the limits of p, which waits at its gate.
func (p *process) confine(limits Limits) error {
	pid := p.handle.Pid
	file := "/proc/" + strconv.Itoa(pid) + "/oom_score_adj"
	if err := writeFile(file, oomScore); err != nil {
		return err
	}
	if p.lifeline == nil { // a reaper does it for the program only
		_ = unix.Setpriority(unix.PRIO_PROCESS, pid, early.Niceness)
	}
	p.allThreads = countThreads()
	seconds := uint64((limits.CPU + time.Second - 1) / time.Second)
	list := map[int]unix.Rlimit{
		unix.RLIMIT_CORE:  {},
		unix.RLIMIT_CPU:   {Cur: seconds, Max: seconds + 1},
		unix.RLIMIT_FSIZE: {Cur: uint64(limits.FileSize), Max: uint64(limits.FileSize)},
	}
	if !p.group.limitsMemory() {
		list[unix.RLIMIT_DATA] = unix.Rlimit{Cur: uint64(limits.Memory), Max: uint64(limits.Memory)}
	}
	if !p.group.limitsProcesses() && os.Getuid() != 0 {
		// The kernel counts all processes of the user, so this is for the worst only: the tree is
		// counted, too.
		most := uint64(p.userThreads() + 2*limits.Processes)
		list[unix.RLIMIT_NPROC] = unix.Rlimit{Cur: most, Max: most}
	}
	for which, limit := range list {
		if p.lifeline != nil && (which == unix.RLIMIT_CPU || which == unix.RLIMIT_NPROC) {
			limit.Max = unix.RLIM_INFINITY // the reaper makes it definite: it must not end by it itself
		}
		if err := lowerLimit(pid, which, limit); err != nil {
			return fmt.Errorf("limit a program: %w", err)
		}
	}
	return nil
}

// lowerLimit sets one limit of a process, but none higher than the one it has.
func lowerLimit(pid, which int, limit unix.Rlimit) error {
	var old unix.Rlimit
	if err := unix.Prlimit(pid, which, nil, &old); err != nil {
		return err
	}
	limit.Max = min(limit.Max, old.Max)
	limit.Cur = min(limit.Cur, limit.Max)
	return unix.Prlimit(pid, which, &limit, nil)
}

// exceeded reports whether p has exceeded its limits of memory or processes.
func (p *process) exceeded(limits Limits) bool {
	if p.group.exceeded() {
		return true
	}
	if p.group.limitsMemory() && p.group.limitsProcesses() {
		return false
	}
	select {
	case <-p.exited:
		return false
	default:
	}
	threads, memory := p.tree.Sample()
	return !p.group.limitsProcesses() && threads > limits.Processes+spareThreads ||
		!p.group.limitsMemory() && memory > limits.Memory
}

// mayCrowd reports whether nothing keeps p from making so many processes that the machine stands still:
// there is no cgroup for it, and the kernel has no limit for processes of root.
func (p *process) mayCrowd() bool { return !p.group.limitsProcesses() && os.Getuid() == 0 }

// crowds reports whether p has more threads than it may. It looks at p, which takes much longer than to
// look at the machine, if the machine has so many more than before.
func (p *process) crowds(limits Limits) bool {
	now := countThreads()
	if now <= p.allThreads+limits.Processes {
		p.allThreads = min(p.allThreads, now)
		return false
	}
	p.allThreads = now
	return p.tree.CountThreads() > limits.Processes+spareThreads
}

// countThreads returns how many threads the machine has; 0 if that is not known.
func countThreads() int {
	load, _ := os.ReadFile("/proc/loadavg") // such as 0.20 0.18 0.12 1/80 11206
	_, rest, _ := strings.Cut(string(load), "/")
	total, _, _ := strings.Cut(rest, " ")
	n, _ := strconv.Atoi(total)
	return n
}

// spareThreads are those of drivers: bwrap and its reaper, or another's helper.
const spareThreads = 16

// end kills what is left of p, and waits until it is gone.
func (p *process) end() error {
	alive := p.killAll()
	closeAll(p.lifeline)
	if alive == nil || p.lifeline == nil { // or a reaper still has to do
		_ = p.handle.Kill() // if it has ended, that is what this says
	}
	select {
	case <-p.exited:
	case <-time.After(early.EndTimeout):
		alive = early.ErrAlive
	}
	if alive != nil {
		return errors.Join(alive, p.group.remove())
	}
	if p.tell != nil {
		<-p.tell.done
		closeAll(p.tell.first())
	}
	return p.group.remove()
}

// killAll ends everything that p started, by the surest ways there are. To wait for the first process of
// a namespace takes less time than to look until a cgroup is empty.
func (p *process) killAll() error {
	var namespace error
	if p.tell != nil {
		if first := p.tell.first(); first != nil {
			namespace = killAndWait(first)
		}
	}
	switch {
	case p.group != nil:
		return p.group.kill()
	case p.lifeline != nil:
		return p.awaitReaper()
	case p.tell != nil && p.tell.first() != nil:
		return namespace
	}
	return p.tree.Kill()
}

// awaitReaper has the reaper of p end everything that p started, and waits for that.
func (p *process) awaitReaper() error {
	closeAll(p.lifeline)
	select {
	case <-p.exited:
	case <-time.After(early.EndTimeout):
		return early.ErrAlive
	}
	if p.state == nil || p.state.ExitCode() >= 0 && p.state.ExitCode() != exitGoCrash { // it may be the program's
		return nil
	}
	p.tree.Root = -1 // that number may be another's by now
	return p.tree.Kill()
}

// exitGoCrash is the exit code of a Go program that the runtime ended.
const exitGoCrash = 2

// exitCode returns with which code the program ended, and whether it was started.
func (p *process) exitCode() (int, bool) {
	if p.tell != nil {
		p.tell.mu.Lock()
		defer p.tell.mu.Unlock()
		if p.tell.exit == nil {
			return 0, false
		}
		return *p.tell.exit, true
	}
	if p.state == nil {
		return 0, false
	}
	if wait, ok := p.state.Sys().(syscall.WaitStatus); ok && wait.Signaled() {
		return 128 + int(wait.Signal()), true
	}
	return p.state.ExitCode(), true
}

// read takes note of what r tells.
func (s *status) read(r *os.File) {
	defer close(s.done)
	defer r.Close()
	decoder := json.NewDecoder(io.LimitReader(r, 64<<10))
	for {
		var told struct {
			Init *int `json:"child-pid"`
			Exit *int `json:"exit-code"`
		}
		if decoder.Decode(&told) != nil {
			return
		}
		s.mu.Lock()
		if told.Init != nil && s.init == nil {
			s.init = openProcess(*told.Init)
		}
		if told.Exit != nil {
			s.exit = told.Exit
		}
		s.mu.Unlock()
	}
}

// first returns the first process of the namespace; nil if it is not known or has gone.
func (s *status) first() *os.File {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.init
}

// openProcess returns a pidfd; nil if there is no such process.
func openProcess(pid int) *os.File {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return nil
	}
	return os.NewFile(uintptr(fd), "pidfd")
}

// killAndWait ends the process that first refers to and waits for it. The first of a namespace is
// gone when all others are.
func killAndWait(first *os.File) error {
	_ = unix.PidfdSendSignal(int(first.Fd()), unix.SIGKILL, nil, 0) // it may have ended
	list := []unix.PollFd{{Fd: int32(first.Fd()), Events: unix.POLLIN}}
	for deadline := time.Now().Add(early.EndTimeout); ; {
		left := max(time.Until(deadline), 0) // poll would wait for ever
		n, err := unix.Poll(list, int(left.Milliseconds()))
		if n == 1 {
			return nil
		}
		if left == 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return early.ErrAlive
		}
	}
}

// closeAll closes those of files that there are.
func closeAll(files ...*os.File) {
	for _, f := range files {
		if f != nil {
			_ = f.Close()
		}
	}
}
