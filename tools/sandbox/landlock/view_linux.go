package landlock

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
	"golang.org/x/sys/unix"

	"parley/tools/sandbox"
	"parley/workspace"
)

// What a rule allows.
const (
	fileRead = ll.AccessFSExecute | ll.AccessFSReadFile
	read     = fileRead | ll.AccessFSReadDir

	fileWrite = ll.AccessFSWriteFile | ll.AccessFSTruncate
	write     = read | fileWrite | ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir |
		ll.AccessFSMakeReg | ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer

	ofFiles = fileRead | fileWrite
	device  = ll.AccessFSReadFile | ll.AccessFSWriteFile
)

// handled returns what Landlock of a version denies unless a rule allows it.
func handled(version int, network bool) ll.RulesetAttr {
	a := ll.RulesetAttr{HandledAccessFS: ll.AccessFSMakeSym<<1 - 1}
	for _, added := range []struct {
		version int
		access  uint64
	}{
		{2, ll.AccessFSRefer}, {3, ll.AccessFSTruncate}, {5, ll.AccessFSIoctlDev}, {9, ll.AccessFSResolveUnix},
	} {
		if version >= added.version {
			a.HandledAccessFS |= added.access
		}
	}
	if version >= 4 && !network {
		a.HandledAccessNet = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	if version >= 10 && !network {
		a.HandledAccessNet |= ll.AccessNetBindUDP | ll.AccessNetConnectSendUDP
	}
	if version >= 6 {
		a.Scoped = ll.ScopeAbstractUnixSocket | ll.ScopeSignal
	}
	return a
}

// devices can be used by every program.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// facts are about the machine, not about its processes: in /proc every process would be told of every
// other, with its arguments. Landlock cannot allow a process its own folder there, which has no name
// before the process begins.
var facts = []string{
	"/proc/cpuinfo", "/proc/meminfo", "/proc/uptime", "/proc/loadavg", "/proc/version", "/proc/filesystems",
	"/proc/sys/kernel/osrelease", "/proc/sys/kernel/ostype", "/proc/sys/kernel/version",
	"/proc/sys/kernel/cap_last_cap", "/proc/sys/kernel/ngroups_max", "/proc/sys/kernel/pid_max",
	"/proc/sys/kernel/random/uuid", "/proc/sys/vm/overcommit_memory", "/proc/sys/vm/max_map_count",
	"/sys/devices/system/cpu", "/sys/kernel/mm/transparent_hugepage",
}

// A view is what a program sees: real paths without symbolic links, sorted, each once.
type view []sandbox.Folder

// A system is what every program sees of the machine. To find it takes longer than all the rest.
type system struct {
	mu    sync.Mutex
	found time.Time
	paths []string // without symbolic links
}

// systemTTL is for how long what was found is used: files of /etc are replaced now and then.
const systemTTL = time.Minute

func (s *system) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if time.Since(s.found) < systemTTL {
		return s.paths
	}
	s.paths = nil
	for _, path := range sandbox.SystemFolders() {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || !isSystem(real) {
			continue // a link of /etc that leads elsewhere
		}
		s.paths = append(s.paths, real)
	}
	s.found = time.Now()
	return s.paths
}

// newView returns the view of a program that sees system, is granted folders and has temp for itself.
func newView(system []string, folders []sandbox.Folder, temp string) (view, error) {
	own := sandbox.Folder{Path: temp, Access: sandbox.ReadWrite}
	granted, _, err := sandbox.RealFolders(append(slices.Clone(folders), own))
	if err != nil {
		return nil, err
	}
	v := view(granted)
	for _, path := range system {
		if at, found := v.find(path); !found { // or else what is granted counts
			v = slices.Insert(v, at, sandbox.Folder{Path: path, Access: sandbox.ReadOnly})
		}
	}
	return v, nil
}

// isSystem reports whether path is where files of the system are.
func isSystem(path string) bool {
	folders := []string{
		"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/nix", "/run/systemd/resolve",
	}
	return slices.ContainsFunc(folders, func(folder string) bool { return workspace.Within(path, folder) })
}

// ruleset returns what Landlock of a version is to allow a program.
func (v view) ruleset(version int, network bool) (*os.File, error) {
	attr := handled(version, network)
	fd, err := ll.LandlockCreateRuleset(&attr, 0)
	if err != nil {
		return nil, os.NewSyscallError("landlock_create_ruleset", err)
	}
	r := &rules{file: os.NewFile(uintptr(fd), "ruleset"), handled: attr.HandledAccessFS, view: v}
	if err := r.addAll(); err != nil {
		_ = r.file.Close()
		return nil, fmt.Errorf("say what a program may use: %w", err)
	}
	return r.file, nil
}

// rules are a ruleset in the making.
type rules struct {
	file    *os.File
	handled uint64
	view    view
}

func (r *rules) addAll() error {
	for _, path := range devices {
		if err := r.addPath(path, device); err != nil {
			return err
		}
	}
	for _, path := range facts {
		if err := r.addPath(path, read); err != nil {
			return err
		}
	}
	for _, f := range r.view {
		fd, err := unix.Openat2(unix.AT_FDCWD, f.Path, &unix.OpenHow{
			Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS,
		})
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ELOOP) { // changed since newView looked
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "open", Path: f.Path, Err: err}
		}
		err = r.addBelow(fd, f.Path, f.Access)
		_ = unix.Close(fd)
		if err != nil {
			return err
		}
	}
	return nil
}

// addPath adds a rule for a path, if it is there.
func (r *rules) addPath(path string, access uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil // not on this machine
	}
	defer unix.Close(fd)
	return r.add(fd, access)
}

// add allows access to the file or folder fd, and to what is below it.
func (r *rules) add(fd int, access uint64) error {
	var info unix.Stat_t
	if err := unix.Fstat(fd, &info); err != nil {
		return err
	}
	switch info.Mode & unix.S_IFMT {
	case unix.S_IFLNK: // what it leads to has rights of its own
		return nil
	case unix.S_IFDIR:
	default:
		access &= ofFiles
	}
	rule := ll.PathBeneathAttr{AllowedAccess: access & r.handled, ParentFd: fd}
	if rule.AllowedAccess == 0 {
		return nil
	}
	return os.NewSyscallError("landlock_add_rule", ll.LandlockAddPathBeneathRule(int(r.file.Fd()), &rule, 0))
}

// addBelow allows access to the folder path, which is open as fd, but no more to what is below it
// than the view says.
func (r *rules) addBelow(fd int, path string, access sandbox.Access) error {
	if access == sandbox.Hidden {
		return nil
	}
	if !r.view.narrows(path, access) {
		return r.add(fd, rights(access))
	}
	names, err := readNames(fd)
	if err != nil {
		return err
	}
	for _, name := range names {
		below := filepath.Join(path, name)
		if _, found := r.view.find(below); found {
			continue // it has rights of its own
		}
		child, err := unix.Openat(fd, name, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
		if err != nil {
			continue // it is gone
		}
		err = r.addBelow(child, below, access)
		_ = unix.Close(child)
		if err != nil {
			return err
		}
	}
	return nil
}

// rights returns what access is in terms of Landlock.
func rights(access sandbox.Access) uint64 {
	if access == sandbox.ReadWrite {
		return write
	}
	return read
}

// find returns where in v path is, or would be, and whether it is there.
func (v view) find(path string) (at int, found bool) {
	return slices.BinarySearchFunc(v, path, func(f sandbox.Folder, path string) int {
		return cmp.Compare(f.Path, path)
	})
}

// narrows reports whether v allows less than access somewhere below path.
func (v view) narrows(path string, access sandbox.Access) bool {
	return slices.ContainsFunc(v, func(f sandbox.Folder) bool {
		return f.Access < access && workspace.Within(f.Path, path)
	})
}

// readNames returns the names in a folder that is open as a path only.
func readNames(fd int) ([]string, error) {
	opened, err := unix.Openat(fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.EACCES) { // nor can the program
		return nil, nil
	}
	if err != nil {
		return nil, os.NewSyscallError("list a folder", err)
	}
	folder := os.NewFile(uintptr(opened), "folder")
	defer folder.Close()
	return folder.Readdirnames(-1)
}
