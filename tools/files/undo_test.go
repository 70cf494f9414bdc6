package files

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/chat"
	"parley/llm"
	"parley/store"
	"parley/texts"
	"parley/tools"
	"parley/workspace"
)

// in makes a call of a turn, which must succeed.
func (d desk) in(s chat.SessionID, turn, name, args string) {
	d.t.Helper()
	r := d.kit.Call(d.t.Context(), tools.Call{
		ToolCall: llm.ToolCall{ID: "call_1", Name: name, Args: args},
		Scope:    tools.Scope{Session: s, Workspace: d.w, Turn: turn},
	})
	if r.Failed {
		d.t.Fatalf("%s(%s): %s", name, args, r.Text)
	}
}

func (d desk) undo(s chat.SessionID, want ...string) {
	d.t.Helper()
	if got, err := Undo(d.w, s, texts.English().Gateway.Undo); !slices.Equal(got, want) || err != nil {
		d.t.Errorf("Undo says %q, %v; want %q", got, err, want)
	}
}

func (d desk) kept(s chat.SessionID) []string {
	found, err := filepath.Glob(filepath.Join(d.w.Dir(), tools.Folder(undoDir, s), "*"))
	if err != nil {
		d.t.Fatal(err)
	}
	return slices.DeleteFunc(found, func(name string) bool { return filepath.Ext(name) == ".json" })
}

// D-066: /undo takes back all that the last turn changed, byte for byte, and
// then what the one before it changed.
func TestUndo(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("a.md", "\ufeffone\r\ntwo\xff\r\n")
	d.put("gone.sh", "#!/bin/sh\n")
	d.put("kept/x", "x")
	if err := os.Chmod(filepath.Join(d.w.Dir(), "gone.sh"), 0o555); err != nil {
		t.Fatal(err)
	}
	d.in("s", "1", "write_file", `{"path":"a.md","content":"first"}`)
	d.in("s", "2", "edit_file", `{"path":"a.md","old_text":"first","new_text":"second"}`)
	d.in("s", "2", "write_file", `{"path":"a.md","content":" third","mode":"append"}`)
	d.in("s", "2", "write_file", `{"path":"new/deep/b.txt","content":"b"}`)
	d.in("s", "2", "file_delete", `{"path":"gone.sh"}`)
	d.in("s", "2", "file_mkdir", `{"path":"x/y"}`)
	d.in("s", "2", "file_mkdir", `{"path":"full"}`)
	d.in("s", "2", "file_mkdir", `{"path":"kept"}`)
	d.in("s", "2", "file_write", `{"path":"kept/x","content":"x"}`)
	d.in("s", "2", "file_write", `{"path":"kept/y","content":"y"}`)
	d.put("full/of", "things")

	d.undo("t") // nothing of another session
	d.undo("s", "kept/y removed", "full/ is not empty; left alone", "x/y/ removed", "gone.sh restored", "new/deep/b.txt removed", "a.md restored")
	d.holds("a.md", "first")
	d.holds("gone.sh", "#!/bin/sh\n")
	d.holds("kept/x", "x")
	for _, name := range []string{"new", "x", "kept/y"} {
		if _, err := os.Lstat(filepath.Join(d.w.Dir(), name)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", name, err)
		}
	}
	if info, err := os.Stat(filepath.Join(d.w.Dir(), "gone.sh")); err != nil || info.Mode().Perm() != 0o555 {
		t.Errorf("gone.sh: %v, %v", info.Mode(), err)
	}
	d.undo("s", "a.md restored")
	d.holds("a.md", "\ufeffone\r\ntwo\xff\r\n")
	d.undo("s")
	if kept := d.kept("s"); len(kept) > 0 {
		t.Errorf("left are %v", kept)
	}
}

// D-066: what subagents changed is undone with what their parent did in the turn.
func TestUndoOfSubagents(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.in("s", "1", "write_file", `{"path":"a","content":"parent"}`)
	r := d.kit.Call(t.Context(), tools.Call{
		ToolCall: llm.ToolCall{ID: "call_1", Name: "write_file", Args: `{"path":"b","content":"subagent"}`},
		Scope:    tools.Scope{Session: "agent:x", Turn: "task", Root: "s", RootTurn: "1", Workspace: d.w},
	})
	if r.Failed {
		t.Fatal(r.Text)
	}
	d.undo("agent:x")
	d.undo("s", "b removed", "a removed")
}

// D-066: what was made and deleted in one turn is not said to be removed, nor
// what was deleted and made again to be restored.
func TestUndoOfNothing(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("b.md", "b")
	d.put("c.md", "c")
	d.in("s", "1", "write_file", `{"path":"a.md","content":"a"}`)
	d.in("s", "1", "file_delete", `{"path":"a.md"}`)
	d.in("s", "1", "file_delete", `{"path":"b.md"}`)
	d.in("s", "1", "write_file", `{"path":"b.md","content":"b"}`)
	d.in("s", "1", "write_file", `{"path":"c.md","content":"d"}`)
	d.in("s", "1", "write_file", `{"path":"c.md","content":"c"}`)
	d.put("c.md", "mine")
	d.undo("s", "c.md was changed since; left alone", "b.md is as it was before the turn", "a.md is as it was before the turn")
	d.holds("a.md", "-")
	d.holds("b.md", "b")
	d.holds("c.md", "mine")
}

// What somebody else did to a file is theirs.
func TestUndoLeavesAlone(t *testing.T) {
	d := writer(t, nil)
	for _, name := range []string{"a.md", "b.md", "c.md", "dir.md", "in/e.md", "in/f.md", "ok.md"} {
		d.put(name, "before")
		d.in("s", "1", "write_file", fmt.Sprintf(`{"path":%q,"content":"after"}`, name))
	}
	d.in("s", "1", "write_file", `{"path":"a.md","content":"after all"}`)
	d.in("s", "1", "write_file", `{"path":"d.md","content":"new"}`)
	d.put("a.md", "mine")
	d.put("d.md", "mine")
	at := func(name string) string { return filepath.Join(d.w.Dir(), name) }
	for _, err := range []error{
		os.Remove(at("b.md")),
		os.Remove(at("c.md")), os.Symlink("ok.md", at("c.md")),
		os.Remove(at("dir.md")), os.Mkdir(at("dir.md"), 0o755),
		os.Rename(at("in"), at("out")), os.Symlink("out", at("in")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	alone := " was changed since; left alone"
	d.undo("s", "d.md"+alone, "a.md"+alone, "ok.md restored", "in/f.md"+alone, "in/e.md"+alone, "dir.md"+alone, "c.md"+alone, "b.md"+alone)
	d.holds("a.md", "mine")
	d.holds("b.md", "-")
	d.holds("d.md", "mine")
	d.holds("ok.md", "before")
	d.holds("out/e.md", "after")
}

// A file that was written to in place while it was kept cannot come back as
// it was, and nothing else does.
func TestUndoLost(t *testing.T) {
	d := writer(t, nil)
	d.put("a.md", "before")
	d.in("s", "1", "write_file", `{"path":"a.md","content":"after"}`)
	if err := os.WriteFile(d.kept("s")[0], []byte("broken"), 0o600); err != nil {
		t.Fatal(err)
	}
	d.undo("s", "a.md cannot be restored: its content is lost")
	d.holds("a.md", "after")
}

// Two sessions with one file: who comes second can undo, who came first
// cannot; then both can.
func TestUndoOfTwo(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("a.md", "0")
	for range 2 {
		d.in("s", "1", "write_file", `{"path":"a.md","content":"s"}`)
		d.in("t", "1", "write_file", `{"path":"a.md","content":"t"}`)
		d.undo("t", "a.md restored")
		d.holds("a.md", "s")
		d.undo("s", "a.md restored")
		d.holds("a.md", "0")
	}
	d.in("s", "1", "write_file", `{"path":"a.md","content":"s"}`)
	d.in("t", "1", "write_file", `{"path":"a.md","content":"t"}`)
	d.undo("s", "a.md was changed since; left alone")
	d.holds("a.md", "t")
}

// No edit of two sessions at once is lost, and neither does undoing lose one.
func TestEditAtOnce(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	const n = 10
	d.put("a.txt", "s\nt\n")
	var wg sync.WaitGroup
	for _, s := range []chat.SessionID{"s", "t"} {
		wg.Go(func() {
			for i := range n {
				if r := d.edit(s, "a.txt", string(s)+"\n", fmt.Sprintf("%s\n%s%d\n", s, s, i)); r.Failed {
					t.Error(r.Text)
				}
			}
		})
	}
	wg.Go(func() {
		for i := range n {
			turn := fmt.Sprint(i)
			d.in("u", turn, "write_file", `{"path":"u.txt","content":"x","mode":"append"}`)
			d.undo("u", "u.txt removed")
		}
	})
	wg.Wait()
	data, err := os.ReadFile(filepath.Join(d.w.Dir(), "a.txt"))
	if got := len(strings.Fields(string(data))); got != 2*n+2 || err != nil {
		t.Errorf("%d lines, %v; want %d", got, err, 2*n+2)
	}
	d.holds("u.txt", "-")
}

// snapshot is what is in a workspace.
func snapshot(t *testing.T, w *workspace.Workspace) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(w.Dir(), func(name string, e os.DirEntry, err error) error {
		rel, _ := filepath.Rel(w.Dir(), name)
		switch {
		case err != nil:
			return err
		case rel == ".parley":
			return filepath.SkipDir
		case e.IsDir():
			all[rel] = "folder"
			return nil
		}
		data, err := os.ReadFile(name)
		all[rel] = "file " + string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A crash may come after any step: the notes that were written then and the
// files that there were are what /undo finds.
func TestUndoAfterCrash(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	d.put("a.md", "before")
	d.put("b.md", "before")
	before := snapshot(t, d.w)
	d.in("s", "0", "write_file", `{"path":"c.md","content":"c"}`)
	d.undo("s", "c.md removed")

	// The note was written, the file was not.
	call := tools.Call{Scope: tools.Scope{Session: "s", Workspace: d.w, Turn: "1"}}
	crash := func(ch change) {
		defer func() { _ = recover() }()
		t.Fatal(recordChange(call, ch, func() error { panic("crash") }))
	}
	for _, ch := range []change{{Path: "a.md", After: digest([]byte("after"))}, {Path: "new/n.md", After: digest([]byte("n")), Made: []string{"new"}}, {Path: "b.md"}, {Path: "made", After: folder, Made: []string{"made"}}} {
		crash(ch)
	}
	if cs, err := changes(d.w, "s"); len(cs) != 4 || err != nil {
		t.Fatalf("the changes are %+v, %v", cs, err)
	}
	d.undo("s")
	if got := snapshot(t, d.w); fmt.Sprint(got) != fmt.Sprint(before) {
		t.Errorf("there is %v, want %v", got, before)
	}

	// And again, with a turn before it that can be undone.
	d.in("s", "1", "write_file", `{"path":"a.md","content":"one"}`)
	call.Turn = "2"
	crash(change{Path: "a.md", After: digest([]byte("two"))})
	d.undo("s", "a.md restored")
	d.holds("a.md", "before")

	// Half undone: the file was put back, the note is still there. Each
	// number of notes that there were during the undoing is tried.
	for i := range 4 {
		d.in("s", "3", "write_file", `{"path":"a.md","content":"one"}`)
		d.in("s", "3", "write_file", `{"path":"a.md","content":"two"}`)
		d.in("s", "3", "file_delete", `{"path":"b.md"}`)
		d.in("s", "3", "write_file", `{"path":"new/n.md","content":"n"}`)
		cs, err := changes(d.w, "s")
		for k := 0; k <= i && err == nil; k++ {
			ch := cs[len(cs)-1-k]
			if _, err = ch.undo(d.w); err == nil && k < i { // undone and known to be; then undone, and then the crash
				err = ch.discard(d.w)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if got, err := Undo(d.w, "s", texts.English().Gateway.Undo); err != nil || strings.Contains(strings.Join(got, ""), "left alone") {
			t.Errorf("after %d: %q, %v", i, got, err)
		}
		if got := snapshot(t, d.w); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Errorf("after %d there is %v, want %v", i, got, before)
		}
	}
}

// Whatever a turn does to files, undoing it makes them what they were.
func TestUndoIsTheInverse(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 0))
		d := writer(t, nil)
		d.put("a", "0")
		d.put("b/c", "0")
		before := snapshot(t, d.w)
		names := []string{"a", "b/c", "b/d", "e/f/g", "h"}
		for range 20 {
			name := names[r.IntN(len(names))]
			switch r.IntN(4) {
			case 0:
				d.call("s", "write_file", fmt.Sprintf(`{"path":%q,"content":"%d"}`, name, r.IntN(3)))
			case 1:
				d.call("s", "write_file", fmt.Sprintf(`{"path":%q,"content":"x","mode":"append"}`, name))
			case 2:
				d.call("s", "file_delete", fmt.Sprintf(`{"path":%q}`, name))
			case 3:
				d.call("s", "file_mkdir", fmt.Sprintf(`{"path":%q}`, filepath.Dir(name)))
			}
		}
		if _, err := Undo(d.w, "s", texts.English().Gateway.Undo); err != nil {
			t.Fatal(err)
		}
		if got := snapshot(t, d.w); fmt.Sprint(got) != fmt.Sprint(before) {
			t.Fatalf("seed %d: there is %v, want %v", seed, got, before)
		}
	}
}

// D-066, P28: the last 20 changes are kept, but the last turn's in any case; a
// session's are kept as long results are.
func TestUndoKept(t *testing.T) {
	t.Parallel()
	d := writer(t, nil)
	for i := range 22 {
		d.in("s", fmt.Sprint(i), "write_file", fmt.Sprintf(`{"path":"a","content":"%d"}`, i))
	}
	if n := len(d.kept("s")); n != undoKept {
		t.Errorf("%d are kept", n)
	}
	for range 22 {
		d.in("s", "last", "write_file", `{"path":"a","content":"x","mode":"append"}`)
	}
	d.undo("s", "a restored")
	d.holds("a", "21")

	d.in("s", "again", "write_file", `{"path":"a","content":"again"}`)
	old := time.Now().Add(-8 * 24 * time.Hour)
	folder := filepath.Join(d.w.Dir(), tools.Folder(undoDir, "s"))
	files, err := filepath.Glob(filepath.Join(folder, "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range append(files, folder) {
		if err := os.Chtimes(path, old, old); err != nil {
			t.Fatal(err)
		}
	}
	pass := store.Trimming{Before: old.Add(-time.Hour), Step: func(int) error { return nil }}
	if err := TrimUndo(d.w, pass); err != nil || len(d.kept("s")) == 0 {
		t.Errorf("%d are kept that are not old, %v", len(d.kept("s")), err)
	}
	pass.Before = time.Now().Add(-7 * 24 * time.Hour)
	if err := TrimUndo(d.w, pass); err != nil || len(d.kept("s")) > 0 {
		t.Errorf("%d are kept that are old, %v", len(d.kept("s")), err)
	}
	for i := range 33 {
		d.in(chat.SessionID(fmt.Sprint("t", i)), "1", "write_file", fmt.Sprintf(`{"path":"b","content":"%d"}`, i))
	}
	if found, _ := filepath.Glob(filepath.Join(d.w.Dir(), undoDir, "*")); len(found) != 32 {
		t.Errorf("%d sessions are kept", len(found))
	}
}

// R-S18: what is kept of one session is not for another, nor for its own model.
func TestUndoIsPrivate(t *testing.T) {
	d := writer(t, nil)
	d.put("a", "secret")
	d.in("s", "1", "write_file", `{"path":"a","content":""}`)
	path, _ := filepath.Rel(d.w.Dir(), d.kept("s")[0])
	for _, s := range []chat.SessionID{"s", "t"} {
		for name, args := range map[string]string{
			"read_file": "", "file_read": "", "file_delete": "", "file_exists": "", "write_file": `,"content":""`, "edit_file": `,"old_text":"s","new_text":""`,
			"file_mkdir": "", "list_dir": "", "file_list": "", "glob": `,"pattern":"*"`, "grep": `,"pattern":"secret"`,
		} {
			if r := d.call(s, name, fmt.Sprintf(`{"path":%q%s}`, path, args)); r.Code != tools.CodeDenied || strings.Contains(r.Text, "secret") {
				t.Errorf("%s by %s: %q", name, s, r.Text)
			}
		}
	}
}

// A change that failed is none: it does not stand before those that were made.
func TestUndoOfFailure(t *testing.T) {
	d := writer(t, nil)
	d.put("ro", "x")
	d.in("s", "1", "write_file", `{"path":"a","content":"a"}`)
	if err := os.Chmod(filepath.Join(d.w.Dir(), "ro"), 0o444); err != nil {
		t.Fatal(err)
	}
	if r := d.call("s", "write_file", `{"path":"ro","content":"y"}`); r.Text != "Error: ro: permission denied"+hint {
		t.Errorf("got %q", r.Text)
	}
	d.put("../new", "changed since")
	if err := os.Rename(filepath.Join(d.w.Dir(), "../new"), filepath.Join(d.w.Dir(), "ro")); err != nil {
		t.Fatal(err)
	}
	d.undo("s", "a removed")
	if kept := d.kept("s"); len(kept) > 0 {
		t.Errorf("left are %v", kept)
	}
}

// A broken note is an error, not none: nothing is written that
// could not be undone.
func TestUndoBroken(t *testing.T) {
	d := writer(t, nil)
	d.put("a", "x")
	d.put(tools.Folder(undoDir, "s")+"/00000001.json", "{")
	if got, err := Undo(d.w, "s", texts.English().Gateway.Undo); err == nil || !strings.HasPrefix(err.Error(), "undo: ") {
		t.Errorf("Undo: %v, %v", got, err)
	}
	if r := d.call("s", "write_file", `{"path":"a","content":""}`); !r.Failed {
		t.Errorf("got %q", r.Text)
	}
	d.holds("a", "x")
}

// A note says nothing but what it has to.
func TestNote(t *testing.T) {
	d := writer(t, nil)
	d.put("a", "x")
	d.in("s", "1", "write_file", `{"path":"a","content":"y"}`)
	data, err := d.w.Names().ReadFile(tools.Folder(undoDir, "s") + "/00000001.json")
	want := fmt.Sprintf(`{"turn":"1","path":"a","before":"%s","after":"%s"}`, digest([]byte("x")), digest([]byte("y")))
	if err != nil || string(data) != want {
		t.Errorf("%s, %v", data, err)
	}
}

// TestUndoIsBounded: what /undo needs of a session stays within bounds, however
// often a large file is changed in one turn: the latest changes can be undone.
func TestUndoIsBounded(t *testing.T) {
	ws, err := workspace.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if err := ws.Names().WriteFile("large.txt", make([]byte, 30<<20)); err != nil {
		t.Fatal(err)
	}
	c := tools.Call{Scope: tools.Scope{Session: "telegram:42", Turn: "one", Workspace: ws, From: chat.Sender{Role: chat.Owner}}}
	at, err := ws.Resolve("large.txt")
	if err != nil {
		t.Fatal(err)
	}
	p := editor{&readStates{}, Rules{}}
	for range 12 {
		if err := p.put(c, at, writeArgs{Path: "large.txt", Content: "x", Mode: "append"}); err != nil {
			t.Fatal(err)
		}
	}
	kept := int64(0)
	dir, err := ws.Named(tools.Folder(undoDir, c.Session))
	if err != nil {
		t.Fatal(err)
	}
	entries, err := ws.ReadDir(dir)
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		kept += info.Size()
	}
	if err != nil || kept > undoBytes || kept < undoBytes/2 {
		t.Errorf("%d MB are kept, %v", kept>>20, err)
	}
	if said, err := Undo(ws, c.Session, texts.English().Gateway.Undo); err != nil || len(said) != 1 {
		t.Errorf("undone: %q, %v", said, err)
	}
	if info, err := ws.Stat(at); err != nil || info.Size() >= 30<<20+12 {
		t.Errorf("the file: %v, %v", info, err)
	}
}
