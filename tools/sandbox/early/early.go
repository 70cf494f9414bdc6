// Package early runs the processes of Parley's own that sandboxes need: the launcher, the reaper, and
// those with which a sandbox is tried out. They are this executable, started with an argument that
// the package's init looks for; they never get to main.
//
// Go initialises packages in the order of their import paths, each as soon as what it imports is
// ready. This one comes before everything but the standard library, because it is a module of its
// own with a path that sorts first, and imports nothing else. So such a process is at work after
// 2 ms, where main takes 7 to begin, and every run of a program is 5 ms faster.
package early

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
