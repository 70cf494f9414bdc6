package bolt_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

// P20: a copy made while others write is sound, shows the Store at one moment, and has
// everything that was acknowledged before.
func TestBackupUnderLoad(t *testing.T) {
	s := open(t, storetest.TempDir(t))
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	body := []byte(strings.Repeat("words ", 500))
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				_, err := s.Log(fmt.Sprint(w)).Append(ctx, store.Any, body, body)
				if err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for i := range 5 {
		if _, err := s.Bucket("b").Put(t.Context(), fmt.Sprint(i), []byte("before"), 0); err != nil {
			t.Fatal(err)
		}
		if err := s.Queue(fmt.Sprint("q", i)).Push(t.Context(), "id", nil); err != nil {
			t.Fatal(err)
		}
		dir := storetest.TempDir(t)
		if err := s.Backup(t.Context(), filepath.Join(dir, "parley.db")); err != nil {
			t.Fatal(err)
		}
		copied := open(t, dir)
		if _, _, err := copied.Bucket("b").Get(t.Context(), fmt.Sprint(i)); err != nil {
			t.Errorf("backup %d lacks what was acknowledged before it: %v", i, err)
		}
		for w := range 4 {
			n := uint64(0)
			for rec, err := range copied.Log(fmt.Sprint(w)).Since(t.Context(), 0) {
				if n++; err != nil || rec.Seq != n {
					t.Fatalf("record %d of backup %d: number %d, %v", n, i, rec.Seq, err)
				}
			}
			if n%2 != 0 {
				t.Errorf("backup %d holds half an Append: %d records", i, n)
			}
		}
		names, err := copied.Parts(t.Context(), "queue")
		if want := []string{"q0", "q1", "q2", "q3", "q4"}[:i+1]; err != nil || !slices.Equal(names, want) {
			t.Errorf("queues %v, %v; want %v", names, err, want)
		}
		copied.Close()
	}
}

// An incomplete backup leaves no file.
func TestBackupFails(t *testing.T) {
	bad := errors.New("unreadable")
	dir := storetest.TempDir(t)
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Probe: func(context.Context, string) ([]string, error) { return nil, bad }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Bucket("b").Put(t.Context(), "k", nil, store.Any); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "copy")
	gone := func(what string) {
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: a file is there: %v", what, err)
		}
	}
	if err := s.Backup(t.Context(), path); !errors.Is(err, bad) {
		t.Errorf("Backup = %v, want %v", err, bad)
	}
	gone("copy that cannot be read back")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Backup(ended, path); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup = %v", err)
	}
	gone("cancelled")
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := s.Backup(t.Context(), path); err == nil {
		t.Error("a file was overwritten")
	}
	if b, _ := os.ReadFile(path); string(b) != "precious" {
		t.Errorf("a file that was there holds %q now", b)
	}
}
