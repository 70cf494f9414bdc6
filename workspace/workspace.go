// Package workspace is the agent's files on disk, confined to one folder.
//
// Every file the agent touches is reached through one os.Root, so that no
// path, symbolic link or race leads out of the folder (R-S18). Paths are taken
// as a model or a person writes them: relative to the workspace, beginning
// with "~" for it, or absolute within it. They are judged by their letters
// first ("a/../b" is "b"), then with their links resolved; whatever the answer,
// the os.Root is what keeps them in.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A Workspace is one folder, open for as long as the Workspace is. It is safe
// for use by several goroutines.
type Workspace struct {
	root      *os.Root
	dir       string   // absolute, as it was given
	real      string   // dir without symbolic links
	protected []string // files and folders of files that nothing here may be
}

// Open opens the folder dir, which it makes, readable for the owner alone,
// when it is not there.
func Open(dir string) (*Workspace, error) {
	w, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("open workspace %s: %w", dir, err)
	}
	return w, nil
}

func open(dir string) (*Workspace, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &Workspace{root: root, dir: dir, real: real}, nil
}

// Close closes the folder.
func (w *Workspace) Close() error { return w.root.Close() }

// Dir returns the folder's absolute path.
func (w *Workspace) Dir() string { return w.dir }

// Root returns the handle of the folder. Prefer Open and WriteFile of
// Workspace, which also refuse what is no plain file or is protected.
func (w *Workspace) Root() *os.Root { return w.root }

// Protect names files that must not be reached from the workspace even by a
// hard link: the store, the config. Of a folder it means the files directly in
// it. They need not exist yet. Call it before the workspace is in use.
func (w *Workspace) Protect(paths ...string) { w.protected = append(w.protected, paths...) }

// isProtected says whether info is that of a protected file, under whatever name.
func (w *Workspace) isProtected(info fs.FileInfo) bool {
	for _, path := range w.protected {
		p, err := os.Stat(path)
		if err != nil {
			continue
		}
		if os.SameFile(info, p) || p.IsDir() && holds(path, info) {
			return true
		}
	}
	return false
}

// holds says whether the file of info is directly in dir.
func holds(dir string, info fs.FileInfo) bool {
	entries, _ := os.ReadDir(dir) // what cannot be read cannot be compared
	for _, e := range entries {
		if other, err := e.Info(); err == nil && os.SameFile(info, other) {
			return true
		}
	}
	return false
}

// An OutsideError refuses a path that leads out of the workspace (D-049).
type OutsideError struct{ Path, Dir string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("Path %s is outside allowed directory %s", e.Path, e.Dir)
}

// Errors of Open, ReadFile and WriteFile, beside OutsideError and those of the os package.
var (
	ErrNotFile   = errors.New("not a plain file")
	ErrProtected = errors.New("protected file")
	ErrTooBig    = errors.New("file too big")
)

const maxPath = 4096 // bytes

// Path returns path relative to the workspace, cleaned, with symbolic links
// resolved: "." is the workspace itself. What path names need not exist. The
// error is an OutsideError, or of a path that no file can have. The result is
// a name for Root, not another path: a file may be called "~".
func (w *Workspace) Path(path string) (string, error) {
	if len(path) > maxPath { // no system has a file of that name, and it takes long to find out
		return "", w.explain(path, syscall.ENAMETOOLONG)
	}
	name, err := w.local(path)
	if err != nil {
		return "", err
	}
	real, err := evalSymlinks(filepath.Join(w.real, name))
	if err != nil {
		return "", w.explain(path, err)
	}
	return w.inside(path, w.real, real)
}

// local returns path relative to the workspace, judged by its letters alone.
func (w *Workspace) local(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return w.inside(path, w.dir, filepath.Join(w.dir, rest))
	}
	if !filepath.IsAbs(path) {
		return w.inside(path, w.dir, filepath.Join(w.dir, path))
	}
	if name, err := w.inside(path, w.dir, path); err == nil {
		return name, nil
	}
	return w.inside(path, w.real, path)
}

// inside returns abs relative to dir. path is what it was called.
func (w *Workspace) inside(path, dir, abs string) (string, error) {
	name, err := filepath.Rel(dir, abs)
	if err != nil || !filepath.IsLocal(name) {
		return "", &OutsideError{Path: path, Dir: w.dir}
	}
	return name, nil
}

// evalSymlinks resolves symbolic links in the part of path that exists.
func evalSymlinks(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
		return real, err
	}
	dir, err := evalSymlinks(filepath.Dir(path))
	return filepath.Join(dir, filepath.Base(path)), err
}
