package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/dirlock"
	"parley/store/bolt/refusal"
	"parley/store/storetest"
)

// put writes to the Store in dir and closes it.
func put(t *testing.T, dir, key string) {
	t.Helper()
	s := open(t, dir)
	if _, err := s.Bucket("b").Put(t.Context(), key, nil, store.Any); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func copyOver(t *testing.T, to, from string) {
	t.Helper()
	data, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// P18: an earlier file in the place of the Store is refused and not changed, even after
// a kill. A restored one is accepted.
func TestOlderFile(t *testing.T) {
	dir := storetest.TempDir(t)
	put(t, dir, "one")
	former := filepath.Join(t.TempDir(), "former")
	copyOver(t, former, file(dir))
	put(t, dir, "two")
	latest := filepath.Join(t.TempDir(), "latest")
	copyOver(t, latest, file(dir))
	copyOver(t, file(dir), former)
	for range 2 {
		_, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		var older *refusal.OlderError
		if !errors.As(err, &older) || older.Wrote.IsZero() || !strings.Contains(err.Error(), "put the right one back") {
			t.Fatalf("Open of a former file = %v", err)
		}
	}
	copyOver(t, file(dir), latest)
	put(t, dir, "three")

	draft := storetest.TempDir(t) // as restoring does
	copyOver(t, file(draft), former)
	s := open(t, draft)
	if err := s.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	copyOver(t, file(dir), file(draft)) // and a kill comes before the mark follows
	put(t, dir, "four")
}

// P18: the mark is updated while the Store is open: after a kill, neither the file nor the
// log may be an earlier one, or missing.
func TestMarkFollows(t *testing.T) {
	dir := storetest.TempDir(t)
	put(t, dir, "one")
	former := filepath.Join(t.TempDir(), "former")
	copyOver(t, former, file(dir))
	s := open(t, dir)
	if _, err := s.Bucket("b").Put(t.Context(), "two", nil, 0); err != nil {
		t.Fatal(err)
	}
	first := t.TempDir() // a kill after the first change
	copyOver(t, file(first), file(dir))
	copyOver(t, file(first)+".mark", file(dir)+".mark")
	if _, err := bolt.Open(t.Context(), bolt.Config{Dir: first}); err == nil || !strings.Contains(err.Error(), "it is missing") {
		t.Errorf("Open without the log = %v", err)
	}
	formerLog := t.TempDir()
	copyLog(t, formerLog, dir)
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.MarkNow()
	if _, err := s.Bucket("b").Put(t.Context(), "three", nil, 0); err != nil {
		t.Fatal(err)
	}
	for what, c := range map[string]struct {
		replace func(dir string) error
		want    string
	}{
		"nothing":     {func(string) error { return nil }, "<nil>"},
		"former file": {func(dir string) error { copyOver(t, file(dir), former); return nil }, "an older one"},
		"no file":     {func(dir string) error { return os.Remove(file(dir)) }, "missing"},
		"no log":      {func(dir string) error { return os.RemoveAll(bolt.LogOf(file(dir))) }, "it is missing"},
		"file alone": {func(dir string) error {
			return errors.Join(os.RemoveAll(bolt.LogOf(file(dir))), os.Remove(file(dir)+".mark"))
		}, "it is missing"},
		"former log":   {func(dir string) error { os.RemoveAll(bolt.LogOf(file(dir))); copyLog(t, dir, formerLog); return nil }, "are gone"},
		"no mark":      {func(dir string) error { return os.Remove(file(dir) + ".mark") }, "<nil>"},
		"another file": {func(dir string) error { return anotherFile(t, dir) }, "belongs to another store"},
	} {
		killed := t.TempDir()
		copyOver(t, file(killed), file(dir))
		copyOver(t, file(killed)+".mark", file(dir)+".mark")
		copyLog(t, killed, dir)
		if err := c.replace(killed); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			s, err := bolt.Open(t.Context(), bolt.Config{Dir: killed})
			if !strings.Contains(fmt.Sprint(err), c.want) {
				t.Errorf("%s: Open after a kill = %v, want %s", what, err, c.want)
			}
			if err != nil {
				continue
			}
			if _, _, err := s.Bucket("b").Get(t.Context(), "three"); err != nil {
				t.Errorf("%s: %v", what, err)
			}
			s.Close()
		}
	}
}

// P18: a damaged log is refused, and nothing is changed. With Salvage, all changes before
// the damage are there, and the file is the whole Store.
func TestSalvage(t *testing.T) {
	dir := storetest.TempDir(t)
	s := open(t, dir)
	defer s.Close()
	put := func(key string) {
		if _, err := s.Bucket("b").Put(t.Context(), key, []byte("value of "+key), store.Any); err != nil {
			t.Fatal(err)
		}
	}
	put("moved")
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"sound", "spoilt", "later"} {
		put(key)
	}
	s.MarkNow()
	put("last")
	segments := func(dir string) []string {
		found, err := filepath.Glob(filepath.Join(bolt.LogOf(file(dir)), "0*"))
		if err != nil || len(found) == 0 {
			t.Fatal(found, err)
		}
		return found
	}
	for what, c := range map[string]struct {
		damage func(dir string) error
		kept   []string
	}{
		"a bit": {func(dir string) error {
			path := segments(dir)[0]
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return overwrite(path, int64(bytes.Index(data, []byte("value of spoilt"))), []byte("V"))
		}, []string{"moved", "sound"}},
		"its end": {func(dir string) error {
			path := segments(dir)[0]
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			return os.Truncate(path, int64(bytes.Index(data, []byte("value of last"))))
		}, []string{"moved", "sound", "spoilt", "later"}},
		"all of it": {func(dir string) error { return os.RemoveAll(bolt.LogOf(file(dir))) }, []string{"moved"}},
		"another store": {func(dir string) error {
			other := storetest.TempDir(t)
			s := open(t, other)
			defer s.Close()
			if _, err := s.Bucket("b").Put(t.Context(), "x", nil, store.Any); err != nil {
				return err
			}
			err := os.RemoveAll(bolt.LogOf(file(dir)))
			copyLog(t, dir, other)
			return err
		}, []string{"moved"}},
	} {
		killed := t.TempDir()
		copyOver(t, file(killed), file(dir))
		copyOver(t, file(killed)+".mark", file(dir)+".mark")
		copyLog(t, killed, dir)
		if err := c.damage(killed); err != nil {
			t.Fatal(err)
		}
		before := folderOf(t, killed)
		var damage *refusal.DamagedError
		if _, err := bolt.Open(t.Context(), bolt.Config{Dir: killed}); !errors.As(err, &damage) || !damage.InLog {
			t.Errorf("%s: Open = %v", what, err)
		}
		if err := bolt.CheckLatest(file(killed)); !errors.As(err, &damage) || !damage.InLog {
			t.Errorf("%s: CheckLatest = %v", what, err)
		}
		if after := folderOf(t, killed); !maps.Equal(before, after) {
			t.Errorf("%s: Open changed %v to %v", what, before, after)
		}
		var lost error
		salvage := bolt.Config{Dir: killed, Salvage: func(err error) { lost = err }}
		for range 2 { // then as any other
			s, err := bolt.Open(t.Context(), salvage)
			if err != nil || lost == nil {
				t.Fatalf("%s: Open with Salvage = %v, lost %v", what, err, lost)
			}
			got := map[string]bool{}
			for _, key := range []string{"moved", "sound", "spoilt", "later", "last"} {
				_, _, err := s.Bucket("b").Get(t.Context(), key)
				if got[key] = err == nil; got[key] != slices.Contains(c.kept, key) {
					t.Errorf("%s: %s: %v, want %q", what, key, err, c.kept)
				}
			}
			if _, err := s.Bucket("b").Put(t.Context(), "new", nil, store.Any); err != nil {
				t.Fatal(err)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			salvage.Salvage = nil
		}
	}
}

// folderOf returns the files of the Store in dir, with their content. The list of free
// pages at the end of the file is no part of it: Probe saves that.
func folderOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, pattern := range []string{"*.mark", "*.wal", "*.wal/*"} {
		paths, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			data, _ := os.ReadFile(path) // of a folder, nothing
			all[path] = string(data)
		}
	}
	return all
}

// anotherFile puts the file of another Store into dir, without a mark.
func anotherFile(t *testing.T, dir string) error {
	other := t.TempDir()
	put(t, other, "x")
	copyOver(t, file(dir), file(other))
	return os.Remove(file(dir) + ".mark")
}

// copyLog copies the log of a Store from one directory to another.
func copyLog(t *testing.T, to, from string) {
	t.Helper()
	if err := os.CopyFS(bolt.LogOf(file(to)), os.DirFS(bolt.LogOf(file(from)))); err != nil {
		t.Fatal(err)
	}
}

// A Store that a newer version wrote is refused and not changed, whether the mark shows
// it or only the file.
func TestNewerFormat(t *testing.T) {
	dir := storetest.TempDir(t)
	s := open(t, dir)
	if err := s.SetFormat(bolt.Format + 1); err != nil {
		t.Fatal(err)
	}
	s.Close()
	before, err := os.ReadFile(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	for _, mark := range []string{"", fmt.Sprintf(`{"format":%d}`, bolt.Format+1)} {
		if err := os.WriteFile(file(dir)+".mark", []byte(mark), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err = bolt.Open(t.Context(), bolt.Config{Dir: dir, Probe: func(context.Context, string) ([]string, error) {
			if mark != "" {
				t.Error("a Store of another format was probed")
			}
			return nil, nil
		}})
		var newer *refusal.FormatError
		if !errors.As(err, &newer) || newer.Has != bolt.Format+1 || !strings.Contains(err.Error(), "newer version") {
			t.Errorf("Open with mark %q = %v", mark, err)
		}
		if after, _ := os.ReadFile(file(dir)); string(after) != string(before) {
			t.Error("the file was changed")
		}
	}
}

// P18: for any damage to the head of the file after a clean end, Open says what to do.
func TestDamagedHeadAfterCleanEnd(t *testing.T) {
	for name, damage := range map[string]func(path string) error{
		"both metas": func(p string) error { return errors.Join(overwrite(p, 40, noise(8)), overwrite(p, 4096+40, noise(8))) },
		"zeros":      func(p string) error { return overwrite(p, 0, make([]byte, 8192)) },
		"wrong magic": func(p string) error {
			return errors.Join(overwrite(p, 16, []byte("MAGI")), overwrite(p, 4096+16, []byte("MAGI")))
		},
		"wrong version": func(p string) error {
			return errors.Join(overwrite(p, 20, []byte{9}), overwrite(p, 4096+20, []byte{9}))
		},
		"no root": func(p string) error { return overwrite(p, 8192, make([]byte, 256<<10)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := storetest.TempDir(t)
			if err := fill(dir); err != nil {
				t.Fatal(err)
			}
			info, err := os.Stat(file(dir))
			if err == nil {
				err = errors.Join(damage(file(dir)), os.Chtimes(file(dir), info.ModTime(), info.ModTime()))
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = bolt.Open(t.Context(), bolt.Config{Dir: dir})
			var damaged *refusal.DamagedError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "put a backup in its place") {
				t.Errorf("Open = %v", err)
			}
		})
	}
}

// A refusal by the system is not damage.
func TestRefusedBySystem(t *testing.T) {
	dir := storetest.TempDir(t)
	put(t, dir, "k")
	if os.Geteuid() == 0 {
		out, err := childAs(t, 4711, "open", dir).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "permission denied") || strings.Contains(string(out), "damaged") {
			t.Errorf("Open by another user: %v, %s", err, out)
		}
		return
	}
	if err := os.Chmod(file(dir), 0); err != nil {
		t.Fatal(err)
	}
	_, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	var damaged *refusal.DamagedError
	if !errors.Is(err, fs.ErrPermission) || errors.As(err, &damaged) {
		t.Errorf("Open = %v", err)
	}
}

// Open waits for a command that has the lock and will soon end.
func TestWaitsForBriefHolder(t *testing.T) {
	dir := storetest.TempDir(t)
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	var locked *dirlock.LockedError
	if _, err := bolt.Open(t.Context(), bolt.Config{Dir: dir}); !errors.As(err, &locked) || !locked.Brief || locked.PID != os.Getpid() {
		t.Errorf("Open without patience = %v", err)
	}
	waiting := logLine("waiting for another process")
	opened := make(chan error)
	go func() {
		other, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Patience: time.Minute, Log: waiting.logger()})
		if err == nil {
			err = other.Close()
		}
		opened <- err
	}()
	<-waiting.seen
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-opened; err != nil {
		t.Errorf("Open with patience = %v", err)
	}
	if pid := dirlock.Holder(dir); pid != os.Getpid() {
		t.Error(fmt.Sprint("holder ", pid))
	}
}
