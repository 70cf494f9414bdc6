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
)

type notebookArgs struct {
	Path      string `json:"path" jsonschema:"the .ipynb file, relative to the workspace" limit:"min=1"`
	CellIndex int    `json:"cell_index" jsonschema:"number of the cell, from 0; insert puts a new one after it" limit:"min=0"`
	NewSource string `json:"new_source,omitempty" jsonschema:"all that the cell is to hold"`
	CellType  string `json:"cell_type,omitempty" jsonschema:"what the cell is to be; if left out it stays what it is, and a new one is code" limit:"enum=code|markdown"`
	EditMode  string `json:"edit_mode,omitempty" jsonschema:"what to do" limit:"enum=replace|insert|delete default=replace"`
}

func (p pen) notebook() tools.Tool {
	t := tool("notebook_edit", "Editing", "Replace, insert or delete a cell of a Jupyter notebook. insert makes the notebook if it is not there.",
		func(_ context.Context, c tools.Call, name string, in notebookArgs) (r tools.Result, err error) {
			if !strings.HasSuffix(in.Path, ".ipynb") {
				return r, fail("notebook_edit only works on .ipynb files. Use edit_file for other files.")
			}
			err = p.rewrite(c, name, func(old []byte) (text []byte, err error) {
				text, r.Text, err = in.edit(old, c.Key())
				return text, err
			})
			return r, err
		})
	t.Guard = p.guards
	t.Aliases = named("notebook_path", "path", "cell_number", "cell_index", "source", "new_source", "content", "new_source", "mode", "edit_mode")
	return t
}

// newNotebook is a notebook without cells, as Jupyter would write it.
const newNotebook = `{
 "cells": [],
 "metadata": {
  "kernelspec": {
   "display_name": "Python 3",
   "language": "python",
   "name": "python3"
  },
  "language_info": {
   "name": "python"
  }
 },
 "nbformat": 4,
 "nbformat_minor": 5
}
`

// edit returns the notebook with the change made, and what to say of it. The
// other cells keep each byte, and so does what is around them; the members of
// the cell are sorted. A notebook that is not there is nil.
func (in notebookArgs) edit(old []byte, key string) (text []byte, done string, err error) {
	text = old
	if old == nil {
		text = []byte(newNotebook)
	}
	nb, err := parseNotebook(text)
	n, i := len(nb.cells), in.CellIndex
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
		i = min(i+1, n)
		fresh := cell{"metadata": json.RawMessage("{}")}
		if nb.ids {
			fresh["id"] = encode(nb.newID(key))
		}
		nb.cells = slices.Insert(nb.cells, i, in.fill(fresh))
		done = fmt.Sprintf("Successfully inserted cell at index %d in %s", i, in.Path)
		if old == nil {
			done = fmt.Sprintf("Successfully created %s with 1 cell", in.Path)
		}
		return nb.bytes(), done, nil
	}
	var c cell
	if json.Unmarshal(nb.cells[i], &c) != nil || c == nil {
		return nil, "", fail("Cannot parse notebook %s: cell %d: it should begin with {", in.Path, i)
	}
	nb.cells[i] = in.fill(c)
	return nb.bytes(), fmt.Sprintf("Successfully edited cell %d in %s", i, in.Path), nil
}

// A cell is the members of one. It is written as Jupyter does, which sorts them.
type cell map[string]json.RawMessage

// fill returns the cell with its new source, and maybe of another type.
func (in notebookArgs) fill(c cell) json.RawMessage {
	var was string
	_ = json.Unmarshal(c["cell_type"], &was) // what is no string is no type
	if bytes.HasPrefix(c["source"], []byte(`"`)) {
		c["source"] = encode(in.NewSource)
	} else {
		c["source"] = encode(slices.AppendSeq([]string{}, strings.Lines(in.NewSource)))
	}
	switch kind := cmp.Or(in.CellType, was, "code"); {
	case kind == was:
	case kind == "code":
		c["cell_type"], c["execution_count"], c["outputs"] = encode(kind), json.RawMessage("null"), json.RawMessage("[]")
	default:
		c["cell_type"] = encode(kind)
		delete(c, "execution_count")
		delete(c, "outputs")
	}
	return encode(c)
}

// A notebook is the JSON of one, taken apart.
type notebook struct {
	before, after []byte // the list of cells
	cells         []json.RawMessage
	ids           bool // cells have ids: nbformat 4.5 and later
}

func parseNotebook(text []byte) (nb notebook, err error) {
	var format struct {
		Major int `json:"nbformat"`
		Minor int `json:"nbformat_minor"`
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return nb, errors.New("it should begin with {")
	}
	var list json.RawMessage
	for name := any(nil); err == nil && name != "cells"; err = d.Decode(&list) {
		if !d.More() {
			return nb, errors.New("it has no list of cells, as nbformat 4 does")
		}
		if name, err = d.Token(); err != nil {
			return nb, err
		}
	}
	if err == nil {
		err = json.Unmarshal(text, &format)
	}
	if err != nil {
		return nb, err
	}
	if json.Unmarshal(list, &nb.cells) != nil || nb.cells == nil {
		return nb, errors.New("it should begin with [")
	}
	end := int(d.InputOffset())
	nb.before, nb.after = text[:end-len(list)], text[end:]
	nb.ids = format.Major > 4 || format.Major == 4 && format.Minor >= 5
	return nb, nil
}

// newID returns an id that no cell has, always the same for a key.
func (nb notebook) newID(key string) (id string) {
	for used := true; used; {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
		id = key[:8]
		used = slices.ContainsFunc(nb.cells, func(c json.RawMessage) bool { return bytes.Contains(c, []byte(id)) })
	}
	return id
}

func (nb notebook) bytes() []byte {
	list := []byte("[")
	for i, c := range nb.cells {
		if i > 0 {
			list = append(list, ',')
		}
		list = append(append(list, "\n  "...), c...)
	}
	if len(nb.cells) > 0 {
		list = append(list, "\n "...)
	}
	return slices.Concat(nb.before, list, []byte("]"), nb.after)
}

// encode returns the JSON of a part of a cell, or of one, as Jupyter writes it.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("  ", " ")
	_ = e.Encode(v) // it is JSON already, or strings
	return bytes.TrimSpace(b.Bytes())
}
