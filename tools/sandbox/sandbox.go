// Package sandbox runs programs that may touch nothing but what they are granted.
//
// The operating system is the boundary, not the text of a command (R-S16). Each driver, a folder
// of its own, asks another part of the kernel for it: bwrap for namespaces, landlock for rules that
// a process puts on itself, docker for containers. Package sandboxtest holds what every driver must
// pass.
package sandbox

import (
	"cmp"
	"context"
	"io"
	"time"
)

// A Runner runs programs in a sandbox. It is safe for concurrent use.
type Runner interface {
	// Run runs s and waits until it and everything that it started have ended: because the
	// program is done, exceeds a limit, or ctx ends. What outlives the program is killed, also
	// what made itself independent of it.
	//
	// The error says why the program did not run at all; how it ended is in the Outcome.
	Run(ctx context.Context, s Spec) (Outcome, error)
}

// A Spec says what to run and what it may touch. The zero value of each field is the strictest.
type Spec struct {
	Args []string          // the program, looked up in Path if it is no path, and its arguments
	Dir  string            // where it starts: a folder of Folders; "" is the temporary folder
	Env  map[string]string // its environment, in addition to BaseEnv; nothing else is passed on (R-S17)

	// Stdin is what the program reads; nil reads as empty. An *os.File, such as the end of a pipe,
	// is given to the program itself. Reading from anything else must not block.
	Stdin io.Reader

	// Stdout and Stderr receive what the program writes, as it writes it. They may be the same. nil
	// discards. A Write must not block for long. What exceeds Limits.Output is discarded. If Stdout
	// is an *os.File, it is given to the program itself, and no limit counts what is written to it.
	Stdout, Stderr io.Writer

	// Started is called with the number of the process that was started, the program or what
	// confines it. It may be nil.
	Started func(pid int)

	Folders []Folder // what it sees besides the system's programs and its own temporary folder
	Network Network
	Limits  Limits
}

// A Folder is a file or folder of this machine that a program may use, under the path it has
// outside. Of a path and one below it, the longer one counts, so that a folder can be hidden in one
// that can be read. A path that does not exist is ignored.
type Folder struct {
	Path   string // absolute
	Access Access
}

// Access says what a program may do with a Folder.
type Access int

// What a program may do with a folder and everything below it.
const (
	Hidden    Access = iota // not even see what is in it
	ReadOnly                // read and execute
	ReadWrite               // change everything, but not the folder itself
)

// A Network says what a program may connect to. The zero value is nothing, not even this machine.
type Network struct {
	// Hosts are names such as "pypi.org", "*.debian.org" for all names below debian.org, or "*" for
	// all. They are reached by HTTP and HTTPS through a proxy that the environment names, and which
	// leads to public addresses only. Runners that cannot confine a program to them return ErrHosts.
	Hosts []string
	Key   string // the config key that lists Hosts: a program that is refused a host is told of it
	All   bool   // everything, this machine and its networks included
}

// A HostConfiner is a Runner that may be able to confine a program to the Hosts of its Network.
type HostConfiner interface {
	Runner
	// ConfinesHosts reports whether it can, and so never returns ErrHosts.
	ConfinesHosts(ctx context.Context) bool
}

// ConfinesHosts reports whether r can confine a program to the Hosts of its Network.
func ConfinesHosts(ctx context.Context, r Runner) bool {
	c, ok := r.(HostConfiner)
	return ok && c.ConfinesHosts(ctx)
}

// Limits are what a program may use. Zero values stand for what WithDefaults puts in their place.
type Limits struct {
	Wall      time.Duration // from start to end
	CPU       time.Duration // of each process
	Memory    int64         // bytes, of all its processes
	Processes int           // at once, threads included
	FileSize  int64         // bytes of the largest file that it may write
	Output    int64         // bytes that it may write to Stdout and Stderr together
}

// WithDefaults returns l with defaults for its zero values.
func (l Limits) WithDefaults() Limits {
	return Limits{
		Wall:      cmp.Or(l.Wall, time.Minute),
		CPU:       cmp.Or(l.CPU, 10*time.Minute),
		Memory:    cmp.Or(l.Memory, 1<<30),
		Processes: cmp.Or(l.Processes, 256),
		FileSize:  cmp.Or(l.FileSize, 1<<30),
		Output:    cmp.Or(l.Output, 64<<20),
	}
}

// An Outcome says how a program ended.
type Outcome struct {
	End  End
	Exit int // its exit code, or 128 and the signal that ended it; -1 if End is not Exited
	Took time.Duration

	Dropped int64    // bytes that it wrote beyond Limits.Output
	Refused []string // hosts that it tried to reach and may not, each once, such as "example.com:443"
	Reached []string // those of Network.Hosts that it reached

	// WithoutHosts says that it ran without any network, because it was given Network.Hosts and its
	// sandbox cannot confine it to them.
	WithoutHosts bool
}

// An End is the reason for which a program ended.
type End string

// The ends of a program.
const (
	Exited    End = "exited"    // by itself, or by a signal that came from within
	TimedOut  End = "timeout"   // Limits.Wall
	Cancelled End = "cancelled" // the context ended
	Exceeded  End = "exceeded"  // Limits.CPU, Memory or Processes
)
