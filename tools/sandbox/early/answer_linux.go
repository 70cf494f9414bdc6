package early

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// A request is a system call that the kernel holds until it is answered: seccomp_notif.
type request struct {
	id    uint64
	tid   uint32
	flags uint32
	call  int32
	arch  uint32
	ip    uint64
	args  [6]uint64
}

// A response is what the call returns: seccomp_notif_resp.
type response struct {
	id    uint64
	value int64
	errno int32 // negative
	flags uint32
}

// What ioctl does with the listener of a seccomp filter.
const (
	receiveRequest = 0xc0502100
	sendResponse   = 0xc0182101
	checkRequest   = 0x40082102
)

// Numbers that package syscall lacks.
const (
	oPath             = 0x200000
	atFDCWD           = -100
	atSymlinkNoFollow = 0x100
	maxPath           = 4096
)

// A changer is a system call that changes what a file is besides its content. Landlock lets
// programs do that to all files of their user. So the filter has the launcher asked, and the
// launcher does it to files that the program may change. Each number is that of an argument; -1 is
// none.
type changer struct {
	change func(file string, fd int, r request, c changer) error
	folder int // that a path is relative to, or the file itself if there is no path
	path   int
	value  int
	flags  int
}

// Changers are the system calls that the filter of a Plan must Ask about.
func Changers() (calls []uint32) {
	for call := range changers {
		calls = append(calls, uint32(call))
	}
	return calls
}

// answer answers the requests of listener until this process ends.
func answer(listener int, p Plan) {
	syscall.CloseOnExec(listener)
	for {
		var r request
		if control(listener, receiveRequest, unsafe.Pointer(&r)) != 0 {
			time.Sleep(time.Millisecond) // the caller was killed, or there is none any more
			continue
		}
		a := p.respond(listener, r)
		_ = control(listener, sendResponse, unsafe.Pointer(&a)) // the thread may be gone
	}
}

// control calls ioctl.
func control(listener int, operation uintptr, about unsafe.Pointer) syscall.Errno {
	_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, uintptr(listener), operation, uintptr(about))
	return errno
}

// respond returns what becomes of r.
func (p Plan) respond(listener int, r request) response {
	a := response{id: r.id}
	if r.isSignal() && r.maySignal() {
		a.flags = proceed
		return a
	}
	err := error(syscall.EPERM)
	if !r.isSignal() {
		err = p.perform(listener, r)
	}
	if err == nil {
		return a
	}
	errno, known := errors.AsType[syscall.Errno](err)
	if !known || errno == syscall.EACCES {
		errno = syscall.EPERM
	}
	a.errno = -int32(errno)
	return a
}

// proceed as flag of a response has the kernel do what it was asked.
const proceed = 1

// perform does in the place of a program what it asks for, if it may.
func (p Plan) perform(listener int, r request) error {
	c, known := changers[r.call]
	if !known {
		return syscall.EPERM
	}
	fd, err := r.open(c)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	// A thread that is gone may have left its number, and so what was opened, to another.
	if errno := control(listener, checkRequest, unsafe.Pointer(&r.id)); errno != 0 {
		return errno
	}
	link := "/proc/self/fd/" + strconv.Itoa(fd)
	path, err := os.Readlink(link)
	if err != nil {
		return syscall.EPERM
	}
	if !p.writable(path) {
		return syscall.EPERM
	}
	return c.change(link, fd, r, c)
}

// open opens, as a path only, the file that r is about.
func (r request) open(c changer) (int, error) {
	self := "/proc/" + strconv.Itoa(int(r.tid))
	base := self + "/cwd"
	if c.folder >= 0 {
		if folder := int32(r.args[c.folder]); folder != atFDCWD {
			base = self + "/fd/" + strconv.Itoa(int(folder))
		}
	}
	flags := oPath | syscall.O_CLOEXEC
	if c.path < 0 || r.args[c.path] == 0 {
		return syscall.Open(base, flags, 0)
	}
	name, err := r.readString(r.args[c.path])
	switch {
	case err != nil:
		return 0, err
	case name == "":
		return syscall.Open(base, flags, 0)
	case strings.HasPrefix(name, "/proc/self/"):
		name = self + strings.TrimPrefix(name, "/proc/self")
	}
	if c.flags >= 0 && r.args[c.flags]&atSymlinkNoFollow != 0 {
		flags |= syscall.O_NOFOLLOW
	}
	if name[0] == '/' {
		return syscall.Open(name, flags, 0)
	}
	folder, err := syscall.Open(base, oPath|syscall.O_CLOEXEC, 0)
	if err != nil {
		return 0, err
	}
	defer syscall.Close(folder)
	return syscall.Openat(folder, name, flags, 0)
}

// read returns up to n bytes of the memory of the thread that asks.
func (r request) read(address uint64, n int) ([]byte, error) {
	fd, err := syscall.Open("/proc/"+strconv.Itoa(int(r.tid))+"/mem", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, err
	}
	defer syscall.Close(fd)
	data := make([]byte, n)
	n, err = syscall.Pread(fd, data, int64(address))
	if err != nil {
		return nil, syscall.EFAULT
	}
	return data[:n], nil
}

func (r request) readString(address uint64) (string, error) {
	data, err := r.read(address, maxPath)
	if err != nil {
		return "", err
	}
	text, _, complete := bytes.Cut(data, []byte{0})
	if !complete {
		return "", syscall.ENAMETOOLONG
	}
	return string(text), nil
}

// changeMode is chmod. No program is made one that runs with the rights of its owner.
func changeMode(file string, _ int, r request, c changer) error {
	mode := uint32(r.args[c.value])
	if mode&(syscall.S_ISUID|syscall.S_ISGID) != 0 {
		return syscall.EPERM
	}
	return syscall.Chmod(file, mode)
}

// changeSize is truncate.
func changeSize(file string, _ int, r request, c changer) error {
	return syscall.Truncate(file, r.size(c))
}

// changeOwner is chown, to the owner that a file has.
func changeOwner(_ string, fd int, r request, c changer) error {
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		return err
	}
	same := func(wanted uint64, is uint32) bool { return int32(wanted) == -1 || uint32(wanted) == is }
	if same(r.args[c.value], info.Uid) && same(r.args[c.value+1], info.Gid) {
		return nil
	}
	return syscall.EPERM
}

// A fileTime is a time of a file, as the kernel takes it on all machines: __kernel_timespec. Some of nanoseconds
// are not a number but an order, such as utimeNow.
type fileTime struct{ seconds, nanoseconds int64 }

// utimeNow as nanoseconds stands for the time that it is.
const utimeNow = 1<<30 - 1

// changeTimes is utimensat.
func changeTimes(file string, _ int, r request, c changer) error {
	times, err := r.times(c, 16, func(data []byte) fileTime {
		return fileTime{
			seconds:     int64(binary.LittleEndian.Uint64(data)),
			nanoseconds: nanoseconds(binary.LittleEndian.Uint64(data[8:])),
		}
	})
	if err != nil {
		return err
	}
	return setTimes(file, times)
}

// times returns the times of access and change that r sets, each of which takes size bytes of the memory of the
// thread that asks.
func (r request) times(c changer, size int, read func([]byte) fileTime) ([2]fileTime, error) {
	times := [2]fileTime{{nanoseconds: utimeNow}, {nanoseconds: utimeNow}}
	address := r.args[c.value]
	if address == 0 {
		return times, nil
	}
	data, err := r.read(address, len(times)*size)
	if err != nil || len(data) < len(times)*size {
		return times, syscall.EFAULT
	}
	for i := range times {
		times[i] = read(data[i*size:])
	}
	return times, nil
}

// setTimes sets the times of a file.
func setTimes(file string, times [2]fileTime) error {
	path, err := syscall.BytePtrFromString(file)
	if err != nil {
		return err
	}
	folder := atFDCWD
	_, _, errno := syscall.Syscall6(sysUtimensat, uintptr(folder), uintptr(unsafe.Pointer(path)),
		uintptr(unsafe.Pointer(&times)), 0, 0, 0)
	return errorOf(errno)
}
