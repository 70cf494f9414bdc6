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
// other cells keep each byte, and so does what is around them. A notebook
// that is not there is nil.
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
		done = fmt.Sprintf("Successfully deleted cell %d from %s", i, in.Path)
	case "insert":
		i = min(i+1, n)
		fresh := cell{{key: "metadata", raw: json.RawMessage("{}")}}
		if nb.ids {
			fresh.set("id", encode(nb.newID(key)))
		}
		nb.cells = slices.Insert(nb.cells, i, part{raw: in.fill(fresh)})
		done = fmt.Sprintf("Successfully inserted cell at index %d in %s", i, in.Path)
		if old == nil {
			done = fmt.Sprintf("Successfully created %s with 1 cell", in.Path)
		}
	default:
		cell, err := parts(nb.cells[i].raw, '{')
		if err != nil {
			return nil, "", fail("Cannot parse notebook %s: cell %d: %w", in.Path, i, err)
		}
		nb.cells[i].raw = in.fill(cell)
		done = fmt.Sprintf("Successfully edited cell %d in %s", i, in.Path)
	}
	return nb.bytes(), done, nil
}

// fill returns the cell with its new source, and maybe of another type.
func (in notebookArgs) fill(c cell) json.RawMessage {
	var was string
	_ = json.Unmarshal(c.get("cell_type"), &was) // what is no string is no type
	if source := c.get("source"); len(source) > 0 && source[0] == '"' {
		c.set("source", encode(in.NewSource))
	} else {
		c.set("source", encode(sourceLines(in.NewSource)))
	}
	kind := cmp.Or(in.CellType, was, "code")
	if kind == was {
		return c.bytes()
	}
	c.set("cell_type", encode(kind))
	if kind == "code" {
		c.set("execution_count", json.RawMessage("null"))
		c.set("outputs", json.RawMessage("[]"))
	} else {
		c = slices.DeleteFunc(c, func(p part) bool { return p.key == "outputs" || p.key == "execution_count" })
	}
	slices.SortStableFunc(c, func(a, b part) int { return strings.Compare(a.key, b.key) }) // as Jupyter does
	return c.bytes()
}

// sourceLines returns the lines of a cell as notebooks keep them.
func sourceLines(source string) []string {
	lines := strings.SplitAfter(source, "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	return lines
}

// A notebook is the JSON of one, taken apart.
type notebook struct {
	before, after []byte // the list of cells
	cells         []part
	ids           bool // cells have ids: nbformat 4.5 and later
}

func parseNotebook(text []byte) (nb notebook, err error) {
	var format struct {
		Major int `json:"nbformat"`
		Minor int `json:"nbformat_minor"`
	}
	top, err := parts(text, '{')
	if err == nil {
		err = json.Unmarshal(text, &format)
	}
	if err != nil {
		return nb, err
	}
	i := slices.IndexFunc(top, func(p part) bool { return p.key == "cells" })
	if i < 0 {
		return nb, errors.New("it has no list of cells, as nbformat 4 does")
	}
	list := top[i]
	nb.before, nb.after = text[:list.at], text[list.at+len(list.raw):]
	nb.ids = format.Major > 4 || format.Major == 4 && format.Minor >= 5
	nb.cells, err = parts(list.raw, '[')
	return nb, err
}

// newID returns an id that no cell has, always the same for a key.
func (nb notebook) newID(key string) (id string) {
	for used := true; used; {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
		id = key[:8]
		used = slices.ContainsFunc(nb.cells, func(p part) bool { return bytes.Contains(p.raw, []byte(id)) })
	}
	return id
}

func (nb notebook) bytes() []byte {
	list := []byte("[]")
	for i, c := range nb.cells {
		sep := ",\n  "
		if i == 0 {
			list, sep = []byte("["), "\n  "
		}
		list = append(append(list, sep...), c.raw...)
	}
	if len(nb.cells) > 0 {
		list = append(list, "\n ]"...)
	}
	return slices.Concat(nb.before, list, nb.after)
}

// A cell is the members of one, in order.
type cell []part

func (c cell) get(key string) json.RawMessage {
	for _, p := range c {
		if p.key == key {
			return p.raw
		}
	}
	return nil
}

func (c *cell) set(key string, raw json.RawMessage) {
	for i, p := range *c {
		if p.key == key {
			(*c)[i].raw = raw
			return
		}
	}
	*c = append(*c, part{key: key, raw: raw})
}

// bytes returns the cell as Jupyter writes it.
func (c cell) bytes() json.RawMessage {
	flat := []byte("{")
	for i, p := range c {
		if i > 0 {
			flat = append(flat, ',')
		}
		flat = slices.Concat(flat, encode(p.key), []byte(":"), p.raw)
	}
	var b bytes.Buffer
	_ = json.Indent(&b, append(flat, '}'), "  ", " ") // it is JSON
	return b.Bytes()
}

// A part is a member of a JSON object or an element of a list.
type part struct {
	key string
	raw json.RawMessage
	at  int // where raw is in the text
}

// parts takes an object or a list apart, which begins with open.
func parts(text []byte, open json.Delim) (all []part, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != open {
		return nil, fmt.Errorf("it should begin with %v", open)
	}
	for d.More() {
		var p part
		if open == '{' {
			t, err := d.Token()
			if err != nil {
				return nil, err
			}
			p.key, _ = t.(string)
		}
		if err := d.Decode(&p.raw); err != nil {
			return nil, err
		}
		p.at = int(d.InputOffset()) - len(p.raw)
		all = append(all, p)
	}
	return all, nil
}

// encode returns the JSON of a string or several, as Jupyter writes it.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v) // strings can be encoded
	return bytes.TrimSpace(b.Bytes())
}
