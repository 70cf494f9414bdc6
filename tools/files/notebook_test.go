package files

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/texts"
	"parley/tools"
)

const before = `{
 "cells": [
  {
   "cell_type": "markdown",
   "id": "aa",
   "metadata": {},
   "source": [
    "# Ünïcode <b> & more\u2028\n",
    "text"
   ]
  },
  {
   "metadata": {"z": 1, "a": 1.0e5},
   "cell_type": "code",
   "outputs": [{"text": "1"}],
   "execution_count": 7,
   "id": "bb",
   "source": "print(1)"
  }
 ],
 "zeta": 12345678901234567890,
 "nbformat": 4,
 "nbformat_minor": 5,
 "alpha": null
}
`

// D-099: one golden file per mode, each byte of it.
func TestNotebook(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, args, want string }{
		{"replace", `{"path":"a.ipynb","cell_index":0,"new_source":"a <b>\n\"c\"\n"}`, "Successfully edited cell 0 in a.ipynb"},
		{"replace-text", `{"path":"a.ipynb","cell_index":1,"new_source":"print(2)\n"}`, "Successfully edited cell 1 in a.ipynb"},
		{"to-markdown", `{"path":"a.ipynb","cell_index":1,"new_source":"no code","cell_type":"markdown"}`, "Successfully edited cell 1 in a.ipynb"},
		{"to-code", `{"path":"a.ipynb","cell_index":0,"new_source":"","cell_type":"code"}`, "Successfully edited cell 0 in a.ipynb"},
		{"insert", `{"path":"a.ipynb","cell_index":0,"new_source":"x = 1","edit_mode":"insert"}`, "Successfully inserted cell at index 1 in a.ipynb"},
		{"insert-last", `{"path":"a.ipynb","cell_index":99,"new_source":"# end","cell_type":"markdown","edit_mode":"insert"}`, "Successfully inserted cell at index 2 in a.ipynb"},
		{"delete", `{"notebook_path":"a.ipynb","cell_number":0,"mode":"delete"}`, "Successfully deleted cell 0 from a.ipynb"},
		{"create", `{"path":"sub/new.ipynb","cell_index":5,"new_source":"1\n2","edit_mode":"insert"}`, "Successfully created sub/new.ipynb with 1 cell"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			d.put("a.ipynb", before)
			if r := d.call("s", "notebook_edit", c.args); r.Text != c.want {
				t.Errorf("D-099: %q, want %q", r.Text, c.want)
			}
			name := "a.ipynb"
			if c.name == "create" {
				name = "sub/new.ipynb"
			}
			got, err := os.ReadFile(filepath.Join(d.w.Dir(), name))
			if err != nil {
				t.Fatal(err)
			}
			golden := filepath.Join("testdata", "notebook", c.name+".ipynb")
			if *update {
				if err := os.MkdirAll(filepath.Dir(golden), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(golden, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if want, err := os.ReadFile(golden); !bytes.Equal(got, want) || err != nil {
				t.Errorf("D-099: %v, got\n%s", err, got)
			}
		})
	}
}

func TestNotebookRefused(t *testing.T) {
	d := newDesk(t)
	for name, text := range map[string]string{
		"a.ipynb": before, "old.ipynb": `{"nbformat":3,"worksheets":[]}`, "bad.ipynb": `{"cells":[`, "list.ipynb": "[]", "odd.ipynb": `{"cells":[1]}`,
		"none.ipynb": `{"cells":{}}`, "empty.ipynb": "", "one.ipynb": `{"cells":[{}],"nbformat":4,"nbformat_minor":4}`,
	} {
		d.put(name, text)
	}
	for _, c := range []struct{ args, want string }{
		{`{"path":"a.ipynb","cell_index":9,"edit_mode":"delete"}`, "Error: cell_index 9 out of range (notebook has 2 cells)" + hint},
		{`{"path":"a.ipynb","cell_index":2,"new_source":"x"}`, "Error: cell_index 2 out of range (notebook has 2 cells)" + hint},
		{`{"path":"a.ipynb","cell_index":-1}`, "Error: Invalid parameters for tool 'notebook_edit': cell_index must be >= 0" + hint},
		{`{"path":"a.py","cell_index":0}`, "Error: notebook_edit only works on .ipynb files. Use edit_file for other files." + hint},
		{`{"path":"nope.ipynb","cell_index":0}`, "Error: File not found: nope.ipynb" + hint},
		{`{"path":"old.ipynb","cell_index":0}`, "Error: Cannot parse notebook old.ipynb: it has no list of cells as in nbformat 4" + hint},
		{`{"path":"bad.ipynb","cell_index":0}`, "Error: Cannot parse notebook bad.ipynb: unexpected end of JSON input" + hint},
		{`{"path":"empty.ipynb","cell_index":0}`, "Error: Cannot parse notebook empty.ipynb: unexpected end of JSON input" + hint},
		{`{"path":"list.ipynb","cell_index":0}`, "Error: Cannot parse notebook list.ipynb: it has no list of cells as in nbformat 4" + hint},
		{`{"path":"none.ipynb","cell_index":0}`, "Error: Cannot parse notebook none.ipynb: it has no list of cells as in nbformat 4" + hint},
		{`{"path":"odd.ipynb","cell_index":0}`, "Error: Cannot parse notebook odd.ipynb: cell 0: it should begin with {" + hint},
		{`{"path":"../a.ipynb","cell_index":0}`, "Error: Path ../a.ipynb is outside allowed directory " + d.w.Dir() + hint},
		{`{"path":"one.ipynb","cell_index":0,"edit_mode":"delete"}`, "Successfully deleted cell 0 from one.ipynb"},
		{`{"path":"one.ipynb","cell_index":9223372036854775807,"edit_mode":"insert","cell_type":"markdown"}`, "Successfully inserted cell at index 0 in one.ipynb"},
	} {
		if r := d.call("s", "notebook_edit", c.args); r.Text != c.want {
			t.Errorf("D-099: notebook_edit(%s) = %q\nwant %q", c.args, r.Text, c.want)
		}
	}
	const want = "{\n \"cells\": [\n  {\n   \"cell_type\": \"markdown\",\n   \"metadata\": {},\n   \"source\": []\n  }\n ],\n \"nbformat\": 4,\n \"nbformat_minor\": 4\n}\n" // no ids before 4.5
	if got, _ := os.ReadFile(filepath.Join(d.w.Dir(), "one.ipynb")); string(got) != want {
		t.Errorf("one.ipynb holds %s", got)
	}
}

// R-S12, D-066: a notebook can be a standing rule, and what was changed comes back.
func TestNotebookGuard(t *testing.T) {
	d := newDesk(t)
	i := slices.IndexFunc(New(Rules{}), func(t tools.Tool) bool { return t.Name == "notebook_edit" })
	guard := New(Rules{Standing: func(name string) bool { return name == "rules/a.ipynb" }})[i].Guard
	call := tools.Call{Scope: tools.Scope{Workspace: d.w}, Input: map[string]any{"path": "./rules/a.ipynb"}}
	if !guard(call) {
		t.Error("R-S12: a standing rule is not guarded")
	}
	call.Input["path"] = "b.ipynb"
	if guard(call) {
		t.Error("R-S12: any notebook is guarded")
	}
	d.put("a.ipynb", before)
	d.call("s", "notebook_edit", `{"path":"a.ipynb","cell_index":0,"edit_mode":"delete"}`)
	if _, err := Undo(d.w, "s", texts.English().Gateway.Undo); err != nil {
		t.Fatal(err)
	}
	if got, _ := os.ReadFile(filepath.Join(d.w.Dir(), "a.ipynb")); string(got) != before {
		t.Errorf("D-066: after undo it is %s", got)
	}
}

// An edit leaves a notebook that is valid, with the other cells as they were.
func FuzzNotebook(f *testing.F) {
	f.Add(before, 0, "a\nb", uint8(0), uint8(0))
	f.Add(newNotebook, math.MaxInt, "x", uint8(1), uint8(1))
	f.Add(`{"cells":[{"source":"","source":[]},{}],"cells":[],"nbformat":4.0,"nbformat_minor":9}`, 1, "\xff\u2028", uint8(2), uint8(2))
	f.Add(`{"cells" : [ null ,[],{ } ] }`, 2, "", uint8(0), uint8(2))
	f.Fuzz(func(t *testing.T, text string, index int, source string, mode, kind uint8) {
		in := notebookArgs{Path: "x.ipynb", CellIndex: max(0, index), NewSource: source}
		in.EditMode = []string{"replace", "insert", "delete"}[mode%3]
		in.CellType = []string{"", "code", "markdown"}[kind%3]
		got, _, err := in.edit([]byte(text), "key")
		if err != nil {
			return
		}
		if !json.Valid(got) {
			t.Fatalf("%q becomes %q", text, got)
		}
		was, err := parseNotebook([]byte(text))
		now, err2 := parseNotebook(got)
		if err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		compact := func(raw json.RawMessage) string {
			var b bytes.Buffer
			_ = json.Compact(&b, raw)
			return b.String()
		}
		var a, b []string
		for i, c := range was.cells {
			if in.EditMode == "insert" || i != in.CellIndex {
				a = append(a, compact(c))
			}
		}
		for i, c := range now.cells {
			if in.EditMode == "insert" && i != min(in.CellIndex, len(was.cells)-1)+1 || in.EditMode == "delete" || in.EditMode == "replace" && i != in.CellIndex {
				b = append(b, compact(c))
			}
		}
		delete(was.all, "cells")
		delete(now.all, "cells")
		same := func(a, b json.RawMessage) bool { return compact(a) == compact(b) }
		if !slices.Equal(a, b) || !maps.EqualFunc(was.all, now.all, same) {
			t.Errorf("%s of cell %d changes more than that: %q, was %q", in.EditMode, in.CellIndex, got, text)
		}
		if in.EditMode == "delete" || strings.Contains(text, "\ufffd") {
			return
		}
		var c struct{ Source any }
		i := in.CellIndex
		if in.EditMode == "insert" {
			i = min(i, len(was.cells)-1) + 1
		}
		if err := json.Unmarshal(now.cells[i], &c); err != nil {
			t.Fatal(err)
		}
	})
}
