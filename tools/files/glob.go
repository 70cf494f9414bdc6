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
	Pattern   string `json:"pattern" jsonschema:"*.go (a name, at any depth) or src/**/*_test.go" limit:"min=1"`
	Path      string `json:"path" jsonschema:"the directory to search" limit:"default=."`
	HeadLimit int    `json:"head_limit" jsonschema:"maximum of paths; 0 is all" limit:"min=0 max=1000 default=250"`
	Offset    int    `json:"offset,omitempty" jsonschema:"number of paths to skip" limit:"min=0 max=100000"`
	EntryType string `json:"entry_type" jsonschema:"what to look for" limit:"choice=files|dirs|both"`
}

// globs returns glob, and the same tool under its other name.
func globs() []tools.Tool {
	t := newTool(
		"glob",
		"Find files of the workspace by name, the newest first, without folders such as .git.",
		tools.Resolve,
		glob,
	)
	t.Use = tools.Rare
	t.ReadOnly = true
	t.Preview = previewOf("pattern")
	t.Aliases = aliases("max_results", "head_limit", "limit", "head_limit")
	other := t
	other.Name = "find_files"
	other.AliasOf = t.Name
	return []tools.Tool{t, other}
}

// glob implements the tool glob (D-069).
func glob(ctx context.Context, c tools.Call, dir workspace.Path, in globArgs) (tools.Result, error) {
	var found []entry
	unseen, err := walker{dir, "Path", in.Pattern, false}.walk(ctx, c, func(at workspace.Path, d fs.DirEntry) {
		info, err := d.Info()
		if err != nil || in.EntryType != "both" && d.IsDir() != (in.EntryType == "dirs") {
			return // an error means that the file was removed in the meantime
		}
		found = append(found, entry{at: at, dir: d.IsDir(), mtime: info.ModTime().UnixNano()})
	})
	sortNewest(found)
	shown, note := paged(found, in.HeadLimit, in.Offset)
	text := strings.Join(names(c.Workspace, shown), "\n")
	if len(found) == 0 {
		text = fmt.Sprintf("No paths matched pattern '%s' in %s", in.Pattern, pathOf(c))
		note = ""
	}
	r := tools.Result{Text: notes(text, note, unseen)}
	r.TaintBy(c.Scope, paths(shown)...)
	return r, err
}

// An entry is a file or folder that was found.
type entry struct {
	at    workspace.Path
	dir   bool
	mtime int64 // Unix time in nanoseconds
	n     int   // matches in the file
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

// names returns the names of the entries for the model.
func names(w *workspace.Workspace, found []entry) []string {
	all := make([]string, len(found))
	for i, f := range found {
		name := w.View().Shown(f.at)
		if f.dir {
			name += "/"
		}
		all[i] = legible(name)
	}
	return all
}

// paged returns the part of lines that a call asked for, and a note if that is not all.
// A limit of 0 is no limit.
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

// notes appends the lines that are not empty to text, after a blank line.
func notes(text string, lines ...string) string {
	for i, line := range slices.DeleteFunc(lines, func(s string) bool { return s == "" }) {
		if i == 0 && text != "" {
			text += "\n"
		}
		text += "\n" + line
	}
	return strings.TrimPrefix(text, "\n")
}
