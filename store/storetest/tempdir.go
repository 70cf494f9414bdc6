package storetest

import (
	"os"
	"testing"
)

// TempDir returns a directory of the test that is in memory if there is such a thing, for
// tests that kill processes or fake the loss of power, and need no slow disk.
func TempDir(t testing.TB) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "parley")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}
