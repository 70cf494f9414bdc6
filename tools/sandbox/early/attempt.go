package early

import (
	"slices"
	"strconv"
)

// A Target is what a process of Attempts tries to get at. In a sandbox it must fail.
type Target struct {
	Hidden    string // a file in a folder that is hidden
	Protected string // a folder that can be read, with a file called after each attempt to change one
	Work      string // a folder that may be changed
	Canary    string // what is in Hidden, and in the arguments and the environment of Victim
	Victim    int    // a process outside
	TCP       int    // ports on this machine on which somebody listens
	UDP       int
	Unix      string // the path of a socket in no folder of the program
	Abstract  string // the name of one without a path
}

// arguments returns t as the arguments of a process.
func (t Target) arguments() []string {
	return []string{
		t.Hidden, t.Protected, t.Work, reverse(t.Canary), strconv.Itoa(t.Victim),
		strconv.Itoa(t.TCP), strconv.Itoa(t.UDP), t.Unix, t.Abstract,
	}
}

// reverse returns text backwards. A process that looks for the canary in the arguments of others must
// not find its own.
func reverse(text string) string {
	letters := []byte(text)
	slices.Reverse(letters)
	return string(letters)
}

// Command returns what starts the program at path as a process of Attempts.
func (t Target) Command(path string) []string {
	return append([]string{path, Attempts}, t.arguments()...)
}

// Done is the result of an attempt that succeeded.
const Done = "done"

// What is attempted.
const (
	UseWork     = "use its own folder"
	ReadHidden  = "read a hidden file"
	ListHidden  = "list a hidden folder"
	MakeFile    = "make a file in a read-only folder"
	WriteFile   = "write to a protected file"
	Truncate    = "truncate a protected file"
	Replace     = "rename a file over a protected one"
	Remove      = "remove a protected file"
	Link        = "write by a hard link to a protected file"
	ChangeMode  = "change the mode of a protected file"
	ConnectTCP  = "connect by TCP"
	SendUDP     = "send by UDP"
	ConnectUnix = "connect to a socket in a folder"
	Abstract    = "connect to a socket without a path"
	Signal      = "signal a process outside"
	Trace       = "trace a process outside"
	Environment = "read the environment of a process outside"
	Arguments   = "see the arguments of a process outside"
	Uring       = "use io_uring"
	Namespace   = "make a user namespace"
	Privileges  = "gain privileges by a program"
)

// NumAttempts is how many attempts there are.
const NumAttempts = 21
