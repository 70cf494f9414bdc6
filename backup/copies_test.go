package backup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// TestCopyNeedsRoom: P19. A copy of the store is not begun where it would take
// the room that is kept for what was accepted before.
func TestCopyNeedsRoom(t *testing.T) {
	dir := t.TempDir()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const change = 1 << 20 // bytes, which are in the log, and not in the file yet
	if _, err := s.Bucket("b").Put(t.Context(), "k", make([]byte, change), store.Any); err != nil {
		t.Fatal(err)
	}
	full := true
	k := Keeper{DataDir: dir, Store: s, Room: func(_ string, bytes uint64) error {
		if full || bytes < change {
			return store.ErrFull
		}
		return nil
	}}
	if err := Copy(t.Context(), dir, k.copyStore); !errors.Is(err, store.ErrFull) {
		t.Errorf("without room: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".backup-*")); len(left)+len(Copies(dir)) > 0 {
		t.Errorf("without room there is %q, %q", left, Copies(dir))
	}
	full = false
	if err := Copy(t.Context(), dir, k.copyStore); err != nil || len(Copies(dir)) != 1 {
		t.Errorf("with room: %v, %q", err, Copies(dir))
	}
}

// TestSafeCopies: only the latest copies are kept.
func TestSafeCopies(t *testing.T) {
	dir := t.TempDir()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := os.MkdirAll(copiesFolder(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	for i := range 5 {
		name := "parley-2001010" + fmt.Sprint(i) + "-000000.db"
		if err := os.WriteFile(filepath.Join(copiesFolder(dir), name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	half := func(_ context.Context, path string) error {
		return errors.Join(os.WriteFile(path, nil, 0o600), errors.New("killed"))
	}
	if err := Copy(t.Context(), dir, half); err == nil || len(Copies(dir)) != 5 {
		t.Errorf("half a copy counts as one: %v, %q", err, Copies(dir))
	}
	if err := errors.Join(SweepDrafts(dir), Copy(t.Context(), dir, s.Backup)); err != nil { // as at the next start
		t.Fatal(err)
	}
	copies := Copies(dir)
	if len(copies) != copiesKept || !strings.Contains(copies[0], time.Now().UTC().Format("2006")) || !strings.HasSuffix(copies[2], "parley-20010103-000000.db") {
		t.Errorf("copies kept: %q", copies)
	}
}
