package backup

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"parley/workspace"
)

// A backup holds what it should, and nothing that a link leads to.
func TestArchive(t *testing.T) {
	packed, _ := packedFolder(t)
	out := t.TempDir()
	root, err := os.OpenRoot(out)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	m, err := unpack(t.Context(), bytes.NewReader(packed), root)
	if err != nil {
		t.Fatal(err)
	}
	if !m.Secrets || m.Made.IsZero() || m.Parley == "" || len(m.Files) != 4 {
		t.Errorf("manifest: %+v", m)
	}
	for name, want := range map[string]string{
		"parley.db": "store", "config.json": "{}", "workspace/a.txt": "a", "workspace/notes/b.txt": strings.Repeat("b", 100_000),
	} {
		if got, err := os.ReadFile(filepath.Join(out, name)); err != nil || string(got) != want {
			t.Errorf("%s: %.20q, %v", name, got, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(out, "workspace/link")); !errors.Is(err, fs.ErrNotExist) {
		t.Error("a link came along")
	}
	info, err := os.Stat(filepath.Join(out, "parley.db"))
	if err != nil || info.Mode().Perm()&0o077 != 0 {
		t.Errorf("others may read the store: %v, %v", info.Mode(), err)
	}
}

// A busyContext calls do each time it is asked for its error.
type busyContext struct {
	context.Context
	do func()
}

func (c busyContext) Err() error {
	c.do()
	return c.Context.Err()
}

// Programs that replace files and folders while a backup is made do not prevent it.
func TestArchiveOfBusyFolder(t *testing.T) {
	for name, replace := range map[string]func(path string) error{
		"removed": func(string) error { return nil },
		"a file":  func(path string) error { return os.WriteFile(path, nil, 0o600) },
		"a pipe":  func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link":  func(path string) error { return os.Symlink("first", path) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			w, err := workspace.Open(filepath.Join(dir, "files"))
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			err = os.WriteFile(filepath.Join(dir, "store"), nil, 0o600)
			for _, file := range []string{"first/file", "second/file", "third"} {
				err = errors.Join(err, w.Names().WriteFile(file, []byte(file)))
			}
			if err != nil {
				t.Fatal(err)
			}
			asked := 0
			ctx := busyContext{t.Context(), func() {
				if asked++; asked != 2 { // the first time, "." is visited
					return
				}
				for _, name := range []string{"second", "third"} {
					path := filepath.Join(w.Dir(), name)
					if err := errors.Join(os.RemoveAll(path), replace(path)); err != nil {
						t.Error(err)
					}
				}
			}}
			var packed bytes.Buffer
			if err := Write(ctx, &packed, Contents{Store: filepath.Join(dir, "store"), Files: w}); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			m, err := unpack(t.Context(), &packed, root)
			if _, found := m.Files["workspace/first/file"]; err != nil || !found || asked < 4 {
				t.Errorf("%v has %v", err, m.Files)
			}
		})
	}
}

func packedFolder(t *testing.T) (packed []byte, dir string) {
	t.Helper()
	dir = t.TempDir()
	files := filepath.Join(dir, "files")
	for name, text := range map[string]string{
		"parley.db": "store", "config.json": "{}", "files/a.txt": "a", "files/notes/b.txt": strings.Repeat("b", 100_000),
	} {
		name = filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(name), 0o700), os.WriteFile(name, []byte(text), 0o644)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(files, "link")); err != nil {
		t.Fatal(err)
	}
	w, err := workspace.Open(files)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	c := Contents{
		Store:   filepath.Join(dir, "parley.db"),
		Config:  filepath.Join(dir, "config.json"),
		Files:   w,
		Version: "test",
	}
	var b bytes.Buffer
	if err := Write(t.Context(), &b, c); err != nil {
		t.Fatal(err)
	}
	return b.Bytes(), dir
}

// What is not whole, or not ours, is no backup.
func TestArchiveDamaged(t *testing.T) {
	packed, _ := packedFolder(t)
	flipped := bytes.Clone(packed)
	flipped[len(flipped)/2] ^= 1
	sum := bytes.Clone(packed)
	sum[len(sum)-6] ^= 1 // as a bit of what no digest covers would have it
	for name, b := range map[string][]byte{
		"empty":           nil,
		"no archive":      []byte("hello"),
		"cut off":         packed[:len(packed)*3/4],
		"without its end": packed[:len(packed)-20],
		"a flipped bit":   flipped,
		"a wrong sum":     sum,
		"no manifest":     tarOf(t, "parley.db", "x"),
		"another file":    tarOf(t, "parley.db", "x", "manifest.json", `{"files":{}}`),
		"a file changed":  tarOf(t, "parley.db", "x", "manifest.json", `{"files":{"parley.db":"00"}}`),
		"leads out":       tarOf(t, "../evil", "x", "manifest.json", `{"files":{}}`),
		"leads to root":   tarOf(t, "/etc/evil", "x", "manifest.json", `{"files":{}}`),
	} {
		dir := t.TempDir()
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := unpack(t.Context(), bytes.NewReader(b), root); err == nil {
			t.Errorf("%s: taken for a backup", name)
		}
		root.Close()
	}
}

// tarOf packs names and texts as they are.
func tarOf(t *testing.T, namesAndTexts ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	zip := gzip.NewWriter(&b)
	w := tar.NewWriter(zip)
	for i := 0; i < len(namesAndTexts); i += 2 {
		name, text := namesAndTexts[i], namesAndTexts[i+1]
		err := w.WriteHeader(&tar.Header{Name: name, Size: int64(len(text)), Mode: 0o600})
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), zip.Close()); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}
