package bolt_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=12m"); err != nil {
		t.Skipf("mount a small disk: %v", err) // a container may not, whatever is installed; TestFullLimit needs no rights
	}
	t.Cleanup(func() { _ = syscall.Unmount(dir, 0) })
	ballast := filepath.Join(dir, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 6<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fullDisk(filepath.Join(dir, "data"), func() error { return os.Remove(ballast) }); err != nil {
		t.Error(err)
	}
}
