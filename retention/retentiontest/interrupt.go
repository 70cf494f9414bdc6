// Package retentiontest breaks off the removal of old entries at every step.
package retentiontest

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/retention"
	"parley/store"
	"parley/store/storetest"
)

// A Case is a part of a store that is trimmed.
type Case struct {
	Open   func() store.Store // makes a store with old and young entries
	Before time.Time          // what is younger must stay
	Trim   func(store.Store, store.Trimming) error
	// Check looks at what is left after a whole pass.
	Check func(t *testing.T, s store.Store)
	// Archived are the lines that the archive must have then, those of files too, each
	// once, in any order; an ending is enough.
	Archived []string
}

var errCrash = errors.New("crash")

// Run trims once, and then with a crash before and after each change of the store, and
// before, amid and after each of the archive, followed by a whole pass.
func Run(t *testing.T, c Case) {
	t.Helper()
	for crash := 0; ; crash++ {
		s := c.Open()
		archive := retention.Archive{Dir: filepath.Join(t.TempDir(), "archive")}
		reached := interrupt(t, c, s, archive, crash)
		if reached || crash == 0 {
			interrupt(t, c, s, archive, 0)
			c.Check(t, s)
			checkArchive(t, archive.Dir, c.Archived)
		}
		if t.Failed() {
			t.Fatalf("after a crash at step %d", crash)
		}
		if !reached && crash > 0 {
			if crash < 4 {
				t.Errorf("there were only %d steps", crash-1)
			}
			return
		}
	}
}

// interrupt trims until step crash, 0 for to the end, and reports whether it was reached.
func interrupt(t *testing.T, c Case, s store.Store, archive retention.Archive, crash int) (reached bool) {
	t.Helper()
	n := 0
	step := func(string) {
		if n++; n == crash {
			panic(errCrash)
		}
	}
	defer func() {
		if r := recover(); r != nil {
			if reached = r == errCrash; !reached { //nolint:errorlint // it is the value itself
				panic(r)
			}
		}
	}()
	trimming := store.Trimming{Before: c.Before, Step: func(int) error { return nil }}
	trimming.Archive = func(name string, lines ...[]byte) error {
		step("archive")
		before := sizes(t, archive.Dir)
		if err := archive.Add("part", name, lines...); err != nil {
			return err
		}
		if n+1 == crash {
			tear(t, archive.Dir, before)
		}
		step("archive torn")
		step("archived")
		return nil
	}
	trimming.ArchiveFile = func(name string, from io.Reader) error {
		step("archive " + name)
		defer step("archived " + name)
		return archive.AddFile("part", name, from)
	}
	if err := c.Trim(storetest.Watch(s, step, step), trimming); err != nil {
		t.Errorf("trim: %v", err)
	}
	return false
}

// sizes returns the size of each file in dir.
func sizes(t *testing.T, dir string) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		all[path] = info.Size()
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	return all
}

// tear leaves half of what was written in dir since its files had these sizes.
func tear(t *testing.T, dir string, before map[string]int64) {
	t.Helper()
	for path, size := range sizes(t, dir) {
		if err := os.Truncate(path, (before[path]+size)/2); err != nil {
			t.Error(err)
		}
	}
}

// checkArchive wants the archive to have those lines, each once.
func checkArchive(t *testing.T, dir string, want []string) {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		lines = append(lines, strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")...)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, w := range want {
		i := slices.IndexFunc(lines, func(line string) bool { return strings.HasSuffix(line, w) })
		if i < 0 {
			t.Errorf("the archive does not have %s", w)
			continue
		}
		lines = slices.Delete(lines, i, i+1)
	}
	if len(lines) > 0 {
		t.Errorf("the archive has besides %q", lines)
	}
}
