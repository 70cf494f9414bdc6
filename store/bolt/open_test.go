package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/dirlock"
	"parley/store/storetest"
)

// P17: a second process learns at once which one has the directory.
func TestLocked(t *testing.T) {
	dir := storetest.TempDir(t)
	s := open(t, dir)
	var locked *dirlock.LockedError
	_, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if !errors.As(err, &locked) || locked.Dir != dir || locked.PID != os.Getpid() {
		t.Errorf("Open in the same process = %v", err)
	}
	out, err := child(t.Context(), "open", dir).CombinedOutput()
	if want := fmt.Sprintf("%s is in use by process %d", dir, os.Getpid()); err == nil || !strings.Contains(string(out), want) {
		t.Errorf("Open in another process: %v, %s; want %q", err, out, want)
	}
	s.Close()
	if out, err := child(t.Context(), "open", dir).CombinedOutput(); err != nil {
		t.Errorf("Open after Close: %v, %s", err, out)
	}
}

func TestFilesArePrivate(t *testing.T) {
	dir := filepath.Join(storetest.TempDir(t), "a", "data")
	open(t, dir)
	_ = filepath.Walk(dir, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
		return nil
	})
}

// The probe runs after every unclean end, and only then.
func TestProbeWhenNeeded(t *testing.T) {
	dir, probes := storetest.TempDir(t), 0
	reopen := func(what string, want int) {
		t.Helper()
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Probe: func(ctx context.Context, path string) ([]string, error) {
			probes++
			return bolt.Probe(ctx, path)
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, _ = s.Bucket("b").Put(t.Context(), "k", nil, store.Any)
		if err := s.Close(); err != nil || probes != want {
			t.Errorf("%s: %d probes, want %d; Close = %v", what, probes, want, err)
		}
		probes = 0
	}
	reopen("at first", 0)
	reopen("after Close", 0)
	if err := os.Chtimes(file(dir), time.Time{}, time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	reopen("another file", 1)
	os.Remove(file(dir) + ".mark")
	reopen("without a mark", 1)
	for _, mark := range []string{"", "closed 1", "noise"} {
		if err := os.WriteFile(file(dir)+".mark", []byte(mark), 0o600); err != nil {
			t.Fatal(err)
		}
		reopen("after an unclean end, mark "+mark, 1)
		reopen("and then", 0)
	}
	_, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Errorf("Open = %v", err)
	}
}

// P2, P23: if the clock is set back or forth, an id is still remembered within the hour,
// and old ids are removed in the end.
func TestClockSteps(t *testing.T) {
	ctx, s := t.Context(), open(t, storetest.TempDir(t))
	var clock atomic.Int64
	clock.Store(1e9)
	s.SetNow(func() time.Time { return time.Unix(clock.Load(), 0) })
	q, n := s.Queue("q"), 0
	push := func(id string, want int) {
		t.Helper()
		if err := q.Push(ctx, id, nil); err != nil {
			t.Fatal(err)
		}
		n += want
		if got, _ := q.Len(ctx); got != n {
			t.Errorf("Push(%s): Len = %d, want %d", id, got, n)
			n = got
		}
	}
	for _, step := range []time.Duration{0, -24 * time.Hour, 24 * time.Hour, 24 * time.Hour, -time.Hour, time.Hour} {
		clock.Add(int64(step / time.Second))
		push(fmt.Sprint(n), 1)
		push(fmt.Sprint(n-1), 0)
		push("0", 0)
		clock.Add(60)
	}
	clock.Add(48 * 3600)
	push("0", 1)
	push("0", 0)
	push("1", 1)
	clock.Add(48 * 3600)
	push("0", 1)
}

// The file does not grow with expired ids.
func TestForgets(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s := open(t, dir)
	var clock atomic.Int64
	s.SetNow(func() time.Time { return time.Unix(clock.Load(), 0) })
	q := s.Queue("q")
	for i := range 1000 {
		clock.Add(48 * 3600 / 20)
		if err := q.Push(ctx, fmt.Sprint("an id of some length ", i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
		item, err := q.Pull(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := item.Done(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if used := s.Used(); used > 100<<10 {
		t.Errorf("%d bytes in use for 20 ids", used)
	}
}
