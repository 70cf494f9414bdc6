// Package files lets the agent read, write and list the files of its workspace.
package files

import (
	"errors"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"parley/tools"
	"parley/workspace"
)

// New returns the tools. They work in the workspace of each call, and remember
// together what each session has read: call it once. standing says whether
// the file called name, as Workspace.Path has it, is one of the agent's
// standing rules (R-S12); nil is of none. pdf is the command that runs
// PDFText: without one, PDFs are not read.
func New(standing func(name string) bool, pdf ...string) []tools.Tool {
	s := &seen{}
	p := pen{s, standing}
	return slices.Concat(globs(), []tools.Tool{
		reader{s, pdf}.tool(), list(), greps(),
		p.write(), p.edit(), notebookEdit(p),
	}, p.others())
}

// devices never end or hang their reader (D-053).
var devices = regexp.MustCompile(`^(/dev(/|$)|/proc/[^/]+/fd(/|$))`)

// locate returns path as the workspace's os.Root knows it, or a refusal.
func locate(c tools.Call, path string) (name string, refusal *tools.Result) {
	if c.Workspace == nil {
		return "", fail("There is no workspace.")
	}
	name, err := c.Workspace.Path(path)
	if hangs(c.Workspace, path, name) {
		return "", fail("Reading %s is blocked (device path that could hang or produce infinite output).", path)
	}
	if err != nil {
		return "", explain(path, err)
	}
	if tools.Private(c.Session, name) {
		return "", deny("%s is not for this conversation", path)
	}
	return name, nil
}

// hangs says whether path is a device, a pipe or a socket, or a link to a
// device. name is what the workspace knows it by, if it does.
func hangs(w *workspace.Workspace, path, name string) bool {
	if name == "" {
		real, _ := filepath.EvalSymlinks(filepath.Join(w.Dir(), path)) // only devices are told from other things outside
		return devices.MatchString(path) || devices.MatchString(real)
	}
	info, err := w.Stat(name)
	return err == nil && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0
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
