package early

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// What the kernel hands over has the same shape as on machines of 64 bits.
func TestSizes(t *testing.T) {
	if size := unsafe.Sizeof(request{}); size != 80 {
		t.Errorf("a request has %d bytes", size)
	}
	if size := unsafe.Sizeof(response{}); size != 24 {
		t.Errorf("a response has %d bytes", size)
	}
	if size := unsafe.Sizeof(fileTime{}); size != 16 {
		t.Errorf("a time has %d bytes", size)
	}
}

// Arguments of 64 bits are in two registers, of which the first is an even one.
func TestSizeOfFile(t *testing.T) {
	for _, c := range []struct {
		call int32
		args [6]uint64
		want int64
	}{
		{syscall.SYS_TRUNCATE, [6]uint64{1, 5}, 5},
		{syscall.SYS_TRUNCATE, [6]uint64{1, 1<<32 - 1}, -1},
		{syscall.SYS_TRUNCATE64, [6]uint64{1, 9, 5, 0}, 5},
		{syscall.SYS_TRUNCATE64, [6]uint64{1, 9, 5, 1}, 1<<32 + 5},
		{syscall.SYS_TRUNCATE64, [6]uint64{1, 9, 1<<32 - 1, 1<<32 - 1}, -1},
	} {
		if got := (request{call: c.call, args: c.args}).size(changers[c.call]); got != c.want {
			t.Errorf("%d %v: %d, want %d", c.call, c.args, got, c.want)
		}
	}
}

// Owners of 16 bits are those of a file, or leave them as they are.
func TestShortOwner(t *testing.T) {
	fd, err := syscall.Open(t.TempDir(), syscall.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	var info syscall.Stat_t
	if err := syscall.Fstat(fd, &info); err != nil {
		t.Fatal(err)
	}
	change := func(uid, gid uint64) error {
		r := request{call: syscall.SYS_CHOWN, args: [6]uint64{1, uid, gid}}
		return changeShortOwner("", fd, r, changers[r.call])
	}
	for _, same := range []uint64{1<<16 - 1, 1<<32 - 1, uint64(info.Uid)} {
		if err := change(same, uint64(info.Gid)); err != nil {
			t.Errorf("the owner %d: %v", same, err)
		}
	}
	if err := change(uint64(info.Uid)+1, uint64(info.Gid)); err == nil {
		t.Error("another owner is given a file")
	}
}

// Times are set to what was asked for, and left as they are if an order says so.
func TestSetTimes(t *testing.T) {
	file := t.TempDir()
	const (
		later = 2_000_000_000
		omit  = 1<<30 - 2
	)
	for _, modified := range []fileTime{{later, 7}, {1, omit}} {
		if err := setTimes(file, [2]fileTime{{nanoseconds: utimeNow}, modified}); err != nil {
			t.Fatal(err)
		}
		info, err := os.Stat(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.ModTime().UnixNano(); got != later*1e9+7 {
			t.Errorf("after %v the time of the file is %d", modified, got)
		}
	}
}
