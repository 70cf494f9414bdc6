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

// maxWalk is how many entries of a tree are visited.
const maxWalk = 100_000

// ignored are folders and files that are not listed or searched (D-071).
var ignored = strings.Fields(
	".git node_modules __pycache__ .venv venv dist build .tox .mypy_cache .pytest_cache .ruff_cache .coverage " +
		"htmlcov .parley",
)

// A walker visits the files of a folder.
type walker struct {
	dir     workspace.Path
	what    string // what an error calls dir: "Path" or "Directory"
	pattern string // visit only what matches; "" is everything
	flat    bool   // visit only what is directly in dir
}

// walk calls do for each matching file and folder. If there are too many, note says
// so.
func (w walker) walk(
	ctx context.Context,
	c tools.Call,
	do func(at workspace.Path, d fs.DirEntry),
) (note string, err error) {
	if !doublestar.ValidatePattern(w.pattern) {
		return "", fail("invalid glob pattern: %s", w.pattern)
	}
	n := 0
	err = c.Workspace.Walk(w.dir, func(at workspace.Path, d fs.DirEntry, err error) error {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case at == w.dir && errors.Is(err, fs.ErrNotExist) && c.Workspace.View().IsHome(at):
			return fs.SkipAll // of somebody who has written nothing yet
		case at == w.dir && errors.Is(err, fs.ErrNotExist):
			return fail("%s not found: %s", w.what, pathOf(c))
		case at == w.dir && err == nil && !d.IsDir():
			return errNotDir
		case at == w.dir:
			return err
		case n == maxWalk:
			note = fmt.Sprintf("(only the first %d entries were searched)", maxWalk)
			return fs.SkipAll
		case err != nil: // an unreadable directory, which do was called for already
			return fs.SkipDir
		}
		// A hidden folder is entered if it leads to a folder of the caller's own.
		hidden := tools.Private(c.Scope, at)
		skip := slices.Contains(ignored, d.Name()) || hidden && !c.Whose().LeadsTo(at.String())
		if !skip && !hidden {
			n++
			if matches(w.pattern, below(w.dir, at)) {
				do(at, d)
			}
		}
		if d.IsDir() && (skip || w.flat) {
			return fs.SkipDir
		}
		return nil
	})
	return note, err
}

// below returns the name of at relative to the folder dir.
func below(dir, at workspace.Path) string { return strings.TrimPrefix(at.String(), dir.String()+"/") }

// matches reports whether pattern matches name, a path relative to the folder that is
// searched. A pattern without a slash is compared with the last element only, and an
// empty one matches every name.
func matches(pattern, name string) bool {
	if !strings.Contains(pattern, "/") {
		name = path.Base(name)
	}
	return pattern == "" || doublestar.MatchUnvalidated(strings.TrimPrefix(pattern, "./"), name)
}

type listArgs struct {
	Path       string `json:"path" limit:"default=."`
	Pattern    string `json:"pattern,omitempty" jsonschema:"only such names, as *.md"`
	Recursive  bool   `json:"recursive,omitempty"`
	MaxEntries int    `json:"max_entries" limit:"min=1 max=5000 default=200"`
}

func list() tools.Tool {
	t := newTool("list_dir",
		"List a directory of the workspace, without folders such as .git.",
		tools.Resolve, listDir)
	t.ReadOnly = true
	t.Aliases = aliases("limit", "max_entries", "glob", "pattern")
	return t
}

// listDir implements list_dir (D-068).
func listDir(ctx context.Context, c tools.Call, dir workspace.Path, in listArgs) (tools.Result, error) {
	total := 0
	var lines []string
	var r tools.Result
	_, err := walker{dir, "Directory", in.Pattern, !in.Recursive}.walk(ctx, c, func(at workspace.Path, d fs.DirEntry) {
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
	if c.Workspace.View().IsHome(dir) && in.Pattern == "" {
		r.Text += sharedFolders(c.Workspace.View())
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
