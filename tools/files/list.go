package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"parley/tools"
)

// maxWalk is how many entries of a tree are looked at.
const maxWalk = 100_000

// ignored are folders and files that nobody wants listed (D-071).
var ignored = strings.Fields(".git node_modules __pycache__ .venv venv dist build .tox .mypy_cache .pytest_cache .ruff_cache .coverage htmlcov .parley")

type listArgs struct {
	Path       string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Recursive  bool   `json:"recursive,omitempty" jsonschema:"also list what is in the directories below"`
	MaxEntries int    `json:"max_entries,omitempty" jsonschema:"how many entries to list at most" limit:"min=1 max=5000 default=200"`
}

func list() tools.Tool {
	t := tools.New("list_dir", "List a directory of the workspace. Leaves out what is rarely of interest, such as .git and node_modules.", listDir)
	t.ReadOnly, t.Category = true, "files"
	t.Aliases = map[string]string{"dir": "path", "dir_path": "path", "directory": "path", "folder": "path", "limit": "max_entries"}
	return t
}

func listDir(ctx context.Context, c tools.Call, in listArgs) (tools.Result, error) {
	in.Path, in.MaxEntries = cmp.Or(in.Path, "."), cmp.Or(in.MaxEntries, 200)
	name, refusal := locate(c, in.Path)
	if refusal != nil {
		return *refusal, nil
	}
	l := listing{args: in}
	switch err := l.walk(ctx, c.Workspace.Root().FS(), name); {
	case errors.Is(err, fs.ErrNotExist):
		return *fail("Directory not found: %s", in.Path), nil
	case errors.Is(err, syscall.ENOTDIR):
		return *fail("Not a directory: %s", in.Path), nil
	case err != nil:
		return *explain(in.Path, err), nil
	}
	return tools.Result{Text: l.text()}, nil
}

// A listing gathers the entries of a directory.
type listing struct {
	args  listArgs
	lines []string
	total int
}

func (l *listing) walk(ctx context.Context, tree fs.FS, dir string) error {
	return fs.WalkDir(tree, dir, func(name string, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case name == dir && err == nil && !d.IsDir():
			return syscall.ENOTDIR
		case name == dir:
			return err
		case l.total == maxWalk:
			return fs.SkipAll
		case err != nil: // a directory that cannot be read was listed before
			return fs.SkipDir
		case slices.Contains(ignored, d.Name()):
			return skip(d)
		}
		l.add(strings.TrimPrefix(name, dir+"/"), d.IsDir())
		if !l.args.Recursive {
			return skip(d)
		}
		return nil
	})
}

// skip goes on behind d.
func skip(d fs.DirEntry) error {
	if d.IsDir() {
		return fs.SkipDir
	}
	return nil
}

func (l *listing) add(name string, dir bool) {
	l.total++
	if len(l.lines) == l.args.MaxEntries {
		return
	}
	if strings.ContainsFunc(name, unicode.IsControl) { // it is not to look like two entries
		name = strconv.Quote(name)
	}
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
	if l.total == 0 {
		return fmt.Sprintf("Directory %s is empty", l.args.Path)
	}
	text := strings.Join(l.lines, "\n")
	if l.total > len(l.lines) {
		text += fmt.Sprintf("\n\n(truncated, showing first %d of %d entries)", len(l.lines), l.total)
	}
	return text
}
