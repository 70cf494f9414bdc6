package early

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
	"time"
)

// A Tree is a process with all that descends from it, as far as /proc tells. What was seen once is
// remembered: its parent may end before it.
type Tree struct {
	Root  int
	Below bool           // Root itself and its session do not belong to it
	known map[int]uint64 // the processes that were seen, and when they started
}

// A stat is what /proc says of one process.
type stat struct {
	pid, parent, group, session int
	zombie                      bool
	threads                     int
	started                     uint64
}

// find returns the processes of t that are alive.
func (t *Tree) find() []stat {
	if t.known == nil {
		t.known = map[int]uint64{}
	}
	all := readStats()
	within := map[int]bool{}
	for pid, s := range all {
		started, seen := t.known[pid]
		own := pid == t.Root || s.session == t.Root && !t.Below
		within[pid] = own || seen && started == s.started
	}
	for grown := true; grown; {
		grown = false
		for pid, s := range all {
			if !within[pid] && within[s.parent] {
				within[pid] = true
				grown = true
			}
		}
	}
	var alive []stat
	for pid, is := range within {
		if !is || t.Below && pid == t.Root {
			continue
		}
		t.known[pid] = all[pid].started
		if !all[pid].zombie {
			alive = append(alive, all[pid])
		}
	}
	return alive
}

// Sample returns how many threads the processes of t have, and how many bytes of memory.
func (t *Tree) Sample() (threads int, memory int64) {
	for _, s := range t.find() {
		threads += s.threads
		memory += ownMemory(s.pid)
	}
	return threads, memory
}

// CountThreads returns how many threads the processes of t have.
func (t *Tree) CountThreads() int {
	threads := 0
	for _, s := range t.find() {
		threads += s.threads
	}
	return threads
}

// Kill ends all processes of t.
func (t *Tree) Kill() error {
	for deadline := time.Now().Add(EndTimeout); t.sweep() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			return ErrAlive
		}
	}
	return nil
}

// sweep kills the processes of t and returns how many it found. It stops them first: of processes that
// fork all the time, one could otherwise get away.
func (t *Tree) sweep() int {
	stopped := 0
	for range 20 {
		alive := t.find()
		stop(alive)
		if len(alive) == stopped {
			break
		}
		stopped = len(alive)
	}
	alive := t.find()
	for _, s := range alive {
		_ = syscall.Kill(s.pid, syscall.SIGKILL)
	}
	return len(alive)
}

// stop stops processes, and all of their groups: the kernel stops a group at once, so that those that
// fork faster than one can look at them are stopped, too. A group is in one session, and no program
// that was started in a session of its own can be in that of this process.
func stop(alive []stat) {
	own, err := sessionOf(0)
	groups := map[int]bool{}
	for _, s := range alive {
		if err == 0 && s.group > 1 && s.session != own {
			groups[s.group] = true
		}
	}
	for group := range groups {
		_ = syscall.Kill(-group, syscall.SIGSTOP)
	}
	for _, s := range alive {
		if !groups[s.group] {
			_ = syscall.Kill(s.pid, syscall.SIGSTOP)
		}
	}
}

// sessionOf returns the session of a process; 0 is this one.
func sessionOf(pid int) (int, syscall.Errno) {
	session, _, err := syscall.RawSyscall(syscall.SYS_GETSID, uintptr(pid), 0, 0)
	return int(session), err
}

// readStats returns all processes that /proc shows.
func readStats() map[int]stat {
	all := map[int]stat{}
	folder, err := os.Open("/proc")
	if err != nil {
		return all
	}
	defer folder.Close()
	names, _ := folder.Readdirnames(-1)
	for _, name := range names {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if s, ok := readStat(pid); ok {
			all[pid] = s
		}
	}
	return all
}

// The fields of /proc/PID/stat after the name of the program.
const (
	statState   = 0
	statParent  = 1
	statGroup   = 2
	statSession = 3
	statThreads = 17
	statStarted = 19
)

// readStat returns what /proc says of a process.
func readStat(pid int) (stat, bool) {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return stat{}, false
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:]) // the name may have spaces
	if len(fields) <= statStarted {
		return stat{}, false
	}
	number := func(field int) int {
		n, _ := strconv.Atoi(string(fields[field]))
		return n
	}
	started, _ := strconv.ParseUint(string(fields[statStarted]), 10, 64)
	state := fields[statState][0]
	return stat{
		pid: pid, parent: number(statParent), group: number(statGroup), session: number(statSession),
		zombie: state == 'Z' || state == 'X', threads: number(statThreads), started: started,
	}, true
}

// ownMemory returns the bytes of memory that a process has, without what it has of files.
func ownMemory(pid int) int64 {
	data, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0
	}
	var sum int64
	for line := range bytes.Lines(data) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		if string(name) == "RssAnon" || string(name) == "RssShmem" {
			kilobytes, _ := strconv.ParseInt(string(bytes.Fields(value)[0]), 10, 64)
			sum += kilobytes << 10
		}
	}
	return sum
}

// CountThreads returns how many threads the processes of a user have.
func CountThreads(uid int) int {
	total := 0
	for pid, s := range readStats() {
		var info syscall.Stat_t
		if syscall.Stat("/proc/"+strconv.Itoa(pid), &info) != nil || int(info.Uid) != uid {
			continue
		}
		total += s.threads
	}
	return total
}
