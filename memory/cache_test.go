package memory

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// A desk is a Folder that counts how often its files and folders are read.
type desk struct {
	dir   string
	reads int
}

func (d *desk) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.Join(d.dir, name)) }

func (d *desk) ReadFile(name string) ([]byte, error) {
	d.reads++
	return os.ReadFile(filepath.Join(d.dir, name))
}

func (d *desk) ReadDir(name string) ([]fs.DirEntry, error) {
	d.reads++
	return os.ReadDir(filepath.Join(d.dir, name))
}

// A folder is listed anew when a page has come or gone, and not when one was only edited.
func TestKeepFolders(t *testing.T) {
	d := &desk{dir: t.TempDir()}
	old := time.Now().Add(-time.Hour)
	r := Cached(d)
	want := func(reads int, names ...string) {
		t.Helper()
		d.reads = 0
		entries, err := r.ReadDir("agents")
		var got []string
		for _, e := range entries {
			got = append(got, e.Name())
		}
		if !slices.Equal(got, names) || os.IsNotExist(err) != (names == nil) {
			t.Errorf("got %q, %v, want %q", got, err, names)
		}
		if d.reads != reads {
			t.Errorf("read %d times, want %d", d.reads, reads)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	folder := filepath.Join(d.dir, "agents")
	want(0)
	must(os.Mkdir(folder, 0o700))
	must(os.WriteFile(filepath.Join(folder, "a.md"), []byte("a"), 0o600))
	want(1, "a.md") // it has just changed, and may again at the same moment
	must(os.Chtimes(folder, old, old))
	want(1, "a.md")
	want(0, "a.md")
	must(os.WriteFile(filepath.Join(folder, "a.md"), []byte("another"), 0o600))
	want(0, "a.md")
	must(os.WriteFile(filepath.Join(folder, "b.md"), []byte("b"), 0o600))
	want(1, "a.md", "b.md")
	must(os.RemoveAll(folder))
	want(0)
}

// An edit counts at once; what nobody edits is read once.
func TestKeep(t *testing.T) {
	d := &desk{dir: t.TempDir()}
	path, now := filepath.Join(d.dir, "USER.md"), time.Now()
	write := func(text string, at time.Time) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	r := Cached(d)
	want := func(reads int, text string) {
		t.Helper()
		d.reads = 0
		got, err := r.ReadFile("USER.md")
		if string(got) != text || os.IsNotExist(err) != (text == "") {
			t.Errorf("got %q, %v, want %q", got, err, text)
		}
		if d.reads != reads {
			t.Errorf("read %d times, want %d", d.reads, reads)
		}
	}
	want(0, "")
	write("one", now.Add(-time.Hour))
	want(1, "one")
	want(0, "one")
	write("two", now.Add(-time.Minute))
	want(1, "two")
	write("three", now.Add(-time.Minute))
	want(1, "three")
	write("now", now)
	want(1, "now")
	write("new", now) // the same size and time
	want(1, "new")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	want(0, "")
}

// A slow is a Folder whose file "slow" is looked at until it is released.
type slow struct {
	desk
	asked, release chan struct{}
}

func (s *slow) Stat(name string) (fs.FileInfo, error) {
	if name == "slow" {
		close(s.asked)
		<-s.release
	}
	return s.desk.Stat(name)
}

// While the disk is asked about one file, others are read.
func TestCacheWaitsForNoOtherFile(t *testing.T) {
	s := &slow{desk: desk{dir: t.TempDir()}, asked: make(chan struct{}), release: make(chan struct{})}
	if err := os.WriteFile(filepath.Join(s.dir, "quick"), []byte("quick"), 0o600); err != nil {
		t.Fatal(err)
	}
	r := Cached(s)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = r.ReadFile("slow") // there is none
	}()
	<-s.asked
	read := make(chan string, 1)
	go func() {
		text, err := r.ReadFile("quick")
		read <- fmt.Sprint(string(text), err)
	}()
	select {
	case got := <-read:
		if got != "quick<nil>" {
			t.Error(got)
		}
	case <-time.After(3 * time.Minute):
		t.Error("a file is not read while the disk is asked about another one")
	}
	close(s.release)
	<-done
}
