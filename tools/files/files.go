// Package files lets the agent read, write and list the files of its workspace.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

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
		reader{s, pdf}.tool(), list(), greps(), p.write(), p.edit(), p.notebook(),
	}, p.others())
}

// A doer does what a tool does with the file that is called name in the
// workspace. Its error is for the model.
type doer[In, Out any] func(ctx context.Context, c tools.Call, name string, in In) (Out, error)

// tool makes a tool that works at a path.
func tool[In any](name, verb, what string, do doer[In, tools.Result]) tools.Tool {
	return bare(name, verb, what, func(ctx context.Context, c tools.Call, path string, in In) (r tools.Result, err error) {
		if c.Workspace == nil {
			return r, errors.New("there is no workspace")
		}
		name, err := locate(c, path)
		if hangs(c.Workspace, path, name) {
			err = fail("Reading %s is blocked (device path that could hang or produce infinite output).", path)
		}
		if err == nil {
			r, err = do(ctx, c, name, in)
			r.Tainted = r.Tainted || tools.Strange(name)
		}
		return explain(r, err, path)
	})
}

// maxPath keeps what is said of a path short, in bytes.
const maxPath = 1000

// bare makes a tool of do, which gets the path as the model has it. People
// see the verb and the path.
func bare[In any](name, verb, what string, do doer[In, tools.Result]) tools.Tool {
	t := tools.New(name, what, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
		if path := pathOf(c); len(path) <= maxPath {
			return do(ctx, c, path, in)
		}
		return tools.Result{}, fail("the path is longer than %d bytes", maxPath)
	})
	t.Category, t.Preview, t.Aliases = "files", about(verb, "path"), named()
	return t
}

// pathOf returns the path that c is about, as the model has it.
func pathOf(c tools.Call) string {
	path, _ := c.Input["path"].(string)
	return cmp.Or(path, ".")
}

// named returns names of arguments that models get wrong (E-005): for path,
// and of more each before the right one.
func named(more ...string) map[string]string {
	names := map[string]string{}
	for _, name := range strings.Fields("file_path filepath filename file dir dir_path directory folder") {
		names[name] = "path"
	}
	for pair := range slices.Chunk(more, 2) {
		names[pair[0]] = pair[1]
	}
	return names
}

// about is Preview of a tool: what it does to what its argument names.
func about(verb, argument string) func(map[string]any) string {
	return func(args map[string]any) string {
		if name, _ := args[argument].(string); name != "" {
			return verb + " " + legible(name)
		}
		return ""
	}
}

// legible returns name so that it looks like one line.
func legible(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// Errors that explain knows, beside those of the workspace and the os package.
var (
	errPrivate = errors.New("not for this conversation")
	errNotDir  = errors.New("not a directory")
)

// locate returns path as the workspace's os.Root knows it.
func locate(c tools.Call, path string) (name string, err error) {
	name, err = c.Workspace.Path(path)
	if err == nil && tools.Private(c.Scope, name) {
		err = errPrivate
	}
	return name, err
}

// devices never end or hang their reader (D-053).
var devices = regexp.MustCompile(`^(/dev(/|$)|/proc/[^/]+/fd(/|$))`)

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

// fail is an error that tells the model what is wrong and what to do.
func fail(format string, args ...any) error { return fmt.Errorf(format, args...) }

// A word is what the model is told of an error. The text takes a path.
type word struct {
	err        error
	code, text string
}

var words = []word{
	{workspace.ErrProtected, tools.CodeDenied, "%s is protected"},
	{errPrivate, tools.CodeDenied, "%s is not for this conversation"},
	{fs.ErrNotExist, "", "File not found: %s"},
	{workspace.ErrNotFile, "", "Not a file: %s"},
	{workspace.ErrTooBig, "", "File too big: %s (more than " + strconv.Itoa(workspace.MaxOpen>>20) + " MiB)"},
	{errNotDir, "", "Not a directory: %s"},
	{syscall.ENOTDIR, "", "Not a directory on the way to %s"},
}

// explain makes the err of a tool one that tells the model why path could not
// be read or written (D-055), in other words if some are given.
func explain(r tools.Result, err error, path string, other ...word) (tools.Result, error) {
	if outside := (*workspace.OutsideError)(nil); errors.As(err, &outside) {
		return tools.Result{Code: tools.CodeDenied}, outside
	}
	for _, w := range append(other, words...) {
		if errors.Is(err, w.err) {
			return tools.Result{Code: w.code}, fail(w.text, path)
		}
	}
	return r, err
}
