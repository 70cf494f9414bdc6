package memory

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A desk is a Folder that counts how often its files are read.
type desk struct {
	dir   string
	reads int
}

func (d *desk) Stat(name string) (fs.FileInfo, error) { return os.Stat(filepath.Join(d.dir, name)) }

func (d *desk) ReadFile(name string) ([]byte, error) {
	d.reads++
	return os.ReadFile(filepath.Join(d.dir, name))
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
