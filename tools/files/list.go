package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/bmatcuk/doublestar/v4"

	"parley/tools"
)

// maxWalk is how many entries of a tree are looked at.
const maxWalk = 100_000

// ignored are folders and files that nobody wants listed (D-071).
var ignored = strings.Fields(".git node_modules __pycache__ .venv venv dist build .tox .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov .parley")

// walk calls do for what is in dir and below, but for what is ignored. do may
// return fs.SkipDir. whole says whether nothing was left out for being too much.
func walk(ctx context.Context, tree fs.FS, dir string, do func(name string, d fs.DirEntry) error) (whole bool, err error) {
	n := 0
	err = fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case name == dir && err == nil && !d.IsDir():
			return syscall.ENOTDIR
		case name == dir:
			return err
		case n == maxWalk:
			n++
			return fs.SkipAll
		case err != nil: // a directory that cannot be read was listed before
			return fs.SkipDir
		case slices.Contains(ignored, d.Name()):
			return skip(d)
		}
		n++
		return do(name, d)
	})
	return n <= maxWalk, err
}

// skip goes on behind d.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

// below returns name relative to dir, which it is in.
func below(dir, name string) string { return strings.TrimPrefix(name, dir+"/") }

// matches says whether pattern matches the file name, which is relative to
// where the search began: one without a slash is matched by the last part alone.
func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return doublestar.MatchUnvalidated(strings.TrimPrefix(pattern, "./"), name)
}

// legible returns name so that it looks like one line.
func legible(name string) string {
	if strings.ContainsFunc(name, unicode.IsControl) {
		return strconv.Quote(name)
	}
	return name
}

type listArgs struct {
	Path       string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Pattern    string `json:"pattern,omitempty" jsonschema:"list only what it matches, such as *.md"`
	Recursive  bool   `json:"recursive,omitempty" jsonschema:"also list what is in the directories below"`
	MaxEntries int    `json:"max_entries,omitempty" jsonschema:"how many entries to list at most" limit:"min=1 max=5000 default=200"`
}

func list() tools.Tool {
	t := tools.New("list_dir", "List a directory of the workspace. Leaves out what is rarely of interest, such as .git and node_modules.", listDir)
	t.ReadOnly, t.Category, t.Preview = true, "files", about("Listing")
	t.Aliases = map[string]string{
		"file_path": "path", "filename": "path", "file": "path", "dir": "path", "dir_path": "path", "directory": "path", "folder": "path",
		"limit": "max_entries", "glob": "pattern",
	}
	return t
}

func listDir(ctx context.Context, c tools.Call, in listArgs) (tools.Result, error) {
	in.Path, in.MaxEntries = cmp.Or(in.Path, "."), cmp.Or(in.MaxEntries, 200)
	name, refusal := locate(c, in.Path)
	if refusal == nil {
		refusal = badGlob(in.Pattern)
	}
	if refusal != nil {
		return *refusal, nil
	}
	l := listing{args: in}
	_, err := walk(ctx, c.Workspace.Root().FS(), name, func(file string, d fs.DirEntry) error {
		if rel := below(name, file); in.Pattern == "" || matches(in.Pattern, rel) {
			l.add(rel, d.IsDir())
		}
		if !in.Recursive {
			return skip(d)
		}
		return nil
	})
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return *fail("Directory not found: %s", in.Path), nil
	case errors.Is(err, syscall.ENOTDIR):
		return *fail("Not a directory: %s", in.Path), nil
	case err != nil:
		return *explain(in.Path, err), nil
	}
	return tools.Result{Text: l.text()}, nil
}

// badGlob refuses a pattern that can match nothing, or returns nil.
func badGlob(pattern string) *tools.Result {
	if doublestar.ValidatePattern(pattern) {
		return nil
	}
	return fail("invalid glob pattern: %s", pattern)
}

// A listing gathers the entries of a directory.
type listing struct {
	args  listArgs
	lines []string
	total int
}

func (l *listing) add(name string, dir bool) {
	l.total++
	if len(l.lines) == l.args.MaxEntries {
		return
	}
	name = legible(name)
	switch {
	case l.args.Recursive && dir:
		name += "/"
	case l.args.Recursive:
	case dir:
		name = "📁 " + name
	default:
		name = "📄 " + name
	}
	l.lines = append(l.lines, name)
}

func (l *listing) text() string {
	switch {
	case l.total == 0 && l.args.Pattern != "":
		return fmt.Sprintf("No entries of %s match '%s'", l.args.Path, l.args.Pattern)
	case l.total == 0:
		return fmt.Sprintf("Directory %s is empty", l.args.Path)
	}
	text := strings.Join(l.lines, "\n")
	if l.total > len(l.lines) {
		text += fmt.Sprintf("\n\n(truncated, showing first %d of %d entries)", len(l.lines), l.total)
	}
	return text
}
