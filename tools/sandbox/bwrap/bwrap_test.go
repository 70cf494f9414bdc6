package bwrap_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley/tools/sandbox"
	"parley/tools/sandbox/bwrap"
)

// runScript runs a shell script in s and returns what it wrote.
func runScript(t *testing.T, script string, s sandbox.Spec) string {
	t.Helper()
	var out bytes.Buffer
	s.Args = []string{"sh", "-c", script}
	s.Stdout = &out
	s.Stderr = &out
	o, err := bwrap.New(bwrap.Config{Folder: t.TempDir()}).Run(t.Context(), s)
	if err != nil {
		t.Fatalf("%q: %v", script, err)
	}
	if o.End != sandbox.Exited {
		t.Errorf("%q ended with %+v", script, o)
	}
	return out.String()
}

// A folder of a read-only file cannot be moved away, to put another in its place, also where two
// such files share it.
func TestParentOfReadOnly(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"one", "two"} {
		if err := os.MkdirAll(filepath.Join(dir, "a", "b"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "a", "b", name), []byte("before"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s := sandbox.Spec{Dir: dir, Folders: []sandbox.Folder{
		{Path: dir, Access: sandbox.ReadWrite},
		{Path: filepath.Join(dir, "a", "b", "one"), Access: sandbox.ReadOnly},
		{Path: filepath.Join(dir, "a", "b", "two"), Access: sandbox.ReadOnly},
	}}
	runScript(t, `mv a x; mv a/b a/x; mkdir -p a/b; for f in one two; do echo evil >a/b/$f; done; echo new >a/b/new`, s)
	for name, want := range map[string]string{"one": "before", "two": "before", "new": "new\n"} {
		if got, err := os.ReadFile(filepath.Join(dir, "a", "b", name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v", name, got, err)
		}
	}
}

// A symbolic link that a program may have left does not lead the next one's folders elsewhere.
func TestLinkOfProgram(t *testing.T) {
	dir, secret := t.TempDir(), t.TempDir()
	if err := os.Symlink(secret, filepath.Join(dir, "sub")); err != nil {
		t.Fatal(err)
	}
	for _, below := range []string{"sub", "sub/below"} {
		s := sandbox.Spec{Args: []string{"true"}, Folders: []sandbox.Folder{
			{Path: dir, Access: sandbox.ReadWrite}, {Path: filepath.Join(dir, below), Access: sandbox.ReadWrite},
		}}
		_, err := bwrap.New(bwrap.Config{Folder: t.TempDir()}).Run(t.Context(), s)
		if err == nil || !strings.Contains(err.Error(), "symbolic link") {
			t.Errorf("%s: %v", below, err)
		}
	}
}

// A symbolic link of the operator's is followed.
func TestLinkOfOperator(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	s := sandbox.Spec{Dir: link, Folders: []sandbox.Folder{{Path: link, Access: sandbox.ReadWrite}}}
	if out := runScript(t, "echo here >file; cat "+link+"/file "+dir+"/file", s); out != "here\nhere\n" {
		t.Errorf("wrote %q", out)
	}
}

// Neither the command line of bwrap nor its environment tells what the program may not know.
func TestArgumentsTellNothing(t *testing.T) {
	s := sandbox.Spec{Env: map[string]string{"TOKEN": "canary"}}
	out := runScript(t, `test "$TOKEN" && cat /proc/1/cmdline /proc/1/environ`, s)
	if strings.Contains(out, "canary") || !strings.Contains(out, "bwrap") {
		t.Errorf("the first process shows %q", out)
	}
}

// What cannot be started is an error, and no exit code.
func TestNoStart(t *testing.T) {
	r := bwrap.New(bwrap.Config{Folder: t.TempDir()})
	_, err := r.Run(t.Context(), sandbox.Spec{Args: []string{"/usr/bin/no-such-program"}})
	if !errors.Is(err, sandbox.ErrNoProgram) {
		t.Errorf("a missing program: %v", err)
	}
	_, err = r.Run(t.Context(), sandbox.Spec{Args: []string{"true"}, Dir: "/no/such/folder"})
	if err == nil || !strings.Contains(err.Error(), "/no/such/folder") {
		t.Errorf("a missing folder: %v", err)
	}
	_, err = r.Run(t.Context(), sandbox.Spec{Args: []string{"true"}, Network: sandbox.Network{Hosts: []string{"example.com"}}})
	if !errors.Is(err, sandbox.ErrHosts) {
		t.Errorf("hosts without a relay: %v", err)
	}
}
