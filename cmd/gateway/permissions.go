package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// exposedFiles returns the files and folders in dir, itself as ".", that other
// users of this machine have rights to, without what is in the folder without.
func exposedFiles(dir, without string) (names []string, err error) {
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
		case d.IsDir() && filepath.Join(dir, name) == filepath.Clean(without):
			return fs.SkipDir
		case !d.IsDir() && !d.Type().IsRegular():
			return nil
		}
		info, err := d.Info()
		if err == nil && info.Mode().Perm()&0o077 != 0 {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}

// closeFolder takes all rights to what is in dir from other users of this
// machine. It returns the names of what they had rights to.
func closeFolder(dir string) ([]string, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := exposedFiles(dir, "")
	for _, name := range names {
		info, e := root.Lstat(name)
		if e == nil {
			e = root.Chmod(name, info.Mode().Perm()&0o700)
		}
		if !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return names, err
}

// restrictPermissions makes sure that nobody but the user who runs Parley can read
// what it keeps: earlier versions, backups and other programs may have left more
// rights. What cannot be closed is logged, and Parley goes on.
func (g *gateway) restrictPermissions() {
	for _, dir := range []string{g.Config.DataDir, g.Config.Workspace} {
		names, err := closeFolder(dir)
		if errors.Is(err, fs.ErrNotExist) { // there is none with a store in memory
			continue
		}
		if len(names) > 0 {
			g.Log.Warn("files and folders were open to other users of this machine; they are closed now", "folder", dir, "count", len(names), "first", names[0])
		}
		if err != nil {
			g.Log.Error("files and folders not closed to other users of this machine", "folder", dir, "err", err)
		}
	}
}
