package configpages

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/store"
	"parley/store/storetest"
)

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
}

func says(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// The file is replaced with its permissions, where a link leads; what it said is kept, and can be had back; what
// somebody else wrote meanwhile is not lost.
func TestSave(t *testing.T) {
	dir := t.TempDir()
	real, link := filepath.Join(dir, "real.json"), filepath.Join(dir, "config.json")
	put(t, real, "one", 0o640)
	if err := os.Symlink("real.json", link); err != nil {
		t.Fatal(err)
	}
	f := &File{Path: link, History: filepath.Join(dir, "history")}
	now, err := f.Read()
	if err != nil || now.Text != "one" || !now.Found || now.Locked != "" {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := f.Save(now.Sum, "two"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Lstat(link)
	if err != nil || info.Mode()&os.ModeSymlink == 0 || says(t, real) != "two" {
		t.Errorf("the link is %v, the file says %q, %v", info.Mode(), says(t, real), err)
	}
	if info, err := os.Stat(real); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has the permissions %v, %v", info.Mode(), err)
	}
	if err := f.Save(now.Sum, "three"); !errors.Is(err, store.ErrConflict) || says(t, real) != "two" {
		t.Errorf("an old page saved %q: %v", says(t, real), err)
	}
	all, err := f.Versions()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	if text, err := f.Version(all[0].ID); text != "one" || err != nil {
		t.Errorf("it said %q, %v", text, err)
	}
	for _, id := range []string{"", "../config.json", "new", "20261123-000000.000000000"} {
		if _, err := f.Version(id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("version %q: %v", id, err)
		}
	}
	if info, err := os.Stat(f.version(all[0].ID)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read what it said: %v, %v", info.Mode(), err)
	}
	for i := range maxVersions + 5 {
		now, _ := f.Read()
		if err := f.Save(now.Sum, fmt.Sprint("text ", i)); err != nil {
			t.Fatal(err)
		}
	}
	if all, err = f.Versions(); len(all) != maxVersions || err != nil {
		t.Errorf("%d texts are kept, %v", len(all), err)
	}
}

// A file that is marked as read-only stays, and one that is not there is created for its owner only.
func TestLockedAndNew(t *testing.T) {
	dir := t.TempDir()
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
	now, err := f.Read()
	if err != nil || now.Found || now.Sum != "" {
		t.Fatalf("%+v, %v", now, err)
	}
	if err := f.Save("", "{}"); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := f.Save("", "[]"); !errors.Is(err, store.ErrConflict) {
		t.Errorf("a file that is there was created: %v", err)
	}
	if err := os.Chmod(f.Path, 0o400); err != nil {
		t.Fatal(err)
	}
	now, _ = f.Read()
	if err := f.Save(now.Sum, "[]"); err == nil || !strings.Contains(now.Locked, "read-only") || says(t, f.Path) != "{}" {
		t.Errorf("%+v, %v", now, err)
	}
	f.rename = func(string, string) error { return syscall.EBUSY } // as a file that is mounted by itself
	put(t, f.Path, "{}", 0o600)
	now, _ = f.Read()
	if err := f.Save(now.Sum, "[]"); !errors.Is(err, syscall.EBUSY) || says(t, f.Path) != "{}" {
		t.Errorf("%q, %v", says(t, f.Path), err)
	}
	if left, _ := filepath.Glob(f.Path + ".*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A process that is killed after it has written and before it has renamed leaves the file as it was, and the next
// save works.
func TestKillBeforeRename(t *testing.T) {
	const folder = "PARLEY_KILLED_IN"
	if dir := os.Getenv(folder); dir != "" {
		f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
		f.rename = func(string, string) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
		now, err := f.Read()
		t.Fatal(err, f.Save(now.Sum, "two"))
	}
	dir := storetest.TempDir(t)
	f := &File{Path: filepath.Join(dir, "config.json"), History: filepath.Join(dir, "history")}
	put(t, f.Path, "one", 0o600)
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKillBeforeRename$")
	cmd.Env = append(os.Environ(), folder+"="+dir)
	out, err := cmd.CombinedOutput()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || status.Signal() != syscall.SIGKILL {
		t.Fatalf("%v: %s", err, out)
	}
	if says(t, f.Path) != "one" || says(t, f.Path+".new") != "two" {
		t.Errorf("it says %q, and beside it is %q", says(t, f.Path), says(t, f.Path+".new"))
	}
	now, err := f.Read()
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Save(now.Sum, "three"); err != nil || says(t, f.Path) != "three" {
		t.Errorf("%q, %v", says(t, f.Path), err)
	}
	if all, err := f.Versions(); len(all) != 1 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if _, err := os.Stat(f.Path + ".new"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the draft is still there: %v", err)
	}
}

func TestFaultsOf(t *testing.T) {
	err := errors.Join(errors.New("/etc/p.json:3:7: owners: is text, must be a list"), errors.New("models: is missing"))
	got := FaultsOf("/etc/p.json", err)
	want := []Fault{{3, 7, "owners: is text, must be a list"}, {0, 0, "models: is missing"}}
	if len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("%+v, want %+v", got, want)
	}
}
