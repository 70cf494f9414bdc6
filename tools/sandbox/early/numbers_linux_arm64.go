package early

import "syscall"

// Numbers of system calls that package syscall lacks.
const (
	sysSeccomp         = 277
	sysPidfdOpen       = 434
	sysPidfdSendSignal = 424
	sysFchmodat2       = 452
	sysUtimensat       = syscall.SYS_UTIMENSAT
)

var changers = map[int32]changer{
	syscall.SYS_FCHMOD:    {changeMode, 0, -1, 1, -1},
	syscall.SYS_FCHMODAT:  {changeMode, 0, 1, 2, -1},
	sysFchmodat2:          {changeMode, 0, 1, 2, 3},
	syscall.SYS_FCHOWN:    {changeOwner, 0, -1, 1, -1},
	syscall.SYS_FCHOWNAT:  {changeOwner, 0, 1, 2, 4},
	syscall.SYS_UTIMENSAT: {changeTimes, 0, 1, 2, 3},
	syscall.SYS_TRUNCATE:  {changeSize, -1, 0, 1, -1},
}

// size returns the size that r gives a file.
func (r request) size(c changer) int64 { return int64(r.args[c.value]) }

// nanoseconds returns those of a __kernel_timespec.
func nanoseconds(value uint64) int64 { return int64(value) }
