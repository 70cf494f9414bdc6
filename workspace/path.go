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

// A Path names a file or folder of a workspace, which need not exist. Only a
// Workspace makes Paths, and files are only opened by Paths, so that the file that
// was checked is the one that is opened (R-S18). Two Paths are equal if they name
// the same file. The zero Path names nothing.
type Path struct{ name string }

// String returns the canonical name: relative to the workspace, with slashes,
// without symbolic links; "." is the workspace itself. It is for records, messages
// and comparisons, and Named turns it back into a Path. It must not be passed to
// Resolve, because a file may be called "~".
func (p Path) String() string { return p.name }

// Base returns the last element of the name.
func (p Path) Base() string { return filepath.Base(p.name) }

// Dir returns the folder that p is in.
func (p Path) Dir() Path { return Path{filepath.Dir(p.name)} }

// An OutsideError is returned for a path that leads out of the workspace (D-049).
type OutsideError struct{ Path, Dir string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("Path %s is outside allowed directory %s", e.Path, e.Dir)
}

const maxPath = 4096 // bytes

// Resolve returns the Path that a model or a person refers to by text: a path
// relative to the workspace, one that begins with "~" for the workspace, or an
// absolute path in it. First ".." is resolved lexically ("a/../b" is "b"), then
// symbolic links are. The error is an OutsideError, or says that no file can have
// this name. Nothing else gives "~" a meaning.
func (w *Workspace) Resolve(text string) (Path, error) {
	if len(text) > maxPath { // no system has a file of that name, and it takes long to find out
		return Path{}, w.at.explain(text, syscall.ENAMETOOLONG)
	}
	name, err := w.at.local(text)
	if err != nil {
		return Path{}, err
	}
	p, err := w.at.real(text, name)
	if err == nil && !w.at.view.sees(p.name) {
		return Path{}, &OutsideError{Path: text, Dir: w.Dir()}
	}
	return p, err
}

// ErrNotCanonical is returned by Named.
var ErrNotCanonical = errors.New("not a canonical name")

// Named returns the Path with a canonical name from a record. The error is
// ErrNotCanonical if Path.String never returned it, or if a symbolic link has
// since replaced the file or one of its folders.
func (w *Workspace) Named(name string) (Path, error) {
	p, err := w.at.follow(name)
	if err != nil {
		return Path{}, err
	}
	if p.name != name {
		return Path{}, fmt.Errorf("%s: %w", name, ErrNotCanonical)
	}
	return p, nil
}

// A location says where a workspace is.
type location struct {
	dir     string // absolute, as it was given
	realDir string // dir without symbolic links
	view    View
}

// follow returns the Path of the file called name or, if that is a symbolic link,
// of its target.
func (l location) follow(name string) (Path, error) {
	if len(name) > maxPath || !fs.ValidPath(name) {
		return Path{}, fmt.Errorf("%.100q: %w", name, ErrNotCanonical)
	}
	return l.real(name, name)
}

// real returns the Path of name, which is local. text is what the caller called
// it.
func (l location) real(text, name string) (Path, error) {
	real, err := evalSymlinks(filepath.Join(l.realDir, name))
	if err != nil {
		return Path{}, l.explain(text, err)
	}
	name, err = l.inside(text, l.realDir, real)
	return Path{name}, err
}

// local returns path relative to the whole workspace, without looking at the disk.
func (l location) local(path string) (string, error) {
	home := filepath.Join(l.dir, l.view.home)
	abs := path
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		abs = filepath.Join(home, rest)
	} else if !filepath.IsAbs(path) {
		abs = filepath.Join(home, path)
	}
	for _, dir := range []string{l.dir, l.realDir} {
		if name, err := l.inside(path, filepath.Join(dir, l.view.home), abs); err == nil {
			return l.view.whole(name), nil
		}
		if name, err := l.inside(path, dir, abs); err == nil && filepath.IsAbs(path) {
			return name, nil
		}
	}
	return "", &OutsideError{Path: path, Dir: home}
}

// inside returns abs relative to dir. path is what the caller called it.
func (l location) inside(path, dir, abs string) (string, error) {
	name, err := filepath.Rel(dir, abs)
	if err != nil || !filepath.IsLocal(name) {
		return "", &OutsideError{Path: path, Dir: filepath.Join(l.dir, l.view.home)}
	}
	return name, nil
}

// explain adds to err, which may be nil, the path as the caller wrote it.
func (l location) explain(path string, err error) error {
	if err == nil {
		return nil
	}
	if strings.Contains(err.Error(), "path escapes from parent") { // the os package has no name for it
		return &OutsideError{Path: path, Dir: l.dir}
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		err = pe.Err
	}
	return fmt.Errorf("%s: %w", path, err)
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

// Walk calls visit for dir and everything below it, like fs.WalkDir. Symbolic
// links are visited, but not followed.
func (w *Workspace) Walk(dir Path, visit func(p Path, d fs.DirEntry, err error) error) error {
	return fs.WalkDir(w.tree, dir.name, func(name string, d fs.DirEntry, err error) error {
		return visit(Path{name}, d, err)
	})
}

// Names gives access to the files of a workspace by names that the code itself
// chooses, such as "MEMORY.md". A name is taken literally, and symbolic links that
// a person made are followed.
type Names struct{ w *Workspace }

// Names returns the files of w by name.
func (w *Workspace) Names() Names { return Names{w} }

// ReadFile is Workspace.ReadFile.
func (n Names) ReadFile(name string) ([]byte, error) { return followed(n.w, name, n.w.ReadFile) }

// WriteFile is Workspace.WriteFile.
func (n Names) WriteFile(name string, data []byte) error {
	p, err := n.w.at.follow(name)
	if err != nil {
		return err
	}
	return n.w.WriteFile(p, data)
}

// Stat is Workspace.Stat.
func (n Names) Stat(name string) (fs.FileInfo, error) {
	if info, err := n.w.tree.top.target(name); fs.ValidPath(name) && (err == nil || errors.Is(err, fs.ErrNotExist)) {
		return info, n.w.at.explain(name, err)
	}
	return followed(n.w, name, n.w.Stat) // the links may be absolute
}

// ReadDir is Workspace.ReadDir.
func (n Names) ReadDir(name string) ([]fs.DirEntry, error) { return followed(n.w, name, n.w.ReadDir) }

// OpenLog is Workspace.OpenLog.
func (n Names) OpenLog(name string) (*os.File, error) { return followed(n.w, name, n.w.OpenLog) }

// followed calls do with the file called name or, if that is a symbolic link, with
// its target.
func followed[T any](w *Workspace, name string, do func(Path) (T, error)) (T, error) {
	p, err := w.at.follow(name)
	if err != nil {
		var none T
		return none, err
	}
	return do(p)
}

// OpenNamed opens a regular file by its canonical name for reading, like Named and
// Open. The name comes from a record, such as a file of a reply.
func (w *Workspace) OpenNamed(name string) (*os.File, error) {
	p, err := w.Named(name)
	if err != nil {
		return nil, err
	}
	return w.Open(p)
}
