package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"syscall"

	"parley/tools"
)

type globArgs struct {
	Pattern   string `json:"pattern" jsonschema:"such as *.go or src/**/*_test.go; without a slash it is matched by the name alone, at any depth" limit:"min=1"`
	Path      string `json:"path,omitempty" jsonschema:"the directory to search, relative to the workspace" limit:"default=."`
	HeadLimit *int   `json:"head_limit,omitempty" jsonschema:"how many paths to return at most; 0 is all" limit:"min=0 max=1000 default=250"`
	Offset    int    `json:"offset,omitempty" jsonschema:"how many paths to leave out first" limit:"min=0 max=100000"`
	EntryType string `json:"entry_type,omitempty" jsonschema:"what to look for" limit:"enum=files|dirs|both default=files"`
}

// globs returns glob, and the same under its other name.
func globs() []tools.Tool {
	const what = "Find files of the workspace by their names, the newest first. Leaves out what is rarely of interest, such as .git and node_modules."
	t := tools.New("glob", what, glob)
	t.ReadOnly, t.Category, t.Preview = true, "files", seeking
	t.Aliases = map[string]string{"dir": "path", "directory": "path", "folder": "path", "max_results": "head_limit", "limit": "head_limit"}
	other := t
	other.Name, other.AliasOf = "find_files", t.Name
	return []tools.Tool{t, other}
}

// seeking is Preview of a tool that searches for a pattern.
func seeking(args map[string]any) string {
	if pattern, _ := args["pattern"].(string); pattern != "" {
		return "Searching for " + legible(pattern)
	}
	return ""
}

func glob(ctx context.Context, c tools.Call, in globArgs) (tools.Result, error) {
	in.Path, in.EntryType = cmp.Or(in.Path, "."), cmp.Or(in.EntryType, "files")
	dir, refusal := locate(c, in.Path)
	if refusal == nil {
		refusal = badGlob(in.Pattern)
	}
	if refusal != nil {
		return *refusal, nil
	}
	var found []entry
	whole, err := walk(ctx, c.Workspace.Root().FS(), dir, func(name string, d fs.DirEntry) error {
		if in.EntryType != "both" && d.IsDir() != (in.EntryType == "dirs") || !matches(in.Pattern, below(dir, name)) {
			return nil
		}
		info, err := d.Info()
		if err != nil { // it is gone
			return nil
		}
		if d.IsDir() {
			name += "/"
		}
		found = append(found, entry{name: name, mtime: info.ModTime().UnixNano()})
		return nil
	})
	switch {
	case err != nil:
		return *noPath(in.Path, err), nil
	case len(found) == 0:
		return tools.Result{Text: notes(fmt.Sprintf("No paths matched pattern '%s' in %s", in.Pattern, in.Path), unseen(whole))}, nil
	}
	shown, note := paged(newest(found), in.HeadLimit, in.Offset)
	return tools.Result{Text: notes(strings.Join(shown, "\n"), note, unseen(whole))}, nil
}

// noPath says why the place to search cannot be.
func noPath(path string, err error) *tools.Result {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("Path not found: %s", path)
	case errors.Is(err, syscall.ENOTDIR):
		return fail("Not a directory: %s", path)
	}
	return explain(path, err)
}

// An entry is a file that was found.
type entry struct {
	name  string // of the workspace
	mtime int64  // ns since 1970
	n     int    // matches in it
}

// newest returns the names of the entries, the newest first.
func newest(found []entry) []string {
	slices.SortFunc(found, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.mtime, a.mtime), strings.Compare(a.name, b.name))
	})
	names := make([]string, len(found))
	for i, f := range found {
		names[i] = legible(f.name)
	}
	return names
}

// headLimit is how many lines are returned unless a call says otherwise.
const headLimit = 250

// paged returns the lines that a call asked for, and what to note of it.
func paged(lines []string, head *int, offset int) (part []string, note string) {
	limit := headLimit
	if head != nil {
		limit = *head
	}
	part = lines[min(offset, len(lines)):]
	cut := limit > 0 && len(part) > limit
	if cut {
		part = part[:limit]
	}
	return part, pagination(cut, limit, offset)
}

func pagination(cut bool, limit, offset int) string {
	switch {
	case cut:
		return fmt.Sprintf("(pagination: limit=%d, offset=%d)", limit, offset)
	case offset > 0:
		return fmt.Sprintf("(pagination: offset=%d)", offset)
	}
	return ""
}

func unseen(whole bool) string {
	if whole {
		return ""
	}
	return fmt.Sprintf("(only the first %d entries were searched)", maxWalk)
}

// notes adds lines to a text, those that there are.
func notes(text string, lines ...string) string {
	lines = slices.DeleteFunc(lines, func(s string) bool { return s == "" })
	if len(lines) == 0 {
		return text
	}
	return strings.TrimPrefix(text+"\n\n"+strings.Join(lines, "\n"), "\n\n")
}
