package main

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A wallClock is what the processes that it starts see as the wall clock of the
// machine: it can be stepped while they run. Their monotonic clock and their
// timers stay as they are, as with a machine whose clock is set.
//
// The program reads its clocks from the vDSO, a page of code that the kernel
// maps into each process. A wallClock changes that code before the process
// executes its first instruction.
type wallClock struct {
	mu     sync.Mutex
	offset time.Duration // whole seconds
	mem    *os.File      // the memory of the process that was started last
	at     int64         // where its offset is
}

const canSetClock = true

// clockCode replaces __vdso_clock_gettime: it has the kernel tell the time, and
// adds the 8 bytes in front of it to the seconds of CLOCK_REALTIME, which is 0.
var clockCode = []byte{
	0xb8, 0xe4, 0x00, 0x00, 0x00, // mov eax, SYS_clock_gettime
	0x0f, 0x05, // syscall
	0x85, 0xff, // test edi, edi
	0x75, 0x0a, // jnz ret
	0x48, 0x8b, 0x0d, 0xe6, 0xff, 0xff, 0xff, // mov rcx, [rip-26]: the offset
	0x48, 0x01, 0x0e, // add [rsi], rcx
	0xc3, // ret
}

// start starts cmd under the clock.
func (c *wallClock) start(cmd *exec.Cmd) error {
	runtime.LockOSThread() // only the thread that started a process can let it go on
	defer runtime.UnlockOSThread()
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace = true // it stops before its first instruction
	if err := cmd.Start(); err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(cmd.Process.Pid, &status, 0, nil); err != nil || !status.Stopped() {
		return fmt.Errorf("wait for a process to stop: %v, %w", status, err)
	}
	return errors.Join(c.takeOver(cmd.Process.Pid), syscall.PtraceDetach(cmd.Process.Pid))
}

// takeOver changes the vDSO of a process that is stopped.
func (c *wallClock) takeOver(pid int) error {
	base, end, err := findVDSO(pid)
	if err != nil {
		return err
	}
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mem != nil {
		c.mem.Close() // its process has ended
	}
	c.mem = mem
	code := make([]byte, end-base)
	if _, err := mem.ReadAt(code, base); err != nil {
		return fmt.Errorf("read vDSO: %w", err)
	}
	file, err := elf.NewFile(bytes.NewReader(code))
	if err != nil {
		return fmt.Errorf("read vDSO: %w", err)
	}
	symbols, err := file.DynamicSymbols()
	i := slices.IndexFunc(symbols, func(s elf.Symbol) bool { return s.Name == "__vdso_clock_gettime" })
	if err != nil || i < 0 {
		return fmt.Errorf("vDSO without clock_gettime: %w", err)
	}
	entry := int64(symbols[i].Value)
	room := int64(len(bytes.TrimRight(code, "\x00"))+7) &^ 7 // its last page is not full
	if int64(len(code))-room < int64(8+len(clockCode)) {
		return errors.New("vDSO without room")
	}
	c.at = base + room
	jump := binary.LittleEndian.AppendUint32([]byte{0xe9}, uint32(room+8-entry-5))
	for at, part := range map[int64][]byte{base + room + 8: clockCode, base + entry: jump} {
		if _, err := mem.WriteAt(part, at); err != nil {
			return fmt.Errorf("change vDSO: %w", err)
		}
	}
	return c.put()
}

// put tells the process the offset. The caller holds mu.
func (c *wallClock) put() error {
	seconds := binary.LittleEndian.AppendUint64(nil, uint64(c.offset/time.Second))
	if _, err := c.mem.WriteAt(seconds, c.at); err != nil {
		return fmt.Errorf("step clock: %w", err)
	}
	return nil
}

// set sets the clock to so much more than it should be.
func (c *wallClock) set(offset time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.offset = offset
	_ = c.put() // the process may have been killed; the next one will see it
}

// findVDSO returns where the vDSO of a process begins and ends.
func findVDSO(pid int) (begin, end int64, err error) {
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(maps)) {
		if strings.HasSuffix(line, "[vdso]\n") {
			_, err := fmt.Sscanf(line, "%x-%x ", &begin, &end)
			return begin, end, err
		}
	}
	return 0, 0, errors.New("process without vDSO")
}
