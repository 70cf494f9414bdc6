package early

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"
)

const targetArguments = 9

func parseTarget(args []string) (t Target, err error) {
	if len(args) != targetArguments {
		return t, errors.New("wrong number of arguments")
	}
	t.Hidden = args[0]
	t.Protected = args[1]
	t.Work = args[2]
	t.Canary = reverse(args[3])
	t.Unix = args[7]
	t.Abstract = args[8]
	for i, number := range []*int{&t.Victim, &t.TCP, &t.UDP} {
		if *number, err = strconv.Atoi(args[4+i]); err != nil {
			return t, err
		}
	}
	return t, nil
}

// runAttempts makes all attempts on the target that args describe, and writes a line for each: its
// name, a tab, and why it failed, or Done. An attempt may seem to succeed but change only a copy, or
// reach only the sandbox itself. So whoever started this process checks its effects, too.
func runAttempts(args []string) int {
	t, err := parseTarget(args)
	if err != nil {
		fmt.Fprintln(os.Stderr, "parley:", err)
		return exitFailed
	}
	for _, a := range attempts {
		result := Done
		if err := a.try(t); err != nil {
			result = err.Error()
			if errno, known := errors.AsType[syscall.Errno](err); known {
				result = errno.Error()
			}
		}
		fmt.Printf("%s\t%.200q\n", a.name, result)
	}
	return 0
}

// file returns the file that an attempt is to change.
func (t Target) file(attempt string) string { return filepath.Join(t.Protected, attempt) }

var attempts = []struct {
	name string
	try  func(Target) error
}{
	{UseWork, func(t Target) error { return os.WriteFile(filepath.Join(t.Work, "made"), []byte("x"), 0o600) }},
	{ReadHidden, func(t Target) error { return findIn(t.Hidden, t.Canary) }},
	{ListHidden, func(t Target) error {
		names, err := os.ReadDir(filepath.Dir(t.Hidden))
		if err == nil && len(names) == 0 {
			return errors.New("it is empty")
		}
		return err
	}},
	{MakeFile, func(t Target) error {
		return os.WriteFile(filepath.Join(t.Protected, "made"), nil, 0o600)
	}},
	{WriteFile, func(t Target) error { return appendTo(t.file(WriteFile)) }},
	{Truncate, func(t Target) error { return syscall.Truncate(t.file(Truncate), 1) }},
	{Link, func(t Target) error {
		link := filepath.Join(t.Work, "link")
		if err := os.Link(t.file(Link), link); err != nil {
			return err
		}
		return appendTo(link)
	}},
	{ChangeMode, func(t Target) error { return os.Chmod(t.file(ChangeMode), 0o606) }},
	{Replace, func(t Target) error {
		other := filepath.Join(t.Work, "other")
		if err := os.WriteFile(other, nil, 0o600); err != nil {
			return err
		}
		return os.Rename(other, t.file(Replace))
	}},
	{Remove, func(t Target) error { return os.Remove(t.file(Remove)) }},
	{ConnectTCP, func(t Target) error { return connect(syscall.AF_INET, syscall.SOCK_STREAM, loopback(t.TCP)) }},
	{SendUDP, func(t Target) error { return connect(syscall.AF_INET, syscall.SOCK_DGRAM, loopback(t.UDP)) }},
	{ConnectUnix, func(t Target) error {
		return connect(syscall.AF_UNIX, syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: t.Unix})
	}},
	{Abstract, func(t Target) error {
		return connect(syscall.AF_UNIX, syscall.SOCK_STREAM, &syscall.SockaddrUnix{Name: "@" + t.Abstract})
	}},
	{Environment, func(t Target) error { return findInProcesses("environ", t.Canary, t.Victim) }},
	{Arguments, func(t Target) error { return findInProcesses("cmdline", t.Canary, t.Victim) }},
	{Trace, func(t Target) error {
		if t.Victim == os.Getpid() { // in another namespace, with the same number
			return syscall.ESRCH
		}
		return syscall.PtraceAttach(t.Victim)
	}},
	{Signal, func(t Target) error {
		if t.Victim == os.Getpid() {
			return syscall.ESRCH
		}
		return syscall.Kill(t.Victim, syscall.SIGKILL)
	}},
	{Uring, func(Target) error {
		var parameters [120]byte
		_, _, errno := syscall.RawSyscall(sysIOURingSetup, 1, uintptr(unsafe.Pointer(&parameters)), 0)
		return errorOf(errno)
	}},
	{Namespace, func(Target) error {
		return startSelf(&syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER})
	}},
	{Privileges, func(Target) error {
		has, _, errno := syscall.RawSyscall6(syscall.SYS_PRCTL, prGetNoNewPrivs, 0, 0, 0, 0, 0)
		if errno == 0 && has == 1 {
			return errors.New("no new privileges")
		}
		return errorOf(errno)
	}},
}

// Numbers that package syscall lacks.
const (
	prGetNoNewPrivs = 39
	sysIOURingSetup = 425
)

func errorOf(errno syscall.Errno) error {
	if errno != 0 {
		return errno
	}
	return nil
}

// findIn returns nil if the file has text.
func findIn(file, text string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if !bytes.Contains(data, []byte(text)) {
		return errors.New("it says something else")
	}
	return nil
}

// findInProcesses returns nil if the file of some other process in /proc has text.
func findInProcesses(file, text string, victim int) error {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	// A folder that cannot be listed can still be entered.
	folders = append(folders, "/proc/1", "/proc/"+strconv.Itoa(victim))
	own := "/proc/" + strconv.Itoa(os.Getpid())
	err = errors.New("there is none")
	for _, folder := range folders {
		if folder == own {
			continue
		}
		found := findIn(filepath.Join(folder, file), text)
		if found == nil {
			return nil
		}
		if !errors.Is(found, os.ErrNotExist) {
			err = found
		}
	}
	return err
}

func appendTo(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return err
	}
	_, err = io.WriteString(f, "changed")
	return errors.Join(err, f.Close())
}

func loopback(port int) syscall.Sockaddr {
	return &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}
}

// connect connects to a socket and sends it something.
func connect(family, kind int, to syscall.Sockaddr) error {
	fd, err := syscall.Socket(family, kind|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	_ = syscall.SetsockoptTimeval(fd, syscall.SOL_SOCKET, syscall.SO_SNDTIMEO, &syscall.Timeval{Sec: 1})
	if err := syscall.Connect(fd, to); err != nil {
		return err
	}
	_, err = syscall.Write(fd, []byte("x"))
	return err
}

// startSelf starts a process that ends at once.
func startSelf(how *syscall.SysProcAttr) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	attributes := os.ProcAttr{Sys: how}
	attributes.Env = []string{}
	p, err := os.StartProcess(self, []string{self, Victim}, &attributes)
	if err != nil {
		return err
	}
	_, err = p.Wait()
	return err
}

// beVictim waits until its standard input is closed.
func beVictim() int {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}
