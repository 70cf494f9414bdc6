package host

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// Exposed returns the files and folders in dir, with dir itself as ".", that other
// users of this machine can reach and have permissions for. What is in a folder that
// is closed to them is out of their reach. The folder except is skipped.
func Exposed(dir, except string) (names []string, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	err = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist): // it was removed meanwhile
			return nil
		case err != nil:
			return err
		case d.IsDir() && filepath.Join(dir, name) == filepath.Clean(except):
			return fs.SkipDir
		case !d.IsDir() && !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil // it was removed meanwhile
		}
		switch {
		case info.Mode().Perm()&0o077 != 0:
			names = append(names, name)
		case d.IsDir():
			return fs.SkipDir
		}
		return nil
	})
	return names, err
}

// Restrict takes the permissions for what is [Exposed] in dirs from other users of this
// machine: earlier versions, backups and other programs may have left some. What is out
// of their reach is left alone, since a change of its permissions would look like one of
// its content (see package changes). It logs what it changed and what it could not
// change. A folder that does not exist is skipped.
func Restrict(log *slog.Logger, dirs ...string) {
	for _, dir := range dirs {
		names, err := restrict(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if len(names) > 0 {
			log.Warn("other users of this machine had access to files and folders, and no longer do",
				"folder", dir, "count", len(names), "first", names[0])
		}
		if err != nil {
			log.Error("could not take access to files and folders from other users of this machine",
				"folder", dir, "err", err)
		}
	}
}

// restrict is [Restrict] for one folder. It returns the names of what was exposed.
func restrict(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := Exposed(dir, "")
	for _, name := range names {
		if e := hide(root, name); !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return names, err
}

// hide takes all permissions for a file or folder in root from other users.
func hide(root *os.Root, name string) error {
	info, err := root.Lstat(name)
	if err != nil {
		return err
	}
	return root.Chmod(name, info.Mode().Perm()&0o700)
}
