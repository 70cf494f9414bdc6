package host_test

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"parley/host"
)

// R-S6: what others can reach is closed to them, at any depth; what is in a closed folder keeps even its
// times, which tell what a program has changed.
func TestRestrict(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{".", "open", "open/inner", "open/closed", "closed", "closed/inner"} {
		if err := os.MkdirAll(filepath.Join(dir, folder), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, folder, "file"), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, folder := range []string{"closed", "open/closed"} {
		if err := os.Chmod(filepath.Join(dir, folder), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	modes := func() (all []string) {
		err := fs.WalkDir(os.DirFS(dir), ".", func(name string, d fs.DirEntry, err error) error {
			info, _ := d.Info()
			if info.Mode().Perm()&0o077 != 0 {
				all = append(all, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	exposed, err := host.Exposed(dir, "")
	if want := "[. file open open/file open/inner open/inner/file]"; fmt.Sprint(exposed) != want || err != nil {
		t.Errorf("exposed: %v, %v; want %s", exposed, err, want)
	}
	host.Restrict(slog.New(slog.DiscardHandler), dir, filepath.Join(dir, "absent"))
	if exposed, err := host.Exposed(dir, ""); len(exposed) > 0 || err != nil {
		t.Errorf("still exposed: %v, %v", exposed, err)
	}
	if left, want := fmt.Sprint(modes()), "[closed/file closed/inner closed/inner/file open/closed/file]"; left != want {
		t.Errorf("left alone: %s, want %s", left, want)
	}
}
