package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"parley/tools"
	"parley/workspace"
)

// maxWalk is how many entries of a tree are looked at.
const maxWalk = 100_000

// ignored are folders and files that nobody wants listed (D-071).
var ignored = strings.Fields(
	".git node_modules __pycache__ .venv venv dist build .tox .mypy_cache .pytest_cache .ruff_cache .coverage " +
		"htmlcov .parley",
)

// A hunt looks for files.
type hunt struct {
	dir     workspace.Path
	what    string // it is, as one says that misses it
	pattern string // what they match; "" is all
	flat    bool   // only what is directly in dir
}

// walk calls do for each file and folder that h looks for. note says if some
// were left out for being too many.
func (h hunt) walk(
	ctx context.Context,
	c tools.Call,
	do func(at workspace.Path, d fs.DirEntry),
) (note string, err error) {
	if !doublestar.ValidatePattern(h.pattern) {
		return "", fail("invalid glob pattern: %s", h.pattern)
	}
	n := 0
	err = c.Workspace.Walk(h.dir, func(at workspace.Path, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case at == h.dir && errors.Is(err, fs.ErrNotExist):
			return fail("%s not found: %s", h.what, pathOf(c))
		case at == h.dir && err == nil && !d.IsDir():
			return errNotDir
		case at == h.dir:
			return err
		case n == maxWalk:
			note = fmt.Sprintf("(only the first %d entries were searched)", maxWalk)
			return fs.SkipAll
		case err != nil: // a directory that cannot be read was listed before
			return fs.SkipDir
		}
		// On the way to a folder of one's own there may be what is hidden.
		hidden := tools.Private(c.Scope, at)
		skip := slices.Contains(ignored, d.Name()) || hidden && !c.Whose().LeadsTo(at.String())
		if !skip && !hidden {
			n++
			if matches(h.pattern, below(h.dir, at)) {
				do(at, d)
			}
		}
		if d.IsDir() && (skip || h.flat) {
			return fs.SkipDir
		}
		return nil
	})
	return note, err
}

// below returns the name of at relative to dir, which it is in.
func below(dir, at workspace.Path) string { return strings.TrimPrefix(at.String(), dir.String()+"/") }

// matches reports whether pattern matches the file name, which is relative to
// where the search began: one without a slash is matched by the last part
// alone, and "" by all.
func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return pattern == "" || doublestar.MatchUnvalidated(strings.TrimPrefix(pattern, "./"), name)
}

type listArgs struct {
	Path       string `json:"path,omitempty" jsonschema:"the directory, relative to the workspace" limit:"default=."`
	Pattern    string `json:"pattern,omitempty" jsonschema:"list only what it matches, such as *.md"`
	Recursive  bool   `json:"recursive,omitempty" jsonschema:"also list what is in the directories below"`
	MaxEntries int    `json:"max_entries,omitempty" jsonschema:"how many entries to list at most" limit:"min=1 max=5000 default=200"`
}

func list() tools.Tool {
	t := tool("list_dir", stepList,
		"List a directory of the workspace. Leaves out what is rarely of interest, such as .git and node_modules.",
		tools.Resolve, listDir)
	t.ReadOnly, t.Aliases = true, named("limit", "max_entries", "glob", "pattern")
	return t
}

// listDir is list_dir (D-068).
func listDir(ctx context.Context, c tools.Call, dir workspace.Path, in listArgs) (tools.Result, error) {
	total := 0
	var lines []string
	var r tools.Result
	_, err := hunt{dir, "Directory", in.Pattern, !in.Recursive}.walk(ctx, c, func(at workspace.Path, d fs.DirEntry) {
		if total++; total <= in.MaxEntries {
			lines = append(lines, in.line(legible(below(dir, at)), d.IsDir()))
			r.TaintBy(c.Scope, at)
		}
	})
	r.Text = strings.Join(lines, "\n")
	switch {
	case total > in.MaxEntries:
		r.Text += fmt.Sprintf("\n\n(truncated, showing first %d of %d entries)", in.MaxEntries, total)
	case total == 0 && in.Pattern != "":
		r.Text = fmt.Sprintf("No entries of %s match '%s'", pathOf(c), in.Pattern)
	case total == 0:
		r.Text = fmt.Sprintf("Directory %s is empty", pathOf(c))
	}
	return r, err
}

func (in listArgs) line(name string, dir bool) string {
	switch {
	case in.Recursive && dir:
		return name + "/"
	case in.Recursive:
		return name
	case dir:
		return "📁 " + name
	}
	return "📄 " + name
}
