package stores

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"parley/store"
	"parley/store/mem"
)

// A driver opens a store that another gateway has at first.
type driver struct{ waits func() }

// Open implements [store.Driver].
func (d driver) Open(_ context.Context, host store.Host) (store.Store, error) {
	host.Waiting("process 7 on b", nil, nil)
	d.waits()
	return mem.New(), nil
}

// open opens the store of d.
func open(t *testing.T, d driver, c Config) {
	t.Helper()
	c.Log = slog.New(slog.DiscardHandler)
	c.Stderr = io.Discard
	if c.Forward == nil {
		c.Forward = func(ctx context.Context, _ store.Dial, _ store.Remote) { <-ctx.Done() }
	}
	s, unlock, err := Open(t.Context(), d, c)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := unlock(); err != nil {
		t.Error(err)
	}
}

// R-S6: the data folder of a gateway that stands by is closed to other users, and not only when it takes over.
func TestStandByIsPrivate(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "notes")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{dir, file} {
		if err := os.Chmod(name, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	open(t, driver{func() {
		for _, name := range []string{dir, file} {
			if info, err := os.Stat(name); err != nil || info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s: %v, %v", name, info.Mode(), err)
			}
		}
	}}, Config{Dir: dir})
}
