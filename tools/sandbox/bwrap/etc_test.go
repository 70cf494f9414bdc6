package bwrap

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/tools/sandbox"
)

// A copy has what can be read, links within it as they are, and no more.
func TestCopyTree(t *testing.T) {
	etc := t.TempDir()
	outside := filepath.Join(t.TempDir(), "resolv.conf")
	for name, content := range map[string]string{
		outside: "nameserver", filepath.Join(etc, "fonts", "conf.d", "10.conf"): "font", filepath.Join(etc, "hosts"): "localhost",
	} {
		write(t, name, content)
	}
	for name, target := range map[string]string{"resolv.conf": outside, "fonts/link": "conf.d/10.conf", "fonts/gone": "/nowhere"} {
		if err := os.Symlink(target, filepath.Join(etc, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(etc, "fonts", "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	target := t.TempDir()
	for _, name := range []string{"resolv.conf", "fonts", "hosts", "missing"} {
		if err := copyTree(filepath.Join(target, name), filepath.Join(etc, name)); err != nil {
			t.Fatal(name, err)
		}
	}
	var got []string
	err := filepath.WalkDir(target, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		if info, err := entry.Info(); entry.Type().IsRegular() && (err != nil || info.Mode().Perm()&0o077 != 0) {
			t.Errorf("others may use %s: %v, %v", path, info.Mode(), err)
		}
		name, err := filepath.Rel(target, path)
		content, _ := os.ReadFile(path)
		link, _ := os.Readlink(path)
		got = append(got, name+" "+link+" "+string(content))
		return err
	})
	want := []string{
		"fonts/conf.d/10.conf  font", "fonts/gone /nowhere ", "fonts/link conf.d/10.conf font",
		"hosts  localhost", "resolv.conf  nameserver",
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("copied %q, %v, want %q", got, err, want)
	}
}

// All that run at the same time share a copy. It is made anew when it is gone, and earlier ones are
// removed when nothing uses them any more.
func TestEtcCopy(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "sandbox")
	write(t, filepath.Join(folder, etcPrefix+"recent", "hosts"), "localhost")
	write(t, filepath.Join(folder, etcPrefix+"old", "hosts"), "localhost")
	age(t, filepath.Join(folder, etcPrefix+"old"))
	var runs sync.WaitGroup
	paths := make([]string, 8)
	for i := range paths {
		runs.Go(func() {
			held := (&etcCopy{folder: folder}).hold()
			if held == nil {
				t.Error("no copy was made")
				return
			}
			defer held.Close()
			paths[i] = held.Name()
		})
	}
	runs.Wait()
	if len(slices.Compact(paths)) != 1 {
		t.Error("there are several:", paths)
	}
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) != 2 {
		t.Errorf("there are %v, %v, want the recent one and the new one", entries, err)
	}
	one := &etcCopy{folder: folder}
	for range 2 {
		held := one.hold()
		if held == nil {
			t.Fatal("no copy was made")
		}
		defer held.Close()
		if _, err := os.Stat(filepath.Join(held.Name(), "passwd")); err != nil {
			t.Error(err)
		}
		if err := os.RemoveAll(held.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// A program that runs for days keeps its files, however old their copy is, and whatever copies are made
// meanwhile by Parley or by another process.
func TestEtcOfLongProgram(t *testing.T) {
	folder := t.TempDir()
	r := New(Config{Folder: folder})
	stdin, say := io.Pipe()
	hear, stdout := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		o, err := r.Run(t.Context(), sandbox.Spec{
			Args: []string{"sh", "-c", "echo ready; read x; cat /etc/passwd >/dev/null"}, Stdin: stdin, Stdout: stdout,
		})
		if err == nil && o.Exit != 0 {
			err = fmt.Errorf("it ended with %+v", o)
		}
		stdout.CloseWithError(err)
		ended <- err
	}()
	if _, err := hear.Read(make([]byte, 100)); err != nil {
		t.Fatal(err)
	}
	copies, err := filepath.Glob(filepath.Join(folder, etcPrefix+"*"))
	if err != nil || len(copies) != 1 {
		t.Fatal(copies, err)
	}
	age(t, copies[0])
	other := &etcCopy{folder: folder}
	other.sweep()
	if _, err := say.Write([]byte("go on\n")); err != nil {
		t.Fatal(err)
	}
	say.Close()
	if err := <-ended; err != nil {
		t.Error("without its /etc:", err)
	}
	other.sweep()
	if exists(copies[0]) {
		t.Error("nobody uses it any more, and it is still there")
	}
}

// Programs run where no copy of /etc can be made: on a full disk, or one without symbolic links.
func TestNoEtcCopy(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	write(t, file, "")
	r := New(Config{Folder: filepath.Join(file, "sandbox")})
	const script = `cat /etc/passwd; ls -d /etc/ssl/certs /etc/alternatives; ls /etc/shadow; test -w /etc/passwd -o -w /etc && echo writable`
	for range 2 {
		var out bytes.Buffer
		o, err := r.Run(t.Context(), sandbox.Spec{Args: []string{"sh", "-c", script}, Stdout: &out})
		if err != nil || o.End != sandbox.Exited {
			t.Fatal(o, err)
		}
		if got := out.String(); !strings.Contains(got, "root:") || !strings.Contains(got, "/etc/alternatives\n") || strings.Contains(got, "shadow") ||
			strings.Contains(got, "writable") {
			t.Errorf("a program sees\n%s", got)
		}
	}
}

// A copy is another one when a file has changed.
func TestFingerprint(t *testing.T) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	write(t, hosts, "localhost")
	before := fingerprint([]string{hosts})
	if again := fingerprint([]string{hosts, hosts + "-missing"}); again != before {
		t.Errorf("%s and %s of the same files", before, again)
	}
	write(t, hosts, "localhost localhost.localdomain")
	if after := fingerprint([]string{hosts}); after == before {
		t.Error("it does not tell that a file has changed")
	}
}

// Certificates of authorities are deep in folders, which do not change when these files do.
func TestFingerprintOfFolder(t *testing.T) {
	folder := t.TempDir()
	link := filepath.Join(t.TempDir(), "certs")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	bundle := filepath.Join(folder, "extracted", "pem", "bundle.pem")
	write(t, bundle, "one")
	for _, source := range []string{folder, link} {
		before := fingerprint([]string{source})
		write(t, bundle, "one and another at "+source)
		if after := fingerprint([]string{source}); after == before {
			t.Errorf("%s: it does not tell that a file has changed", source)
		}
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// age has a copy be an old one.
func age(t *testing.T, path string) {
	t.Helper()
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-48*time.Hour)); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
