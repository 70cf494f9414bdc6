package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// R-S18: what was checked is what is opened. A file whose name begins with "~"
// is that file, however often its name is written down and read back.
func TestNamed(t *testing.T) {
	w, base := home(t)
	write(t, filepath.Join(w.Dir(), "MEMORY.md"), "the owner's")
	write(t, filepath.Join(w.Dir(), "~", "MEMORY.md"), "somebody's")
	write(t, filepath.Join(w.Dir(), "~x"), "somebody's")
	for text, want := range map[string]string{
		"./~/MEMORY.md": "somebody's", "./~x": "somebody's", "~x": "somebody's", "~/~/MEMORY.md": "somebody's",
		"~/MEMORY.md": "the owner's", "MEMORY.md": "the owner's",
	} {
		p, err := w.Resolve(text)
		must(t, err)
		again, err := w.Named(p.String())
		if again != p || err != nil {
			t.Errorf("Named(%q) = %q, %v", p, again, err)
		}
		for _, read := range []func() ([]byte, error){
			func() ([]byte, error) { return w.ReadFile(p) },
			func() ([]byte, error) { return w.Names().ReadFile(p.String()) },
		} {
			if data, err := read(); string(data) != want || err != nil {
				t.Errorf("%q holds %q, %v; want %q", text, data, err, want)
			}
		}
		f, err := w.OpenNamed(p.String())
		must(t, err)
		must(t, f.Close())
	}
	must(t, os.Symlink("MEMORY.md", filepath.Join(w.Dir(), "link")))
	must(t, os.Symlink(base, filepath.Join(w.Dir(), "out")))
	for _, name := range []string{"", "/", "a/", "./MEMORY.md", "a/../MEMORY.md", "../secret", "a//b", "link", "out/secret", w.Dir() + "/MEMORY.md"} {
		if p, err := w.Named(name); err == nil {
			t.Errorf("Named(%q) = %q, want an error", name, p)
		}
		if f, err := w.OpenNamed(name); err == nil {
			_ = f.Close()
			t.Errorf("OpenNamed(%q) opened it", name)
		}
	}
	if data, err := w.Names().ReadFile("link"); string(data) != "the owner's" || err != nil {
		t.Errorf("through a person's link was read %q, %v", data, err)
	}
	if _, err := w.Names().ReadFile("out/secret"); !errors.As(err, new(*OutsideError)) {
		t.Errorf("out: %v", err)
	}
}

// Links are followed by whatever they lead to, and only within the workspace.
func TestStatByName(t *testing.T) {
	w, base := home(t)
	dir := w.Dir()
	must(t, os.WriteFile(filepath.Join(base, "secret"), []byte("secret"), 0o600))
	links := map[string]string{
		"relative": "sub/in.txt", "absolute": filepath.Join(dir, "sub", "in.txt"), "dangling": "nothing",
		"up": "../secret", "out": filepath.Join(base, "secret"),
	}
	for name, target := range links {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	for _, name := range []string{"sub/in.txt", "relative", "absolute"} {
		if info, err := w.Names().Stat(name); err != nil || !info.Mode().IsRegular() {
			t.Errorf("Stat(%q) = %v, %v, want a file", name, info, err)
		}
	}
	for _, name := range []string{"up", "out", "../secret", "sub/../sub/in.txt", ""} {
		if info, err := w.Names().Stat(name); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat(%q) = %v, %v, want a refusal", name, info, err)
		}
	}
	for _, name := range []string{"dangling", "nothing", "no/folder"} {
		if _, err := w.Names().Stat(name); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Stat(%q): %v, want that there is none", name, err)
		}
	}
}

// R-S18: a hard link to a file of the data folder is refused however deep that
// file lies; that the workspace lies in the data folder itself is no hindrance.
func TestProtectFolders(t *testing.T) {
	data := t.TempDir()
	w, err := Open(filepath.Join(data, "workspace"))
	must(t, err)
	defer w.Close()
	must(t, w.Protect(data))
	write(t, filepath.Join(data, "backups", "parley-1.db"), secret)
	write(t, filepath.Join(data, "a", "b", "c", "d"), secret)
	for link, to := range map[string]string{"one": "backups/parley-1.db", "two": "a/b/c/d"} {
		must(t, os.Link(filepath.Join(data, to), filepath.Join(w.Dir(), link)))
		if _, err := readFileAt(w, link); !errors.Is(err, ErrProtected) {
			t.Errorf("read %s: %v, want ErrProtected", to, err)
		}
		if err := writeFileAt(w, link, nil); !errors.Is(err, ErrProtected) {
			t.Errorf("write %s: %v, want ErrProtected", to, err)
		}
	}
	must(t, writeFileAt(w, "mine", []byte("mine")))
	must(t, os.Link(filepath.Join(w.Dir(), "mine"), filepath.Join(w.Dir(), "too")))
	if text, err := readFileAt(w, "too"); string(text) != "mine" || err != nil {
		t.Errorf("a hard link within the workspace: %q, %v", text, err)
	}
	for _, inside := range []string{w.Dir(), filepath.Join(w.Dir(), "sub"), filepath.Join(w.Dir(), "not", "there")} {
		if err := w.Protect(inside); err == nil {
			t.Errorf("Protect(%s) = nil, want an error: it is in the workspace", inside)
		}
	}
}

// What Parley writes is for its user's eyes only, whatever the mode was; what
// was executable stays so.
func TestPrivateModes(t *testing.T) {
	w, _ := home(t)
	must(t, writeFileAt(w, "a/b/c.txt", nil))
	write(t, filepath.Join(w.Dir(), "wide"), "old")
	must(t, os.Chmod(filepath.Join(w.Dir(), "wide"), 0o664))
	must(t, writeFileAt(w, "wide", nil))
	write(t, filepath.Join(w.Dir(), "run.sh"), "old")
	must(t, os.Chmod(filepath.Join(w.Dir(), "run.sh"), 0o755))
	must(t, writeFileAt(w, "run.sh", nil))
	p, err := w.Resolve("made/by/name")
	must(t, err)
	must(t, w.MkdirAll(p))
	must(t, w.Names().WriteFile("by/name.md", nil))
	for name, want := range map[string]fs.FileMode{
		"a": 0o700, "a/b": 0o700, "a/b/c.txt": 0o600, "wide": 0o600, "run.sh": 0o700, "made": 0o700, "made/by/name": 0o700, "by": 0o700, "by/name.md": 0o600,
	} {
		info, err := os.Stat(filepath.Join(w.Dir(), name))
		must(t, err)
		if info.Mode().Perm() != want {
			t.Errorf("%s has mode %v, want %v", name, info.Mode().Perm(), want)
		}
	}
}

// An origin stays with its file until it is cleared or the file is removed.
func TestOrigin(t *testing.T) {
	w, _ := home(t)
	expect := func(text, author string, found bool) {
		t.Helper()
		p, err := w.Resolve(text)
		must(t, err)
		if a, ok := w.Origin(p); a != author || ok != found {
			t.Errorf("Origin(%s) = %q, %v; want %q, %v", text, a, ok, author, found)
		}
	}
	path := func(text string) Path {
		p, err := w.Resolve(text)
		must(t, err)
		return p
	}
	expect("a.txt", "", false)
	must(t, w.SetOrigin(path("a.txt"), ""))
	expect("a.txt", "", true)
	must(t, w.SetOrigin(path("sub/b.txt"), "test:7"))
	must(t, writeFileAt(w, "sub/b.txt", []byte("b")))
	expect("~/sub/b.txt", "test:7", true)
	expect("sub/B.TXT", "", true) // some disks take it for the same
	again, err := Open(w.Dir())
	must(t, err)
	defer again.Close()
	if a, ok := again.Origin(path("sub/b.txt")); a != "test:7" || !ok {
		t.Errorf("after a restart: %q, %v", a, ok)
	}
	must(t, w.SetOrigin(path("sub/B.txt"), ""))
	must(t, w.ClearOrigin(path("sub/b.txt")))
	expect("sub/B.txt", "", true)
	must(t, w.ClearOrigin(path("sub/B.txt")))
	expect("sub/b.txt", "", false)
	must(t, w.SetOrigin(path("sub/b.txt"), "test:7"))
	must(t, w.Remove(path("sub/b.txt")))
	expect("sub/b.txt", "", false)
	must(t, w.ClearOrigin(path("a.txt")))
	if left, err := os.ReadDir(filepath.Join(w.Dir(), filepath.FromSlash(originsDir))); len(left) != 0 || err != nil {
		t.Errorf("left over: %v, %v", left, err)
	}
	must(t, w.SetOrigin(path("a.txt"), "test:7"))
	must(t, filepath.WalkDir(filepath.Join(w.Dir(), filepath.FromSlash(originsDir)), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			err = os.WriteFile(path, []byte("damaged"), 0o600)
		}
		return err
	}))
	expect("a.txt", "", true) // nobody's, for want of better knowledge
	must(t, w.ClearOrigin(path("a.txt")))
	expect("a.txt", "", false)
}

// R-S12: the origin of all that is in a folder also holds of what comes later, and not of the folder's own name.
func TestOriginBelow(t *testing.T) {
	w, err := Open(t.TempDir())
	must(t, err)
	defer w.Close()
	path := func(name string) Path {
		p, err := w.Resolve(name)
		must(t, err)
		return p
	}
	must(t, OriginsOf(w).SetBelow(path("a/repo"), ""))
	must(t, w.SetOrigin(path("b.txt"), "test:7"))
	for name, want := range map[string]bool{
		"a/repo/x/y.txt": true, "a/repo/x": true, "A/Repo/z": true, "a/repo": false, "a/other": false, "b.txt": false,
	} {
		if _, found := OriginsOf(w).Above(path(name)); found != want {
			t.Errorf("%s: %v, want %v", name, found, want)
		}
	}
	if _, found := w.Origin(path("a/repo")); found {
		t.Error("the folder itself has an origin")
	}
	all, err := OriginsOf(w).All()
	must(t, err)
	if len(all) != 2 || !slices.Contains(all, Origin{"a/repo", true, ""}) || !slices.Contains(all, Origin{"b.txt", false, "test:7"}) {
		t.Errorf("%+v", all)
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), record(path("a/repo"))), []byte("damaged"), 0o600))
	if _, found := OriginsOf(w).Above(path("a/repo/x")); !found {
		t.Error("a damaged record counts for nothing")
	}
	if all, err := OriginsOf(w).All(); err == nil {
		t.Errorf("a damaged record is left out: %+v", all)
	}
	must(t, OriginsOf(w).SetBelow(path("a/repo"), "x"))
	must(t, OriginsOf(w).ClearBelow(path("a/repo")))
	if _, found := OriginsOf(w).Above(path("a/repo/x")); found {
		t.Error("it has an origin after that was cleared")
	}
}

// Records of files that are gone are removed; those of files that are there stay, and so do those in a
// folder that is empty, whose disk may be missing.
func TestPruneOrigins(t *testing.T) {
	w, err := Open(t.TempDir())
	must(t, err)
	defer w.Close()
	path := func(name string) Path {
		p, err := w.Resolve(name)
		must(t, err)
		return p
	}
	for _, name := range []string{"work/there.txt", "work/repo/x.txt"} {
		must(t, writeFileAt(w, name, []byte("x")))
	}
	must(t, os.Mkdir(filepath.Join(w.Dir(), "disk"), 0o700))
	must(t, os.Symlink("nowhere", filepath.Join(w.Dir(), "link")))
	records := OriginsOf(w)
	for _, name := range []string{"work/there.txt", "work/gone.txt", "work/gone/x.txt", "work/there.txt/x", "gone.txt", "disk/a.txt"} {
		must(t, records.change(Path{name: name}, func(authors map[string]string) { authors[name] = "" }))
	}
	must(t, records.SetBelow(path("work/repo"), ""))
	must(t, records.SetBelow(path("work/gone"), ""))
	must(t, w.SetOrigin(path("work/repo"), ""))
	must(t, records.change(Path{name: "link"}, func(authors map[string]string) { authors["link"] = "" }))
	n, err := records.prune()
	must(t, err)
	all, err := records.All()
	must(t, err)
	var kept []string
	for _, o := range all {
		kept = append(kept, fmt.Sprint(o.Name, o.Below))
	}
	slices.Sort(kept)
	want := []string{"disk/a.txtfalse", "linkfalse", "work/repofalse", "work/repotrue", "work/there.txtfalse"}
	if n != 5 || !slices.Equal(kept, want) {
		t.Errorf("%d were removed, and left are %q", n, kept)
	}
	must(t, os.WriteFile(filepath.Join(w.Dir(), originsDir, "0123"), []byte("{"), 0o600))
	if _, err := records.prune(); err == nil {
		t.Error("a damaged record was passed over")
	}
}
