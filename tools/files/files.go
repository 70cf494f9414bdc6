// Package files lets the agent read, write and list the files of its workspace.
package files

import (
	"errors"
	"io/fs"
	"regexp"
	"slices"
	"syscall"

	"parley/tools"
	"parley/workspace"
)

// New returns the tools. They work in the workspace of each call, and remember
// together what each session has read: call it once. standing says whether
// the file called name, as Workspace.Path has it, is one of the agent's
// standing rules (R-S12); nil is of none.
func New(standing func(name string) bool, _ ...string) []tools.Tool {
	s := &seen{}
	p := pen{s, standing}
	return slices.Concat(globs(), []tools.Tool{
		read(s), list(), greps(),
		p.edit(),
	}, p.writes(), p.manages(), p.others())
}

// devices never end or hang their reader (D-053).
var devices = regexp.MustCompile(`^(/dev(/|$)|/proc/[^/]+/fd(/|$))`)

// locate returns path as the workspace's os.Root knows it, or a refusal.
func locate(c tools.Call, path string) (name string, refusal *tools.Result) {
	if devices.MatchString(path) {
		return "", fail("Reading %s is blocked (device path that could hang or produce infinite output).", path)
	}
	if c.Workspace == nil {
		return "", fail("There is no workspace.")
	}
	name, err := c.Workspace.Path(path)
	if err != nil {
		return "", explain(path, err)
	}
	if tools.Private(c.Session, name) {
		return "", deny("%s is not for this conversation", path)
	}
	return name, nil
}

func fail(format string, args ...any) *tools.Result {
	r := tools.Failf(tools.CodeError, format, args...)
	return &r
}

func deny(format string, args ...any) *tools.Result {
	r := tools.Failf(tools.CodeDenied, format, args...)
	return &r
}

// explain tells the model why path could not be read or written (D-055).
func explain(path string, err error) *tools.Result {
	var outside *workspace.OutsideError
	switch {
	case errors.As(err, &outside):
		return deny("%v", outside)
	case errors.Is(err, workspace.ErrProtected):
		return deny("%s is protected", path)
	case errors.Is(err, fs.ErrNotExist):
		return fail("File not found: %s", path)
	case errors.Is(err, workspace.ErrNotFile):
		return fail("Not a file: %s", path)
	case errors.Is(err, workspace.ErrTooBig):
		return fail("File too big: %s (more than %d MiB)", path, workspace.MaxOpen>>20)
	case errors.Is(err, syscall.ENOTDIR):
		return fail("Not a directory on the way to %s", path)
	}
	return fail("%v", err)
}
