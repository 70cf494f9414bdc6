package workspace

import (
	"errors"
	"slices"
	"testing"
)

// TestNewFoldersLast: what WriteFile makes survives a power cut: the file's
// folder is synced, and so are those in which it had to make folders.
func TestNewFoldersLast(t *testing.T) {
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	for _, step := range []struct {
		file string
		want []string
	}{
		{"a/b/c.txt", []string{".", "a", "a/b"}},
		{"a/b/d.txt", []string{"a/b"}},
		{"a/e/f.txt", []string{"a", "a/e"}},
		{"g.txt", []string{"."}},
	} {
		var synced []string
		w.tree.top.synced = func(folder string) { synced = append(synced, folder) }
		p, err := w.Named(step.file)
		if err == nil {
			err = w.WriteFile(p, []byte("text"))
		}
		if err != nil || !slices.Equal(synced, step.want) {
			t.Errorf("%s: %v; synced %q, want %q", step.file, err, synced, step.want)
		}
	}
}

// TestChangesOfFoldersLast: folders that are made, and files that are
// copied, survive a power cut: each folder in which a name changed is synced.
func TestChangesOfFoldersLast(t *testing.T) {
	w, err := Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	named := func(name string) Path {
		p, err := w.Named(name)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for _, step := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"make folders", func() error { return w.MkdirAll(named("a/b")) }, []string{".", "a"}},
		{"make folders that are there", func() error { return w.MkdirAll(named("a/b")) }, nil},
		{"write a file", func() error { return w.WriteFile(named("a/f"), nil) }, []string{"a"}},
		{"copy it", func() error { return w.Copy(named("a/f"), named("a/b/g")) }, []string{"a/b"}},
	} {
		var synced []string
		w.tree.top.synced = func(folder string) { synced = append(synced, folder) }
		if err := step.do(); err != nil || !slices.Equal(synced, step.want) {
			t.Errorf("%s: %v; synced %q, want %q", step.name, err, synced, step.want)
		}
	}
}

// TestClaim: a workspace is claimed once, until that is closed.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	one, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer one.Close()
	two, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer two.Close()
	claim, err := one.Claim()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := two.Claim(); !errors.Is(err, ErrInUse) {
		t.Errorf("second claim: %v", err)
	}
	if err := claim.Close(); err != nil {
		t.Fatal(err)
	}
	if claim, err = two.Claim(); err != nil {
		t.Fatalf("claim after the first was closed: %v", err)
	}
	claim.Close()
}
