// Package workspace is the agent's files on disk, confined to one folder.
//
// Every file the agent touches is reached through one os.Root, so that no
// path, symbolic link or race leads out of the folder (R-S18). What a model or
// a person writes is made a Path once, by Resolve. What was checked of a Path
// holds for what is opened by it, because each folder on the way is opened in the
// one before, and no symbolic link is followed. Everything in the folder is for the
// eyes of the user alone who runs Parley.
package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
)

// A Workspace is one open folder, or the part of it that some people see: For. It
// is safe for concurrent use.
type Workspace struct {
	tree      tree
	at        location
	protected protection
	origins   *sync.Mutex // held while the record of an origin changes
	charges   *charges
}

// Open opens the folder dir. If it does not exist, Open creates it, readable only
// for its owner.
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
	if err := makeLasting(dir); err != nil {
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
	w := &Workspace{
		tree:      tree{folder{root: root, name: "."}},
		at:        location{dir: dir, realDir: real},
		protected: protection{workspace: real},
		origins:   &sync.Mutex{},
	}
	w.charges = &charges{files: w.Names(), tree: w.tree}
	return w, nil
}

// makeLasting creates a folder and its parents, so that they survive a power cut.
func makeLasting(dir string) error {
	var changed []string // the folders in which one is made
	for missing := dir; ; missing = filepath.Dir(missing) {
		if _, err := os.Lstat(missing); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		changed = append(changed, filepath.Dir(missing))
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	for _, folder := range changed {
		d, err := os.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
	}
	return nil
}

// Claim marks the folder as used by this process until the returned file is
// closed. It only affects other calls of Claim. The error is ErrInUse if another
// process has claimed the folder; file systems without locks return other errors.
func (w *Workspace) Claim() (*os.File, error) {
	f, err := w.tree.open(".", os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = ErrInUse
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("claim workspace: %w", err), f.Close())
	}
	return f, nil
}

// Close closes the folder.
func (w *Workspace) Close() error { return w.tree.top.Close() }

// Dir returns the absolute path of the folder that relative paths begin in.
func (w *Workspace) Dir() string { return filepath.Join(w.at.dir, w.at.view.home) }

// Protect names files and folders outside that must not be reached from the
// workspace, not even by a hard link: the data folder, the config. Everything
// below a protected folder is protected, except for the workspace. They need not
// exist yet. Protect must be called before the workspace is used.
func (w *Workspace) Protect(paths ...string) error {
	for _, path := range paths {
		absolute, err := filepath.Abs(path)
		if err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		real, err := evalSymlinks(absolute)
		if err != nil {
			return fmt.Errorf("protect %s: %w", path, err)
		}
		if name, err := filepath.Rel(w.at.realDir, real); err == nil && filepath.IsLocal(name) {
			return fmt.Errorf("protect %s: it lies in the workspace %s", path, w.at.dir)
		}
		w.protected.paths = append(w.protected.paths, real)
	}
	return nil
}

// A protection knows the files and folders that must not be reached from the
// workspace.
type protection struct {
	workspace string   // its folder, without symbolic links
	paths     []string // without symbolic links
}

// covers reports whether info describes a protected file. Since these are outside
// the workspace, that is only possible by a hard link.
func (p protection) covers(info fs.FileInfo) bool {
	if stat, ok := info.Sys().(*syscall.Stat_t); !ok || stat.Nlink < 2 {
		return false
	}
	return slices.ContainsFunc(p.paths, func(path string) bool { return p.holds(path, info) })
}

// holds reports whether info describes path, or a file below it.
func (p protection) holds(path string, info fs.FileInfo) (found bool) {
	_ = filepath.WalkDir(path, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil: // what cannot be read cannot be compared
			return nil
		case d.IsDir() && path == p.workspace:
			return fs.SkipDir
		}
		if other, err := d.Info(); err == nil && os.SameFile(info, other) {
			found = true
			return fs.SkipAll
		}
		return nil
	})
	return found
}

// Errors of Open, ReadFile and WriteFile, beside OutsideError and those of the os package.
var (
	ErrNotFile   = errors.New("not a plain file")
	ErrProtected = errors.New("protected file")
	ErrTooBig    = errors.New("file too big")
	ErrInUse     = errors.New("another process uses this workspace") // of Claim
)
