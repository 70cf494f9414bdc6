package backup

import (
	"os"
	"path/filepath"
	"testing"
)

// TestRestoresWithinASecond checks that each restore moves what was there aside,
// to a folder of its own.
func TestRestoresWithinASecond(t *testing.T) {
	dir := t.TempDir()
	first := unusedPath(filepath.Join(dir, "before"))
	if err := os.Mkdir(first, 0o700); err != nil {
		t.Fatal(err)
	}
	if second := unusedPath(filepath.Join(dir, "before")); second == first || filepath.Dir(second) != dir {
		t.Errorf("%s, and then %s", first, second)
	}
}

// P18, P20: what cannot be moved aside as a whole stays where it is; a store that
// is gone, and its mark, would let the gateway start empty.
func TestMoveAsideAllOrNone(t *testing.T) {
	dir := t.TempDir()
	db, aside := filepath.Join(dir, StoreFile), filepath.Join(dir, "aside")
	if err := os.WriteFile(db, []byte("store"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := moveAll(aside, []string{db, filepath.Join(dir, "cannot be moved")}); err == nil {
		t.Error("no error")
	}
	if b, err := os.ReadFile(db); err != nil || string(b) != "store" {
		t.Errorf("the store is %q, %v", b, err)
	}
	if _, err := os.Stat(aside); err == nil {
		t.Error("the folder is left there")
	}
}
