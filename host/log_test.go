package host_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"parley/host"
)

// P28: a log that is full begins anew, after a restart too, and the one before it is kept.
func TestLogIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	line := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range 3 { // 30 MiB
		l, err := host.OpenLog(dir)
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		for range 10 {
			writers.Go(func() {
				if _, err := l.Write(line); err != nil {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	}
	files, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil || len(files) != 2 {
		t.Fatalf("there are the files %q, %v", files, err)
	}
	for _, path := range files {
		info, err := os.Stat(path)
		if err != nil || info.Size() == 0 || info.Size() > 10<<20 || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has %d bytes and mode %v, %v", path, info.Size(), info.Mode(), err)
		}
		if !strings.HasPrefix(filepath.Base(path), "parley.log") {
			t.Errorf("there is %s", path)
		}
	}
}

// P28: a log that somebody has removed or moved away begins anew when it is full: nobody sees what it takes on the disk.
func TestLogThatIsGoneIsBounded(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	l, err := host.OpenLog(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "parley.log")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	line := append(bytes.Repeat([]byte("x"), 1<<20-1), '\n')
	for range 11 {
		if _, err := l.Write(line); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() != int64(len(line)) {
		t.Errorf("there is no log that goes on: %v", err)
	}
}
