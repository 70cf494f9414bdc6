package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
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
	dir := tempDir(t)
	put(t, dir, "one")
	former := filepath.Join(t.TempDir(), "former")
	copyOver(t, former, file(dir))
	put(t, dir, "two")
	latest := filepath.Join(t.TempDir(), "latest")
	copyOver(t, latest, file(dir))
	copyOver(t, file(dir), former)
	for range 2 {
		_, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		var older *bolt.OlderError
		if !errors.As(err, &older) || older.Wrote.IsZero() || !strings.Contains(err.Error(), "put the right one back") {
			t.Fatalf("Open of a former file = %v", err)
		}
	}
	copyOver(t, file(dir), latest)
	put(t, dir, "three")

	draft := tempDir(t) // as restoring does
	copyOver(t, file(draft), former)
	s := open(t, draft)
	if err := s.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.Close()
	copyOver(t, file(dir), file(draft)) // and a kill comes before the mark follows
	put(t, dir, "four")
}

// P18: the mark is updated while the Store is open.
func TestMarkFollows(t *testing.T) {
	dir := tempDir(t)
	put(t, dir, "one")
	former := filepath.Join(t.TempDir(), "former")
	copyOver(t, former, file(dir))
	s := open(t, dir)
	s.MarkNow()
	if _, err := s.Bucket("b").Put(t.Context(), "two", nil, 0); err != nil {
		t.Fatal(err)
	}
	mark, err := os.ReadFile(file(dir) + ".mark")
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	copyOver(t, file(dir), former)
	if err := os.WriteFile(file(dir)+".mark", mark, 0o600); err != nil { // as after a kill
		t.Fatal(err)
	}
	var older *bolt.OlderError
	if _, err := bolt.Open(t.Context(), bolt.Config{Dir: dir}); !errors.As(err, &older) {
		t.Errorf("Open of a former file after a kill = %v", err)
	}
}

// A Store that a newer version wrote is refused and not changed, whether the mark shows
// it or only the file.
func TestNewerFormat(t *testing.T) {
	dir := tempDir(t)
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
		var newer *bolt.FormatError
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
			dir := tempDir(t)
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
			var damaged *bolt.DamagedError
			if !errors.As(err, &damaged) || !strings.Contains(err.Error(), "put a backup in its place") {
				t.Errorf("Open = %v", err)
			}
		})
	}
}

// A refusal by the system is not damage.
func TestRefusedBySystem(t *testing.T) {
	dir := tempDir(t)
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
	var damaged *bolt.DamagedError
	if !errors.Is(err, fs.ErrPermission) || errors.As(err, &damaged) {
		t.Errorf("Open = %v", err)
	}
}

// Open waits for a command that has the lock and will soon end.
func TestWaitsForBriefHolder(t *testing.T) {
	dir := tempDir(t)
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Brief: true})
	if err != nil {
		t.Fatal(err)
	}
	var locked *bolt.LockedError
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
	if pid := bolt.Holder(dir); pid != os.Getpid() {
		t.Error(fmt.Sprint("holder ", pid))
	}
}
