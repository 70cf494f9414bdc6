package early

import (
	"encoding/binary"
	"syscall"
)

// Numbers of system calls that package syscall lacks.
const (
	sysSeccomp         = 383
	sysPidfdOpen       = 434
	sysPidfdSendSignal = 424
	sysFchmodat2       = 452
	sysUtimensat       = 412 // with times of 64 bits: Linux 5.1, which is older than Landlock
)

// The calls of the time when owners had 16 bits, and times and sizes 32, are still there.
var changers = map[int32]changer{
	syscall.SYS_CHMOD:      {changeMode, -1, 0, 1, -1},
	syscall.SYS_FCHMOD:     {changeMode, 0, -1, 1, -1},
	syscall.SYS_FCHMODAT:   {changeMode, 0, 1, 2, -1},
	sysFchmodat2:           {changeMode, 0, 1, 2, 3},
	syscall.SYS_CHOWN:      {changeShortOwner, -1, 0, 1, -1},
	syscall.SYS_LCHOWN:     {changeShortOwner, -1, 0, 1, -1},
	syscall.SYS_FCHOWN:     {changeShortOwner, 0, -1, 1, -1},
	syscall.SYS_CHOWN32:    {changeOwner, -1, 0, 1, -1},
	syscall.SYS_LCHOWN32:   {changeOwner, -1, 0, 1, -1},
	syscall.SYS_FCHOWN32:   {changeOwner, 0, -1, 1, -1},
	syscall.SYS_FCHOWNAT:   {changeOwner, 0, 1, 2, 4},
	syscall.SYS_UTIMENSAT:  {changeShortTimes, 0, 1, 2, 3},
	sysUtimensat:           {changeTimes, 0, 1, 2, 3},
	syscall.SYS_TRUNCATE:   {changeSize, -1, 0, 1, -1},
	syscall.SYS_TRUNCATE64: {changeSize, -1, 0, 2, -1}, // an argument of 64 bits begins at an even register
}

// size returns the size that r gives a file. A register has 32 bits.
func (r request) size(c changer) int64 {
	if r.call == syscall.SYS_TRUNCATE64 {
		return int64(r.args[c.value+1]<<32 | r.args[c.value]&(1<<32-1))
	}
	return int64(int32(r.args[c.value]))
}

// nanoseconds returns those of a __kernel_timespec. Programs of 32 bits set the lower half of it only.
func nanoseconds(value uint64) int64 { return int64(uint32(value)) }

// changeShortOwner is chown with owners of 16 bits.
func changeShortOwner(file string, fd int, r request, c changer) error {
	for i := c.value; i <= c.value+1; i++ {
		r.args[i] &= 1<<16 - 1
		if r.args[i] == 1<<16-1 {
			r.args[i] = 1<<32 - 1 // "leave it as it is"
		}
	}
	return changeOwner(file, fd, r, c)
}

// changeShortTimes is utimensat with times of 32 bits.
func changeShortTimes(file string, _ int, r request, c changer) error {
	times, err := r.times(c, 8, func(data []byte) fileTime {
		return fileTime{
			seconds:     int64(int32(binary.LittleEndian.Uint32(data))),
			nanoseconds: int64(binary.LittleEndian.Uint32(data[4:])),
		}
	})
	if err != nil {
		return err
	}
	return setTimes(file, times)
}
