package files

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"parley/chat"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// reopened returns d with another process's view of its workspace, in which a
// person may have so many bytes.
func (d desk) reopened(most int64) desk {
	d.t.Helper()
	w, err := workspace.Open(d.w.Dir())
	if err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() { w.Close() })
	made := New(Rules{MaxStored: func() int64 { return most }}, os.Args[0], "pdf-text")
	kit, err := tools.NewKit(d.t.Context(), tools.Scope{}, []tools.Source{tools.Fixed(made)}, tools.Standard(tools.StandardConfig{})...)
	if err != nil {
		d.t.Fatal(err)
	}
	return desk{d.t, w, kit}
}

// writes has a turn write a file of so many blocks of the disk, and checks
// whether it may.
func (d desk) writes(o origin, name string, blocks int, want bool) {
	d.t.Helper()
	r := d.as(o, "turn", "write_file", fmt.Sprintf(`{"path":%q,"content":%q}`, name, strings.Repeat("x", blocks*4096)))
	if refused := strings.Contains(r.Text, "Nothing was written: this person's files use"); refused == want || r.Failed == want {
		d.t.Errorf("%d blocks of %s: refused %v, %.200s", blocks, name, refused, r.Text)
	}
}

// deletes has Anna's turn delete a file, to which an owner says yes.
func (d desk) deletes(name string) {
	d.t.Helper()
	made := New(Rules{}, os.Args[0], "pdf-text")
	c := tools.Call{Scope: tools.Scope{
		Session: "net:7", At: chat.Address{Channel: "net", Chat: "7"}, From: ofAnna.who, Workspace: d.w, Turn: "later",
	}, Input: map[string]any{"path": name}}
	c.Args = fmt.Sprintf(`{"path":%q}`, name)
	i := slices.IndexFunc(made, func(t tools.Tool) bool { return t.Name == "file_delete" })
	if r, err := made[i].Run(d.t.Context(), c); err != nil || r.Failed {
		d.t.Errorf("delete %s: %s, %v", name, r.Text, err)
	}
}

// Whoever is no owner has so much of the workspace and no more, over restarts
// and all tools, also in untrusted turns; what is deleted is free again.
func TestStoredBytes(t *testing.T) {
	const most = 10 * 4096
	d := newDesk(t).reopened(most)
	d.writes(ofAnna, "a.txt", 6, true)
	d.writes(ofAnna, "b.txt", 5, false)
	d.writes(ofAnna, "b.txt", 4, true)
	d.writes(ofAnna, "c.txt", 1, false)
	d.writes(ofAnnPage, "c.txt", 1, false)
	d.writes(ofAnna, "b.txt", 4, true) // no larger
	for name, args := range map[string]string{
		"write_file": `{"path":"a.txt","content":"y","mode":"append"}`, "file_write": `{"path":"e.txt","content":"y"}`,
		"edit_file": `{"path":"e.txt","old_text":"","new_text":"y"}`, "file_mkdir": `{"path":"folder"}`,
	} {
		if r := d.as(ofAnna, "turn", name, args); !r.Failed || !strings.Contains(r.Text, "Nothing was written") {
			t.Errorf("%s: %.200s", name, r.Text)
		}
	}
	d = d.reopened(most)
	d.writes(ofAnna, "c.txt", 1, false)
	d.writes(ofBert, "bert.txt", 10, true) // has files of his own
	d.writes(ofGroup, "group.txt", 10, true)
	d.writes(ofOwner, "owner.txt", 100, true)
	d.writes(ofPage, "page.txt", 100, true)

	d.writes(ofAnna, "b.txt", 2, true)
	d.writes(ofAnna, "c.txt", 2, true)
	d.deletes("a.txt")
	d.writes(ofAnna, "d.txt", 6, true)
	d.writes(ofAnna, "e.txt", 1, false)
	d.writes(ofOwner, "d.txt", 6, true) // it is the owner's now
	d = d.reopened(most)
	d.writes(ofAnna, "e.txt", 6, true)
	d.writes(ofAnna, "f.txt", 1, false)
	d.writes(ofBert, "e.txt", 1, false) // it would count for him
}

// What somebody sent counts, and what /undo brings back does.
func TestStoredElsewhere(t *testing.T) {
	const most = 10 * 4096
	d := newDesk(t).reopened(most)
	folder := filepath.Join(d.w.Dir(), chat.Person("net:7").InboxFolder(), "2026-01-01")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 4 { // too small to matter by their length
		if err := os.WriteFile(filepath.Join(folder, fmt.Sprint(i)), []byte("z"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	d.writes(ofAnna, "a.txt", 7, false)
	d.writes(ofAnna, "a.txt", 6, true)
	if r := d.as(ofAnna, "later", "write_file", `{"path":"a.txt","content":""}`); r.Failed {
		t.Error(r.Text)
	}
	d.deletes("a.txt")
	d.writes(ofAnna, "b.txt", 6, true)
	if err := os.Remove(filepath.Join(d.w.Dir(), "b.txt")); err != nil {
		t.Fatal(err)
	}
	at := chat.Address{Channel: "net", Chat: "7"}
	if changed, err := Undo(d.w, at.Session(), texts.English().Gateway.Undo); fmt.Sprint(changed) != "[a.txt restored]" || err != nil {
		t.Fatal(changed, err)
	}
	d = d.reopened(most)
	d.writes(ofAnna, "c.txt", 1, false)
	if err := os.RemoveAll(folder); err != nil { // by hand
		t.Fatal(err)
	}
	d.writes(ofAnna, "c.txt", 4, true)
}
