package files

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"github.com/aymanbagabas/go-udiff"

	"parley/lazyregexp"
	"parley/tools"
	"parley/workspace"
)

type editArgs struct {
	Path       string `json:"path" limit:"min=1"`
	OldText    string `json:"old_text" jsonschema:"exactly as in the file; empty for a new file"`
	NewText    string `json:"new_text"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func (e editor) edit() tools.Tool {
	t := newTool("edit_file", "Replace text in a file of the workspace that you have read. old_text must "+
		"occur once: give enough lines, or set replace_all.", e.open, tainting(e.editFile))
	e.protect(&t, askEdit)
	t.Aliases = aliases("old_string", "old_text", "search", "old_text", "new_string", "new_text", "replace", "new_text")
	return t
}

const bom = "\ufeff"

// markdown matches names of files where spaces at the ends of lines have a meaning.
var markdown = lazyregexp.New(`(?i)\.(md|mdx|markdown)$`)

// editFile implements edit_file (D-059).
func (e editor) editFile(_ context.Context, c tools.Call, at workspace.Path, in editArgs) (r tools.Result, err error) {
	if strings.EqualFold(path.Ext(in.Path), ".ipynb") {
		return r, fail("%s is a notebook: use notebook_edit instead.", in.Path)
	}
	err = e.rewrite(c, at, false, func(old []byte) (data []byte, err error) {
		data, r.Text, err = in.apply(c, old)
		if warning := e.known.warning(c, at, sha256.Sum256(old)); len(old) > 0 && warning != "" {
			r.Text = warning + "\n" + r.Text
		}
		return data, err
	})
	return r, err
}

// apply returns the new content of the file, and the answer for the model. The old
// content is nil if there is no file.
func (in editArgs) apply(c tools.Call, old []byte) (data []byte, text string, err error) {
	switch {
	case in.OldText == "" && old == nil:
		return []byte(in.NewText), fmt.Sprintf("Successfully created %s", in.Path), nil
	case old == nil:
		return nil, "", in.noFile(c)
	case in.OldText == "" && len(bytes.TrimSpace(old)) > 0:
		return nil, "", fail(
			"Cannot create file: %s already exists and is not empty. Give the text to replace as old_text.", in.Path)
	case !utf8.Valid(old) || bytes.IndexByte(old, 0) >= 0:
		return nil, "", fail("Cannot edit binary file %s. Only UTF-8 text is supported.", in.Path)
	}
	body, marked := strings.CutPrefix(string(old), bom)
	edits := []udiff.Edit{{End: len(body), New: in.NewText}}
	var ambiguousIndent []int
	if in.OldText != "" {
		r := replacement{in.OldText, in.NewText, markdown.MatchString(in.Path)}
		edits, ambiguousIndent = r.edits(body)
	}
	changed, err := udiff.Apply(body, edits)
	switch {
	case err != nil:
		return nil, "", err
	case ambiguousIndent != nil:
		return nil, "", misindented(in.Path, in.OldText, body, ambiguousIndent)
	case len(edits) == 0:
		return nil, "", notFound(in.Path, in.OldText, body)
	case len(edits) > 1 && !in.ReplaceAll:
		return nil, "", ambiguous(body, edits)
	case changed == body:
		return nil, "", fail("The edit changes nothing: %s already has the new text.", in.Path)
	}
	if marked {
		changed = bom + changed
	}
	data = []byte(changed)
	return data, fmt.Sprintf("Successfully edited %s\n%s\nsha256 %.12s → %.12s",
		in.Path, diff(in.Path, in.Path, body, edits), digest(old), digest(data)), nil
}

// ambiguous asks the model for more context, because old_text occurs several times (D-060).
func ambiguous(text string, edits []udiff.Edit) error {
	var where []string
	for _, e := range edits[:min(3, len(edits))] {
		where = append(where, fmt.Sprintf("line %d", 1+strings.Count(text[:e.Start], "\n")))
	}
	if len(edits) > 3 {
		where = append(where, "...")
	}
	return fail(
		"Warning: old_text appears %d times at %s. Provide more context to make it unique, or set replace_all=true.",
		len(edits), strings.Join(where, ", "))
}

// noFile says that the file does not exist, and suggests similar names (D-063).
func (in editArgs) noFile(c tools.Call) error {
	dir, base := filepath.Split(in.Path)
	at, err := tools.Resolve(c, filepath.Clean(dir))
	if err != nil {
		return fs.ErrNotExist
	}
	entries, _ := c.Workspace.ReadDir(at)
	near := nearest(base, entries)
	if len(near) == 0 {
		return fs.ErrNotExist
	}
	for i := range near {
		near[i] = legible(dir + near[i])
	}
	return fail("File not found: %s\nDid you mean: %s?", in.Path, strings.Join(near, ", "))
}
