package files

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"parley/tools"
	"parley/workspace"
)

type notebookArgs struct {
	Path      string `json:"path" jsonschema:"the .ipynb file, relative to the workspace" limit:"min=1"`
	CellIndex int    `json:"cell_index" jsonschema:"number of a cell, from 0; insert adds one after it" limit:"min=0"`
	NewSource string `json:"new_source,omitempty" jsonschema:"the cell's whole new content"`
	CellType  string `json:"cell_type,omitempty" jsonschema:"default: as before, or code" limit:"enum=code|markdown"`
	EditMode  string `json:"edit_mode" jsonschema:"what to do" limit:"choice=replace|insert|delete"`
}

func (e editor) notebook() tools.Tool {
	t := newTool(
		"notebook_edit",
		"Replace, insert or delete a cell of a Jupyter notebook. insert creates the notebook if it does not exist.",
		e.open,
		tainting(func(_ context.Context, c tools.Call, at workspace.Path, in notebookArgs) (r tools.Result, err error) {
			if !strings.HasSuffix(in.Path, ".ipynb") {
				return r, fail("notebook_edit only works on .ipynb files. Use edit_file for other files.")
			}
			err = e.rewrite(c, at, false, func(old []byte) (text []byte, err error) {
				text, r.Text, err = in.edit(old, c.Key())
				return text, err
			})
			return r, err
		}),
	)
	t.Use = tools.Rare
	e.protect(&t, askEdit)
	t.Aliases = aliases("notebook_path", "path", "cell_number", "cell_index", "source", "new_source", "content",
		"new_source", "mode", "edit_mode")
	return t
}

const newNotebook = `{
	"cells": [],
	"metadata": {
		"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
		"language_info": {"name": "python"}
	},
	"nbformat": 4,
	"nbformat_minor": 5
}`

// edit returns the changed notebook, and the answer for the model. old is nil if the
// notebook does not exist.
func (in notebookArgs) edit(old []byte, key string) (text []byte, done string, err error) {
	text = old
	if old == nil {
		text = []byte(newNotebook)
	}
	nb, err := parseNotebook(text)
	n := len(nb.cells)
	i := in.CellIndex
	switch insert := in.EditMode == "insert"; {
	case err != nil:
		return nil, "", fail("Cannot parse notebook %s: %w", in.Path, err)
	case !insert && old == nil:
		return nil, "", fs.ErrNotExist
	case !insert && i >= n:
		return nil, "", fail("cell_index %d out of range (notebook has %d cells)", i, n)
	}
	switch in.EditMode {
	case "delete":
		nb.cells = slices.Delete(nb.cells, i, i+1)
		return nb.bytes(), fmt.Sprintf("Successfully deleted cell %d from %s", i, in.Path), nil
	case "insert":
		i = min(i, n-1) + 1
		nb.cells = slices.Insert(nb.cells, i, in.fill(nb.newCell(key)))
		done = fmt.Sprintf("Successfully inserted cell at index %d in %s", i, in.Path)
		if old == nil {
			done = fmt.Sprintf("Successfully created %s with 1 cell", in.Path)
		}
		return nb.bytes(), done, nil
	}
	var c object
	if json.Unmarshal(nb.cells[i], &c) != nil || c == nil {
		return nil, "", fail("Cannot parse notebook %s: cell %d: it should begin with {", in.Path, i)
	}
	nb.cells[i] = in.fill(c)
	return nb.bytes(), fmt.Sprintf("Successfully edited cell %d in %s", i, in.Path), nil
}

// An object is a JSON object: a cell, or a whole notebook.
type object map[string]json.RawMessage

// fill returns the cell with its new source, and with another type if the call gives
// one.
func (in notebookArgs) fill(c object) json.RawMessage {
	var was string
	_ = json.Unmarshal(c["cell_type"], &was) // a type that is not a string counts as none
	if bytes.HasPrefix(c["source"], []byte(`"`)) {
		c["source"] = encode(in.NewSource)
	} else {
		c["source"] = encode(slices.AppendSeq([]string{}, strings.Lines(in.NewSource)))
	}
	switch kind := cmp.Or(in.CellType, was, "code"); {
	case kind == was:
	case kind == "code":
		c["cell_type"] = encode(kind)
		c["execution_count"] = json.RawMessage("null")
		c["outputs"] = json.RawMessage("[]")
	default:
		c["cell_type"] = encode(kind)
		delete(c, "execution_count")
		delete(c, "outputs")
	}
	return encode(c)
}

// A notebook is a parsed Jupyter notebook.
type notebook struct {
	all   object
	cells []json.RawMessage
}

func parseNotebook(text []byte) (nb notebook, err error) {
	if err, broken := errors.AsType[*json.SyntaxError](json.Unmarshal(text, &nb.all)); broken {
		return nb, err
	}
	if json.Unmarshal(nb.all["cells"], &nb.cells) != nil || nb.cells == nil {
		return nb, errors.New("it has no list of cells as in nbformat 4")
	}
	return nb, nil
}

// newCell returns a new cell. From nbformat 4.5 on, cells have a unique ID, which
// follows from key.
func (nb notebook) newCell(key string) object {
	c := object{"metadata": json.RawMessage("{}")}
	var major, minor int
	_ = json.Unmarshal(nb.all["nbformat"], &major) // anything but a number counts as 0
	_ = json.Unmarshal(nb.all["nbformat_minor"], &minor)
	for used := major > 4 || major == 4 && minor >= 5; used; {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
		c["id"] = encode(key[:8])
		used = slices.ContainsFunc(nb.cells, func(c json.RawMessage) bool { return bytes.Contains(c, []byte(key[:8])) })
	}
	return c
}

// bytes returns the notebook as Jupyter writes it, with sorted members.
func (nb notebook) bytes() []byte {
	nb.all["cells"] = encode(nb.cells)
	var b bytes.Buffer
	_ = json.Indent(&b, encode(nb.all), "", " ") // encode returns valid JSON
	return append(b.Bytes(), '\n')
}

func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings and raw JSON cannot fail
	return bytes.TrimSpace(b.Bytes())
}
