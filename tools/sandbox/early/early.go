// Package early runs the processes of Parley's own that sandboxes need: the launcher, the reaper, and
// those with which a sandbox is tried out. They are this executable, started with an argument that
// the package's init looks for; they never get to main.
//
// Go initialises packages in the order of their import paths, each as soon as what it imports is
// ready. This one comes before everything but the standard library, because it is a module of its
// own with a path that sorts first, and imports nothing else. So such a process is at work after
// 2 ms, where main takes 7 to begin, and every run of a program is 5 ms faster.
package early

import (
	"errors"
	"os"
	"time"
)

// The first argument of such a process says what it does. The constants whose names end in File are
// its file descriptors.
const (
	Launcher = "sandbox-launcher" // confines itself with Landlock and runs the program of a Plan
	Reaper   = "sandbox-reaper"   // runs the program that the further arguments are
	Attempts = "sandbox-attempts" // tries what no program in a sandbox may be able to do
	Victim   = "sandbox-victim"   // does nothing until its input ends
)

// Path is the executable of such a process: that of the running Parley, even if another version has
// taken its place on the disk.
const Path = "/proc/self/exe"

// Niceness is the priority of programs, of 19 for the lowest: Parley must get to end them, however many
// they are.
const Niceness = 10

// EndTimeout is how long the end of killed processes is waited for. One that the kernel has waiting
// for a disk may take longer.
const EndTimeout = 30 * time.Second

// ErrAlive is the error of a run whose processes could not be ended.
var ErrAlive = errors.New("processes of the program are still alive, although they were killed")

// RemoveAll removes a folder, also one in which a program has made folders that cannot be read.
func RemoveAll(dir string) {
	if os.RemoveAll(dir) == nil {
		return
	}
	var open func(string)
	open = func(dir string) {
		_ = os.Chmod(dir, 0o700)
		entries, _ := os.ReadDir(dir)
		for _, e := range entries {
			if e.IsDir() {
				open(dir + "/" + e.Name())
			}
		}
	}
	open(dir)
	_ = os.RemoveAll(dir)
}
