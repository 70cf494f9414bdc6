// Package files lets the agent read, write and list the files of its workspace.
package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"parley/chat"
	"parley/lazyregexp"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Rules say which files of the workspace are special, by their canonical names. With
// the zero value, none are.
type Rules struct {
	// Standing reports whether a file is one of the agent's standing rules (R-S12).
	Standing func(name string) bool
	// Kept says which tool to use instead to change a file that Parley maintains
	// itself, and returns "" for all other files. The tools of this package refuse to
	// change such a file.
	Kept func(name string) (instead string)
	// MaxStored returns how many bytes of files each person may have in the workspace.
	// Owners have no limit. If it is nil, or returns 0 or less, nobody has.
	MaxStored func() int64
}

// New returns the tools. They work in the workspace of each call, and share what they
// know about the files that each session has read, so call New only once. pdf is the
// command that runs PDFText: without it, PDFs cannot be read.
func New(rules Rules, pdf ...string) []tools.Tool {
	read := &readStates{}
	e := editor{known: read, rules: rules}
	return slices.Concat(globs(), []tools.Tool{
		reader{read, pdf}.tool(), list(), greps(), e.write(), e.edit(), e.notebook(),
	}, e.compatTools())
}

// An action is what a tool does with a file of the workspace. Its error is for the
// model.
type action[In, Out any] func(ctx context.Context, c tools.Call, at workspace.Path, in In) (Out, error)

// A pathResolver returns the file that the model refers to by text, or why the call
// may not use it.
type pathResolver func(c tools.Call, text string) (workspace.Path, error)

// newTool makes a tool that works on the file or folder at a path.
func newTool[In any](
	name string,
	what string,
	open pathResolver,
	do action[In, tools.Result],
) tools.Tool {
	return newPathTool(
		name,
		what,
		func(ctx context.Context, c tools.Call, text string, in In) (r tools.Result, err error) {
			if c.Workspace == nil {
				return r, errors.New("there is no workspace")
			}
			at, err := open(c, text)
			if isDevice(c.Workspace, text, at) {
				err = fail("Reading %s is blocked (device path that could hang or produce infinite output).", text)
			}
			if err != nil {
				return explain(r, err, text)
			}
			r, err = do(ctx, c, at, in)
			return explain(r, err, text)
		},
	)
}

// tainting returns do for a tool that shows the model the content of a file, and
// marks results that may hold untrusted content.
func tainting[In any](do action[In, tools.Result]) action[In, tools.Result] {
	return func(ctx context.Context, c tools.Call, at workspace.Path, in In) (tools.Result, error) {
		var held tools.Result
		held.TaintBy(c.Scope, at)
		r, err := do(ctx, c, at, in)
		r.TaintBy(c.Scope, at) // another call may have written to the file in the meantime
		r.Tainted = r.Tainted || held.Tainted
		r.Sources = chat.JoinSources(r.Sources, held.Sources...)
		return r, err
	}
}

// maxPath is the maximum length of a path in bytes, because error messages quote it.
const maxPath = 1000

// newPathTool makes a tool from do, which gets the path as the model wrote it.
func newPathTool[In any](
	name string,
	what string,
	do func(ctx context.Context, c tools.Call, text string, in In) (tools.Result, error),
) tools.Tool {
	t := tools.New(name, what, func(ctx context.Context, c tools.Call, in In) (tools.Result, error) {
		if path := pathOf(c); len(path) <= maxPath {
			return do(ctx, c, path, in)
		}
		return tools.Result{}, fail("the path is longer than %d bytes", maxPath)
	})
	t.Category = "files"
	t.Preview = previewOf("path")
	t.Aliases = aliases()
	return t
}

// pathOf returns the path argument of c, as the model wrote it.
func pathOf(c tools.Call) string {
	path, _ := c.Input["path"].(string)
	return cmp.Or(path, ".")
}

// aliases returns the wrong argument names that models use (E-005): those for path,
// and the pairs in more, each a wrong name followed by the right one.
func aliases(more ...string) map[string]string {
	names := map[string]string{}
	for _, name := range strings.Fields("file_path filepath filename file dir dir_path directory folder") {
		names[name] = "path"
	}
	for pair := range slices.Chunk(more, 2) {
		names[pair[0]] = pair[1]
	}
	return names
}

// previewOf returns the Preview of a tool, which is the value of one argument.
func previewOf(argument string) func(texts.Steps, map[string]any) string {
	return func(_ texts.Steps, args map[string]any) string {
		name, _ := args[argument].(string)
		return legible(name)
	}
}

// legible returns name, quoted if it has control characters such as line breaks.
func legible(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

// errNotDir is returned for a path that should be a directory and is not.
var errNotDir = errors.New("not a directory")

// devices matches files whose content never ends, or that block their reader (D-053).
var devices = lazyregexp.New(`^(/dev(/|$)|/proc/[^/]+/fd(/|$))`)

// isDevice reports whether text names a device, a pipe or a socket, or a link to a
// device. at is the resolved path, which is zero for a file outside the workspace.
func isDevice(w *workspace.Workspace, text string, at workspace.Path) bool {
	if at == (workspace.Path{}) {
		// An error is of no interest: it only matters whether this is a device.
		real, _ := filepath.EvalSymlinks(filepath.Join(w.Dir(), text))
		return devices.MatchString(text) || devices.MatchString(real)
	}
	info, err := w.Stat(at)
	return err == nil && info.Mode()&(fs.ModeDevice|fs.ModeNamedPipe|fs.ModeSocket) != 0
}

// fail returns an error that tells the model what is wrong and what to do.
func fail(format string, args ...any) error { return fmt.Errorf(format, args...) }

// An errorText is the text for the model that stands for err. It takes a path.
type errorText struct {
	err        error
	code, text string
}

var errorTexts = []errorText{
	{workspace.ErrProtected, tools.CodeDenied, "%s is protected"},
	{tools.ErrPrivate, tools.CodeDenied, "%s is not for this conversation"},
	{fs.ErrNotExist, "", "File not found: %s"},
	{workspace.ErrNotFile, "", "Not a file: %s"},
	{workspace.ErrTooBig, "", "File too big: %s (more than " + strconv.Itoa(workspace.MaxOpen>>20) + " MiB)"},
	{errNotDir, "", "Not a directory: %s"},
	{syscall.ENOTDIR, "", "Not a directory on the way to %s"},
}

// explain turns the error of a tool into one that tells the model why path could not
// be read or written (D-055). The texts in other have priority.
func explain(r tools.Result, err error, path string, other ...errorText) (tools.Result, error) {
	if outside := (*workspace.OutsideError)(nil); errors.As(err, &outside) {
		return tools.Result{Code: tools.CodeDenied}, outside
	}
	if no := (denial{}); errors.As(err, &no) {
		return tools.Result{Code: tools.CodeDenied}, no
	}
	for _, w := range append(other, errorTexts...) {
		if errors.Is(err, w.err) {
			return tools.Result{Code: w.code}, fail(w.text, path)
		}
	}
	return r, err
}
