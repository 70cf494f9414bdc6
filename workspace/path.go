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

// A Path names one file or folder of a workspace, which need not exist. Only a
// Workspace makes Paths, and files are reached by nothing else: what was
// checked is what is opened (R-S18). Two Paths are of the same file if they are
// equal. The zero Path names nothing.
type Path struct{ name string }

// String returns the canonical name: relative to the workspace, with slashes,
// without symbolic links; "." is the workspace itself. It is for records, for
// messages and for comparing. Named makes a Path of it again. It is no text for
// Resolve: a file may be called "~".
func (p Path) String() string { return p.name }

// Base returns the last part of the name.
func (p Path) Base() string { return filepath.Base(p.name) }

// Dir returns the folder that p is in.
func (p Path) Dir() Path { return Path{filepath.Dir(p.name)} }

// An OutsideError refuses a path that leads out of the workspace (D-049).
type OutsideError struct{ Path, Dir string }

func (e *OutsideError) Error() string {
	return fmt.Sprintf("Path %s is outside allowed directory %s", e.Path, e.Dir)
}

const maxPath = 4096 // bytes

// Resolve returns the Path that a model or a person means by text: a path
// relative to the workspace, one that begins with "~" for it, or an absolute
// one within it. It is judged by its letters first ("a/../b" is "b"), then its
// symbolic links are resolved. The error is an OutsideError, or that of a path
// that no file can have. Nothing else gives "~" a meaning.
func (w *Workspace) Resolve(text string) (Path, error) {
	if len(text) > maxPath { // no system has a file of that name, and it takes long to find out
		return Path{}, w.at.explain(text, syscall.ENAMETOOLONG)
	}
	name, err := w.at.local(text)
	if err != nil {
		return Path{}, err
	}
	return w.at.real(text, name)
}

// ErrNotCanonical is returned by Named.
var ErrNotCanonical = errors.New("not a canonical name")

// Named returns the Path with that canonical name, which a record holds. The
// error is ErrNotCanonical if Path.String never returned it, or if a symbolic
// link has since taken the place of one of its folders or of the file.
func (w *Workspace) Named(name string) (Path, error) {
	p, err := w.at.follow(name)
	if err == nil && p.name != name {
		err = fmt.Errorf("%s: %w", name, ErrNotCanonical)
	}
	if err != nil {
		return Path{}, err
	}
	return p, nil
}

// A location is where a workspace is.
type location struct {
	dir     string // absolute, as it was given
	realDir string // dir without symbolic links
}

// follow returns the Path of the file that is called name, or that the
// symbolic link of that name leads to.
func (l location) follow(name string) (Path, error) {
	if len(name) > maxPath || !fs.ValidPath(name) {
		return Path{}, fmt.Errorf("%.100q: %w", name, ErrNotCanonical)
	}
	return l.real(name, name)
}

// real returns the Path of name, which is local. text is what it was called.
func (l location) real(text, name string) (Path, error) {
	real, err := evalSymlinks(filepath.Join(l.realDir, name))
	if err != nil {
		return Path{}, l.explain(text, err)
	}
	name, err = l.inside(text, l.realDir, real)
	return Path{name}, err
}

// local returns path relative to the workspace, judged by its letters alone.
func (l location) local(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~"); ok && (rest == "" || rest[0] == '/') {
		return l.inside(path, l.dir, filepath.Join(l.dir, rest))
	}
	if !filepath.IsAbs(path) {
		return l.inside(path, l.dir, filepath.Join(l.dir, path))
	}
	if name, err := l.inside(path, l.dir, path); err == nil {
		return name, nil
	}
	return l.inside(path, l.realDir, path)
}

// inside returns abs relative to dir. path is what it was called.
func (l location) inside(path, dir, abs string) (string, error) {
	name, err := filepath.Rel(dir, abs)
	if err != nil || !filepath.IsLocal(name) {
		return "", &OutsideError{Path: path, Dir: l.dir}
	}
	return name, nil
}

// explain adds the path, as the caller wrote it or as it is called.
func (l location) explain(path string, err error) error {
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

// Walk calls visit for dir and for all that is below it, as fs.WalkDir does.
// Symbolic links are visited and not followed.
func (w *Workspace) Walk(dir Path, visit func(p Path, d fs.DirEntry, err error) error) error {
	return fs.WalkDir(w.root.FS(), dir.name, func(name string, d fs.DirEntry, err error) error {
		return visit(Path{name}, d, err)
	})
}

// Names reaches the files of a workspace by names that the code itself gives
// them, such as "MEMORY.md". A name is taken letter by letter, whatever it
// begins with; symbolic links that a person made are followed.
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
func (n Names) Stat(name string) (fs.FileInfo, error) { return followed(n.w, name, n.w.Stat) }

// ReadDir is Workspace.ReadDir.
func (n Names) ReadDir(name string) ([]fs.DirEntry, error) { return followed(n.w, name, n.w.ReadDir) }

// OpenLog is Workspace.OpenLog.
func (n Names) OpenLog(name string) (*os.File, error) { return followed(n.w, name, n.w.OpenLog) }

// followed calls do with the file that is called name, or that the symbolic link
// of that name leads to.
func followed[T any](w *Workspace, name string, do func(Path) (T, error)) (T, error) {
	p, err := w.at.follow(name)
	if err != nil {
		var none T
		return none, err
	}
	return do(p)
}

// OpenNamed opens the plain file with that canonical name for reading, as Open
// does after Named: what a record names, such as a file of a reply.
func (w *Workspace) OpenNamed(name string) (*os.File, error) {
	p, err := w.Named(name)
	if err != nil {
		return nil, err
	}
	return w.Open(p)
}
