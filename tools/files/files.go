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

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// Rules say which files of the workspace are special, by their canonical names.
// The zero value is of none.
type Rules struct {
	// Standing reports whether a file is one of the agent's standing rules (R-S12).
	Standing func(name string) bool
	// Kept says what is to be used to change a file that Parley keeps itself; ""
	// is any other file. What it keeps no tool of files changes.
	Kept func(name string) (instead string)
	// MaxStored returns how many bytes of files a person may have in the
	// workspace, but for owners; nil, 0 and less are no limit.
	MaxStored func() int64
}

// New returns the tools. They work in the workspace of each call, and remember
// together what each session has read: call it once. pdf is the command that
// runs PDFText: without one, PDFs are not read.
func New(rules Rules, pdf ...string) []tools.Tool {
	s := &seen{}
	p := pen{s, rules}
	return slices.Concat(globs(), []tools.Tool{
		reader{s, pdf}.tool(), list(), greps(), p.write(), p.edit(), p.notebook(),
	}, p.others())
}

// A doer does what a tool does with a file of the workspace. Its error is for
// the model.
type doer[In, Out any] func(ctx context.Context, c tools.Call, at workspace.Path, in In) (Out, error)

// An opener returns the file that the model means by text, or why it is not for
// the call.
type opener func(c tools.Call, text string) (workspace.Path, error)

// tool makes a tool that works at a path.
func tool[In any](name string, says saying, what string, open opener, do doer[In, tools.Result]) tools.Tool {
	return bare(
		name,
		says,
		what,
		func(ctx context.Context, c tools.Call, text string, in In) (r tools.Result, err error) {
			if c.Workspace == nil {
				return r, errors.New("there is no workspace")
			}
			at, err := open(c, text)
			if hangs(c.Workspace, text, at) {
				err = fail("Reading %s is blocked (device path that could hang or produce infinite output).", text)
			}
			if err == nil {
				r, err = do(ctx, c, at, in)
			}
			return explain(r, err, text)
		},
	)
}

// reading makes a tool's doer of one that shows the model what the file held
// before the call: that may be untrusted content.
func reading[In any](do doer[In, tools.Result]) doer[In, tools.Result] {
	return func(ctx context.Context, c tools.Call, at workspace.Path, in In) (tools.Result, error) {
		var held tools.Result
		held.TaintBy(c.Scope, at)
		r, err := do(ctx, c, at, in)
		r.TaintBy(c.Scope, at) // others may have written to it meanwhile
		r.Tainted, r.Sources = r.Tainted || held.Tainted, chat.JoinSources(r.Sources, held.Sources...)
		return r, err
	}
}

// maxPath keeps what is said of a path short, in bytes.
const maxPath = 1000

// bare makes a tool of do, which gets the path as the model wrote it. People
// are told what says is, of the path.
func bare[In any](
	name string,
	says saying,
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
	t.Preview = about(says, "path")
	t.Aliases = named()
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

// A saying is what people are told of a call, of the words that there are.
type saying func(texts.Steps) texts.Format

func stepRead(say texts.Steps) texts.Format          { return say.Reading }
func stepList(say texts.Steps) texts.Format          { return say.Listing }
func stepWrite(say texts.Steps) texts.Format         { return say.Writing }
func stepEdit(say texts.Steps) texts.Format          { return say.Editing }
func stepDelete(say texts.Steps) texts.Format        { return say.Deleting }
func stepMakeDirectory(say texts.Steps) texts.Format { return say.MakingDirectory }
func stepLookFor(say texts.Steps) texts.Format       { return say.LookingFor }
func stepSearch(say texts.Steps) texts.Format        { return say.SearchingFor }

// about is Preview of a tool: what it does to what its argument names.
func about(says saying, argument string) func(texts.Steps, map[string]any) string {
	return func(say texts.Steps, args map[string]any) string {
		if name, _ := args[argument].(string); name != "" {
			return says(say).With(legible(name))
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
var errNotDir = errors.New("not a directory")

// devices never end or hang their reader (D-053).
var devices = regexp.MustCompile(`^(/dev(/|$)|/proc/[^/]+/fd(/|$))`)

// hangs reports whether text names a device, a pipe or a socket, or a link to a
// device. at is the file of the workspace that it is, if it is one.
func hangs(w *workspace.Workspace, text string, at workspace.Path) bool {
	if at == (workspace.Path{}) {
		real, _ := filepath.EvalSymlinks(
			filepath.Join(w.Dir(), text)) // only devices are told from other things outside
		return devices.MatchString(text) || devices.MatchString(real)
	}
	info, err := w.Stat(at)
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
	{tools.ErrPrivate, tools.CodeDenied, "%s is not for this conversation"},
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
	if no := (denial{}); errors.As(err, &no) {
		return tools.Result{Code: tools.CodeDenied}, no
	}
	for _, w := range append(other, words...) {
		if errors.Is(err, w.err) {
			return tools.Result{Code: w.code}, fail(w.text, path)
		}
	}
	return r, err
}
