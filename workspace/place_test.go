package workspace

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// R-S18: a link that a program puts in the place of a folder, after a Path was checked, leads nowhere.
func TestFolderBecomesLink(t *testing.T) {
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	names := w.Names()
	err = errors.Join(names.WriteFile("people/a/sub/x.md", []byte("mine")), names.WriteFile("people/b/x.md", []byte("theirs")))
	if err != nil {
		t.Fatal(err)
	}
	part := w.For("people/a", nil)
	at, err := part.Resolve("sub/x.md")
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := part.Resolve("sub/new.md")
	if err != nil {
		t.Fatal(err)
	}
	sub := filepath.Join(w.Dir(), "people/a/sub")
	if err := errors.Join(os.Rename(sub, sub+"-gone"), os.Symlink("../b", sub)); err != nil {
		t.Fatal(err)
	}
	if text, err := part.ReadFile(at); err == nil {
		t.Errorf("read %q", text)
	}
	for _, p := range []Path{at, fresh} {
		if err := part.WriteFile(p, []byte("poison")); err == nil {
			t.Errorf("%s was written", p)
		}
	}
	if err := part.Remove(at); err == nil {
		t.Error("it was removed")
	}
	entries, _ := os.ReadDir(filepath.Join(w.Dir(), "people/b"))
	if text, err := names.ReadFile("people/b/x.md"); string(text) != "theirs" || err != nil || len(entries) != 1 {
		t.Errorf("the other person has %q, %v, %v", text, err, entries)
	}
}
