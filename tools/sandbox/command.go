package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A Command is what a driver starts so that it starts the program of a Spec. Until it has confined
// itself it has all rights of Parley. So nothing of Spec.Env may be in its Env: LD_PRELOAD would be
// a way out.
type Command struct {
	Args  []string   // an absolute path, and arguments, which other users of the machine can read
	Dir   string     // where it starts
	Env   []string   // its whole environment
	Files []*os.File // its file descriptors from FirstFile on
	Kind  Kind
}

// A Kind says how everything that a Command starts is found again, if it is in no cgroup.
type Kind int

// The kinds of commands.
const (
	// Plain commands are found by their session and by their parents. What leaves both is missed.
	Plain Kind = iota

	// Namespace commands run the program in a pid namespace, which ends with its first process. They
	// begin when GateFile can be read to its end, which is when their limits are set.
	// They write to StatusFile what bwrap writes with --json-status-fd: {"child-pid": n} before the
	// program starts, and {"exit-code": n} when it has ended, but not if it was not started.
	Namespace

	// Reaper commands are processes of package early: they end everything, and then themselves, when
	// StatusFile can be read to its end. That is so when Parley dies, too. They do not give up, and are
	// under no limit of CPU time or processes themselves.
	Reaper
)

// The file descriptors of a Command, besides the standard ones.
const (
	GateFile   = 3 // see Kind; it is missing if that is Plain
	StatusFile = 4 // see Kind; it is missing if that is Plain
	FirstFile  = 5
)

// Check returns what is wrong with s.
func (s Spec) Check() error {
	if len(s.Args) == 0 || s.Args[0] == "" {
		return errors.New("there is no program to run")
	}
	for _, arg := range s.Args {
		if strings.ContainsRune(arg, 0) {
			return errors.New("an argument has a NUL character, which no program can be given")
		}
	}
	for name, value := range s.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(value, 0) {
			return fmt.Errorf("%.40q is no environment variable", name+"="+value)
		}
	}
	if s.Dir != "" && !filepath.IsAbs(s.Dir) {
		return fmt.Errorf("%q, where the program is to start, is no absolute path", s.Dir)
	}
	for _, f := range s.Folders {
		if !filepath.IsAbs(f.Path) || strings.ContainsRune(f.Path, 0) {
			return fmt.Errorf("%q is no absolute path", f.Path)
		}
	}
	return nil
}

// LookProgram returns the path of the program of s: Args[0], looked up in the PATH of its
// environment if it is no path.
func (s Spec) LookProgram() (string, error) {
	name := s.Args[0]
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := Path
	if own, has := s.Env["PATH"]; has {
		path = own
	}
	for _, folder := range filepath.SplitList(path) {
		file := filepath.Join(folder, name)
		info, err := os.Stat(file)
		if err != nil || !filepath.IsAbs(file) || !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
			continue
		}
		return file, nil
	}
	return "", fmt.Errorf("%w: %s", ErrNoProgram, name)
}
