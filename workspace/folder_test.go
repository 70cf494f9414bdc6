package workspace

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A victim is a workspace in which person a has the folder work/sub, and person b
// files of the same names that a must not reach.
type victim struct {
	*testing.T
	all, part *Workspace
	sub       string // absolute
}

const (
	mine   = "mine"
	theirs = "theirs"
)

func newVictim(t *testing.T) victim {
	t.Helper()
	w, err := Open(t.TempDir())
	must(t, err)
	t.Cleanup(func() { w.Close() })
	for folder, text := range map[string]string{"people/a/work/sub": mine, "people/b": theirs} {
		for _, name := range []string{"x.md", "deep/y.md"} {
			must(t, w.Names().WriteFile(folder+"/"+name, []byte(text)))
		}
	}
	must(t, os.Mkdir(filepath.Join(w.Dir(), "people/b/empty"), 0o700))
	v := victim{T: t, all: w, part: w.For("people/a", nil), sub: filepath.Join(w.Dir(), "people/a/work/sub")}
	must(t, os.Mkdir(v.sub+"/empty", 0o700))
	return v
}

// path resolves text for person a.
func (v victim) path(text string) Path {
	v.Helper()
	p, err := v.part.Resolve(text)
	must(v.T, err)
	return p
}

// checkTheirs checks that the folder of person b is as it was.
func (v victim) checkTheirs(after string) {
	v.Helper()
	var names []string
	folder := filepath.Join(v.all.Dir(), "people/b")
	must(v.T, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		names = append(names, strings.TrimPrefix(path, folder))
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if string(text) != theirs {
			v.Errorf("after %s, %s has %q", after, path, text)
		}
		return err
	}))
	if got := strings.Join(names, " "); got != " /deep /deep/y.md /empty /x.md" {
		v.Errorf("after %s, person b has %s", after, got)
	}
}

// operations are all operations that take a Path. Each returns an error, or what it found.
var operations = map[string]func(w *Workspace, file, folder, empty, other Path) (found string, err error){
	"ReadFile": func(w *Workspace, file, _, _, _ Path) (string, error) {
		text, err := w.ReadFile(file)
		return string(text), err
	},
	"Open":    func(w *Workspace, file, _, _, _ Path) (string, error) { return readAll(w.Open(file)) },
	"OpenBig": func(w *Workspace, file, _, _, _ Path) (string, error) { return readAll(w.OpenBig(file)) },
	"OpenLog": func(w *Workspace, file, _, _, _ Path) (string, error) {
		f, err := w.OpenLog(file)
		if err != nil {
			return "", err
		}
		_, err = f.WriteString("more")
		return "", errors.Join(err, f.Close())
	},
	"Stat": func(w *Workspace, file, _, _, _ Path) (string, error) {
		_, err := w.Stat(file)
		return "", err
	},
	"ReadDir": func(w *Workspace, _, folder, _, _ Path) (string, error) {
		entries, err := w.ReadDir(folder)
		if len(entries) > 0 {
			return "names", err
		}
		return "", err
	},
	"Walk": func(w *Workspace, _, folder, _, _ Path) (string, error) {
		visited := 0
		err := w.Walk(folder, func(_ Path, _ fs.DirEntry, err error) error {
			visited++
			return err
		})
		if visited > 1 {
			return "names", err
		}
		return "", err
	},
	"WriteFile": func(w *Workspace, file, _, _, _ Path) (string, error) {
		return "", w.WriteFile(file, []byte("poison"))
	},
	"WriteFile of a new file": func(w *Workspace, file, _, _, _ Path) (string, error) {
		return "", w.WriteFile(Path{file.Dir().name + "/new/new.md"}, []byte("poison"))
	},
	"MkdirAll": func(w *Workspace, _, folder, _, _ Path) (string, error) {
		return "", w.MkdirAll(Path{folder.name + "/new/folder"})
	},
	"Copy from":  func(w *Workspace, file, _, _, other Path) (string, error) { return "", w.Copy(file, other) },
	"Copy to":    func(w *Workspace, file, _, _, other Path) (string, error) { return "", w.Copy(other, file) },
	"Remove":     func(w *Workspace, file, _, _, _ Path) (string, error) { return "", w.Remove(file) },
	"Remove dir": func(w *Workspace, _, _, empty, _ Path) (string, error) { return "", w.Remove(empty) },
	"RemoveAll": func(w *Workspace, _, folder, _, _ Path) (string, error) {
		_ = w.RemoveAll(folder) // nil, because there is no such folder
		return "", ErrMoved
	},
	"Lock": func(w *Workspace, _, folder, _, _ Path) (string, error) {
		return "", w.Lock(folder, func() error { return nil })
	},
}

func readAll(f *os.File, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// R-S18: a link that a program puts in the place of a folder or a file, after a Path was
// checked, is not followed by any operation.
func TestFolderBecomesLink(t *testing.T) {
	for name, do := range operations {
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			must(t, v.part.WriteFile(v.path("other.md"), []byte(mine)))
			file, folder, empty, other := v.path("work/sub/x.md"), v.path("work/sub/deep"), v.path("work/sub/empty"), v.path("other.md")
			must(t, errors.Join(os.Rename(v.sub, v.sub+"-gone"), os.Symlink("../../b", v.sub)))
			if found, err := do(v.part, file, folder, empty, other); !errors.Is(err, ErrMoved) || found != "" {
				t.Errorf("it found %q, %v; want ErrMoved", found, err)
			}
			v.checkTheirs(name)
		})
	}
}

// R-S18: the same for a link in the place of the file or folder itself, to one beside it or below.
func TestFileBecomesLink(t *testing.T) {
	for name, do := range operations {
		if strings.Contains(name, "new") || name == "MkdirAll" {
			continue // there is nothing to replace
		}
		t.Run(name, func(t *testing.T) {
			v := newVictim(t)
			must(t, v.all.Names().WriteFile("b/x.md", []byte(theirs)))
			for _, old := range []string{"file.md", "folder/x.md", "empty/x.md", "other.md"} {
				must(t, v.all.Names().WriteFile(old, []byte(mine)))
			}
			for _, old := range []string{"file.md", "folder", "empty"} {
				must(t, os.RemoveAll(filepath.Join(v.all.Dir(), old)))
			}
			for link, target := range map[string]string{"file.md": "b/x.md", "folder": "b", "empty": "b"} {
				must(t, os.Symlink(target, filepath.Join(v.all.Dir(), link)))
			}
			found, err := do(v.all, Path{"file.md"}, Path{"folder"}, Path{"empty"}, Path{"other.md"})
			isRemoved := strings.HasPrefix(name, "Remove") // of the link
			if found != "" || !isRemoved && !errors.Is(err, ErrMoved) {
				t.Errorf("it found %q, %v; want ErrMoved", found, err)
			}
			if text, err := v.all.Names().ReadFile("b/x.md"); string(text) != theirs || err != nil {
				t.Errorf("the other file has %q, %v", text, err)
			}
		})
	}
}

// IsBeside does not say that a file is missing in a folder that it did not look into.
func TestBesideLink(t *testing.T) {
	v := newVictim(t)
	file := v.path("work/sub/x.md")
	if v.part.IsBeside(file, "HEAD") || !v.part.IsBeside(file, "deep") || v.part.IsBeside(v.path("no/folder/file"), "HEAD") {
		t.Error("IsBeside is wrong about folders")
	}
	must(t, errors.Join(os.Rename(v.sub, v.sub+"-gone"), os.Symlink("../../b", v.sub)))
	if !v.part.IsBeside(file, "HEAD") {
		t.Error("a link counts as a folder without the file")
	}
}

// A pipe in the place of a folder or a file blocks nobody.
func TestPipeBlocksNothing(t *testing.T) {
	v := newVictim(t)
	file := v.path("work/sub/x.md")
	must(t, errors.Join(os.Rename(v.sub, v.sub+"-gone"), syscall.Mkfifo(v.sub, 0o600)))
	for _, p := range []Path{file, file.Dir()} {
		if _, err := v.part.ReadFile(p); err == nil {
			t.Errorf("%s was read", p)
		}
		if _, err := v.part.ReadDir(p); err == nil {
			t.Errorf("%s was listed", p)
		}
		if err := v.part.WriteFile(p, nil); err == nil {
			t.Errorf("%s was written", p)
		}
	}
}

// A file that cannot be linked is copied.
func TestCopyWithoutLink(t *testing.T) {
	v := newVictim(t)
	must(t, os.Chmod(v.sub+"/x.md", 0o750))
	noLink := func(folder, string, folder, string, *os.File) error { return errors.ErrUnsupported }
	must(t, v.part.copyFile(v.path("work/sub/x.md"), v.path("deep/copy"), noLink))
	must(t, v.part.Copy(v.path("work/sub/x.md"), v.path("deep/link")))
	var infos []fs.FileInfo
	for _, name := range []string{"work/sub/x.md", "deep/copy", "deep/link"} {
		text, err := v.part.ReadFile(v.path(name))
		info, err2 := v.part.Stat(v.path(name))
		if err := errors.Join(err, err2); string(text) != mine || err != nil {
			t.Fatalf("%s has %q, %v", name, text, err)
		}
		infos = append(infos, info)
	}
	if os.SameFile(infos[0], infos[1]) || infos[1].Mode().Perm() != 0o700 {
		t.Errorf("the copy is the same file, or has the mode %v", infos[1].Mode())
	}
	if !os.SameFile(infos[0], infos[2]) {
		t.Error("the other is not linked")
	}
}

// flip exchanges the folder sub and a link to target in a loop, until stop is closed.
func flip(sub, target string, stop <-chan struct{}) {
	link := sub + "-link"
	for {
		select {
		case <-stop:
			return
		default:
		}
		_ = os.Symlink(target, link)
		_ = os.Rename(sub, sub+"-gone")
		_ = os.Rename(link, sub)
		_ = os.RemoveAll(sub) // the link, or a folder that was made meanwhile
		_ = os.Rename(sub+"-gone", sub)
	}
}

// R-S18: a program that exchanges a folder and a link in a loop gets nothing out of any operation, and
// when it has ended they succeed.
func TestFolderFlips(t *testing.T) {
	v := newVictim(t)
	must(t, v.part.WriteFile(v.path("other.md"), []byte(mine)))
	file, folder, empty, other := v.path("work/sub/x.md"), v.path("work/sub/deep"), v.path("work/sub/empty"), v.path("other.md")
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { flip(v.sub, "../../b", stop) })
	for begin := time.Now(); time.Since(begin) < time.Second; {
		for name, do := range operations {
			if name == "RemoveAll" || strings.HasPrefix(name, "Walk") || name == "ReadDir" {
				continue // they find or leave something of a's own
			}
			found, _ := do(v.part, file, folder, empty, other)
			if strings.Contains(found, theirs) {
				t.Fatalf("%s found %q", name, found)
			}
		}
		_ = v.part.RemoveAll(folder)
		if text, err := v.part.ReadFile(other); err == nil && strings.Contains(string(text), theirs) {
			t.Fatal("their file was copied")
		}
	}
	close(stop)
	wg.Wait()
	v.checkTheirs("the exchanges")
	must(t, v.part.WriteFile(file, []byte(mine)))
	if text, err := v.part.ReadFile(file); string(text) != mine || err != nil {
		t.Errorf("afterwards the file has %q, %v", text, err)
	}
}

// Only the type folder has an os.Root, and everything else goes through it.
func TestOnlyFoldersUseRoots(t *testing.T) {
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range files {
		if name == "folder.go" || strings.HasSuffix(name, "_test.go") {
			continue
		}
		text, err := os.ReadFile(name)
		must(t, err)
		if got := strings.Count(string(text), "*os.Root") + strings.Count(string(text), ".root."); got > 0 {
			t.Errorf("%s uses an os.Root at %d places", name, got)
		}
	}
}
