package bolt_test

import (
	"os"
	"testing"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

func open(t *testing.T, dir string) *bolt.Store {
	t.Helper()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// tempDir returns a directory in memory if there is such a thing: these tests kill
// processes, they do not cut the power, and need no slow disk.
func tempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "parley")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func TestStore(t *testing.T) {
	storetest.Run(t, true, func(t *testing.T) func() store.Store {
		dir := tempDir(t)
		return func() store.Store { return open(t, dir) }
	})
}
