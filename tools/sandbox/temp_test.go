package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What a killed process has left is removed, and nothing that is in use or new.
func TestSweepTemp(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	used, err := MakeTemp()
	if err != nil {
		t.Fatal(err)
	}
	defer used.Remove()
	left := filepath.Join(os.TempDir(), tempPrefix+"left")
	fresh := filepath.Join(os.TempDir(), tempPrefix+"fresh")
	other := filepath.Join(os.TempDir(), "of-somebody-else")
	for _, path := range []string{left, fresh, other} {
		if err := os.MkdirAll(filepath.Join(path, "folder"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	before := time.Now().Add(-2 * tempAge)
	for _, path := range []string{left, other, used.Path} {
		if err := os.Chtimes(path, before, before); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]bool{left: false, fresh: true, other: true, used.Path: true}
	if os.Getuid() == 0 { // who else could be meant to fall for it
		planted := filepath.Join(os.TempDir(), tempPrefix+"planted")
		if err := errors.Join(os.Mkdir(planted, 0o755), os.Chown(planted, 65534, 65534), os.Chtimes(planted, before, before)); err != nil {
			t.Fatal(err)
		}
		want[planted] = true
	}
	SweepTemp(tempPrefix, tempAge)
	for path, want := range want {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %v, want %v", filepath.Base(path), err == nil, want)
		}
	}
}
