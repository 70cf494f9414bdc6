package files

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"parley/tools"
	"parley/workspace"
)

type globArgs struct {
	Pattern   string `json:"pattern" jsonschema:"such as *.go or src/**/*_test.go; without a slash it is matched by the name alone, at any depth" limit:"min=1"`
	Path      string `json:"path,omitempty" jsonschema:"the directory to search, relative to the workspace" limit:"default=."`
	HeadLimit int    `json:"head_limit,omitempty" jsonschema:"how many paths to return at most; 0 is all" limit:"min=0 max=1000 default=250"`
	Offset    int    `json:"offset,omitempty" jsonschema:"how many paths to leave out first" limit:"min=0 max=100000"`
	EntryType string `json:"entry_type,omitempty" jsonschema:"what to look for" limit:"enum=files|dirs|both default=files"`
}

// globs returns glob, and the same under its other name.
func globs() []tools.Tool {
	t := tool(
		"glob",
		nil,
		"Find files of the workspace by their names, the newest first. Leaves out what is rarely of interest, such "+
			"as .git and node_modules.",
		tools.Resolve,
		glob,
	)
	t.ReadOnly, t.Preview = true, about(stepSearch, "pattern")
	t.Aliases = named("max_results", "head_limit", "limit", "head_limit")
	other := t
	other.Name, other.AliasOf = "find_files", t.Name
	return []tools.Tool{t, other}
}

// glob is glob (D-069).
func glob(ctx context.Context, c tools.Call, dir workspace.Path, in globArgs) (tools.Result, error) {
	var found []entry
	unseen, err := hunt{dir, "Path", in.Pattern, false}.walk(ctx, c, func(at workspace.Path, d fs.DirEntry) {
		info, err := d.Info()
		if err != nil || in.EntryType != "both" && d.IsDir() != (in.EntryType == "dirs") { // an error: it is gone
			return
		}
		found = append(found, entry{at: at, dir: d.IsDir(), mtime: info.ModTime().UnixNano()})
	})
	sortNewest(found)
	shown, note := paged(found, in.HeadLimit, in.Offset)
	text := strings.Join(names(shown), "\n")
	if len(found) == 0 {
		text, note = fmt.Sprintf("No paths matched pattern '%s' in %s", in.Pattern, pathOf(c)), ""
	}
	r := tools.Result{Text: notes(text, note, unseen)}
	r.TaintBy(c.Scope, paths(shown)...)
	return r, err
}

// An entry is a file that was found.
type entry struct {
	at    workspace.Path
	dir   bool  // it is a folder
	mtime int64 // ns since 1970
	n     int   // matches in it
}

// paths returns the files of the entries.
func paths(found []entry) (files []workspace.Path) {
	for _, e := range found {
		files = append(files, e.at)
	}
	return files
}

// sortNewest sorts the entries, the newest first.
func sortNewest(found []entry) {
	slices.SortFunc(found, func(a, b entry) int {
		return cmp.Or(cmp.Compare(b.mtime, a.mtime), strings.Compare(a.at.String(), b.at.String()))
	})
}

// names returns the names of the entries as they are shown.
func names(found []entry) []string {
	all := make([]string, len(found))
	for i, f := range found {
		name := f.at.String()
		if f.dir {
			name += "/"
		}
		all[i] = legible(name)
	}
	return all
}

// paged returns the part of what was found that a call asked for, and what to
// note of it. A limit of 0 is none.
func paged[T any](lines []T, limit, offset int) (part []T, note string) {
	part = lines[min(offset, len(lines)):]
	if limit > 0 && len(part) > limit {
		return part[:limit], fmt.Sprintf("(pagination: limit=%d, offset=%d)", limit, offset)
	}
	if offset > 0 {
		note = fmt.Sprintf("(pagination: offset=%d)", offset)
	}
	return part, note
}

// notes adds lines to a text, those that there are.
func notes(text string, lines ...string) string {
	for i, line := range slices.DeleteFunc(lines, func(s string) bool { return s == "" }) {
		if i == 0 && text != "" {
			text += "\n"
		}
		text += "\n" + line
	}
	return strings.TrimPrefix(text, "\n")
}
