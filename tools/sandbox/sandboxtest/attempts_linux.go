package sandboxtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// An attempt is something that must fail. It returns nil if it did what it must not be able to do.
// Where a sandbox does not hold it must do no harm: it changes nothing but files of its plan.
type attempt struct {
	name string
	try  func(p plan) error
}

// attempts are those that package early has not.
func attempts() []attempt {
	return []attempt{
		{"read a file outside", func(p plan) error { return read(p.Outside) }},
		{"read a file outside by a link", func(p plan) error { return read(filepath.Join(p.Work, linkName)) }},
		{"write to a file outside", func(p plan) error { return write(p.Outside) }},
		{"make a file outside", func(p plan) error { return write(filepath.Join(p.Base, "new")) }},
		{"make a file in a hidden folder", func(p plan) error { return write(p.Hidden + "2") }},
		{"write to a file that is to be read", eachStanding(write)},
		{"rename over a file that is to be read", eachStanding(renameOver)},
		{"link over a file that is to be read", linkOver},
		{"write by a link to a file that is to be read", eachStanding(writeByLink)},
		{"remove a file that is to be read", eachStanding(os.Remove)},
		{"replace the folder of a file that is to be read", func(p plan) error {
			return os.Rename(filepath.Join(p.Base, "memory"), filepath.Join(p.Work, "memory"))
		}},
		{"replace the folder that may be changed", replaceWork},
		{"mount something", mount},
		{"mount a folder again, to change it", func(p plan) error {
			return unix.Mount("", p.Base, "", unix.MS_REMOUNT|unix.MS_BIND, "")
		}},
		{"unmount what hides a folder", func(p plan) error {
			return unix.Unmount(filepath.Dir(p.Hidden), unix.MNT_DETACH)
		}},
		{"make a device", func(p plan) error {
			return unix.Mknod(filepath.Join(p.Work, "device"), unix.S_IFBLK|0o600, int(unix.Mkdev(8, 0)))
		}},
		{"change settings of the kernel", changeKernel},
		{"open a socket that leads past the network", func(plan) error { return openOddSocket() }},
	}
}

// openOddSocket opens a socket of a kind that has nothing to do with networks, and that namespaces
// of the network do not confine: one to the host of a virtual machine, to the kernel's ciphers, to
// devices nearby.
func openOddSocket() (err error) {
	families := []int{
		unix.AF_VSOCK, unix.AF_ALG, unix.AF_BLUETOOTH, unix.AF_NFC, unix.AF_QIPCRTR, unix.AF_TIPC, unix.AF_RDS,
	}
	for _, family := range families {
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_SEQPACKET, unix.SOCK_RAW} {
			var fd int
			if fd, err = unix.Socket(family, kind, 0); err == nil {
				return unix.Close(fd)
			}
		}
	}
	return err
}

// runAttempts is run inside a sandbox, with a plan. It tells what came of each attempt.
func runAttempts(args []string) int {
	var p plan
	if len(args) != 1 || json.Unmarshal([]byte(args[0]), &p) != nil {
		fmt.Fprintln(os.Stderr, "there is no plan")
		return 2
	}
	out := json.NewEncoder(os.Stdout)
	for _, a := range attempts() {
		err := a.try(p)
		r := result{Name: a.name, Held: err != nil, Detail: "it worked"}
		if err != nil {
			r.Detail = err.Error()
		}
		if out.Encode(r) != nil {
			return 1
		}
	}
	return 0
}

func read(file string) error {
	_, err := os.ReadFile(file)
	return err
}

func write(file string) error {
	return os.WriteFile(file, []byte("changed"), 0o600)
}

// eachStanding returns an attempt that must fail for each of the standing files.
func eachStanding(try func(file string) error) func(plan) error {
	return func(p plan) error {
		var last error
		for _, name := range standing {
			if last = try(filepath.Join(p.Base, name)); last == nil {
				return nil
			}
		}
		return last
	}
}

// own returns a file of the program's own.
func own() (string, error) {
	file := "own" + strconv.Itoa(os.Getpid())
	return file, write(file)
}

func renameOver(file string) error {
	mine, err := own()
	if err != nil {
		return err
	}
	return os.Rename(mine, file)
}

// linkOver puts a symbolic link in the place of a file. It leads nowhere: other attempts write there.
func linkOver(p plan) error {
	return eachStanding(func(file string) error {
		if err := os.Remove(file); err != nil {
			return err
		}
		return os.Symlink(filepath.Join(p.Work, "nothing"), file)
	})(p)
}

// writeByLink writes by a hard link, and by a symbolic one.
func writeByLink(file string) error {
	for name, link := range map[string]func(from, to string) error{"hard": os.Link, "symbolic": os.Symlink} {
		_ = os.Remove(name)
		if link(file, name) == nil && write(name) == nil {
			return nil
		}
	}
	return errors.New("neither kind of link helped")
}

// replaceWork moves the folder away, and back, because it is needed.
func replaceWork(p plan) error {
	if err := os.Rename(p.Work, p.Work+"2"); err != nil {
		return err
	}
	return os.Rename(p.Work+"2", p.Work)
}

func mount(p plan) error {
	if err := unix.Mount("tmpfs", p.Work, "tmpfs", 0, ""); err != nil {
		return err
	}
	return unix.Unmount(p.Work, unix.MNT_DETACH)
}

// kernelFiles lead to code that the kernel runs for anybody, or stop the machine.
var kernelFiles = []string{
	"/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname",
	"/proc/sys/vm/overcommit_memory", "/proc/sysrq-trigger", "/sys/kernel/uevent_helper",
}

// changeKernel looks for a file that can be written to, and writes nothing.
func changeKernel(plan) error {
	for _, name := range kernelFiles {
		file, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			continue
		}
		return file.Close()
	}
	return errors.New("none can be opened for writing")
}
