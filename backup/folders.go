package backup

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"parley/store/bolt"
)

// Existing returns the paths that exist and are not empty folders.
func Existing(paths ...string) []string {
	return slices.DeleteFunc(paths, func(path string) bool {
		_, err := os.Lstat(path)
		entries, notFolder := os.ReadDir(path)
		return err != nil || notFolder == nil && len(entries) == 0
	})
}

// unusedPath returns path, with a number appended if it exists already.
func unusedPath(path string) string {
	for n := 1; ; n++ {
		free := path
		if n > 1 {
			free = fmt.Sprintf("%s-%d", path, n)
		}
		if _, err := os.Lstat(free); err != nil { // any other error shows when the path is used
			return free
		}
	}
}

// moveAll moves paths into the new folder dir: all of them, or none.
func moveAll(dir string, paths []string) error {
	if len(paths) == 0 {
		return nil
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for i, path := range paths {
		err := os.Rename(path, filepath.Join(dir, filepath.Base(path)))
		if err != nil { // such as a workspace on another disk
			for _, moved := range paths[:i] {
				err = errors.Join(err, os.Rename(filepath.Join(dir, filepath.Base(moved)), moved))
			}
			return errors.Join(err, os.Remove(dir))
		}
	}
	folders := []string{dir, filepath.Dir(dir)}
	for _, path := range paths {
		folders = append(folders, filepath.Dir(path))
	}
	return syncFolders(folders...)
}

// syncFolders makes the names in folders survive a power cut.
func syncFolders(folders ...string) error {
	slices.Sort(folders)
	for _, folder := range slices.Compact(folders) {
		d, err := os.Open(folder)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return fmt.Errorf("sync %s: %w", folder, err)
		}
	}
	return nil
}

// syncTree does what syncFolders does for folder and all folders below it.
func syncTree(folder string) error {
	var folders []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			folders = append(folders, path)
		}
		return nil
	})
	if err != nil {
		return err
	}
	return syncFolders(folders...)
}

// copyFile copies a file to a new one that only its owner can read.
// storeSize returns the bytes of the store in file and of its log.
func storeSize(file string) (size uint64, err error) {
	segments, err := filepath.Glob(filepath.Join(bolt.LogOf(file), "*"))
	if err != nil {
		return 0, err
	}
	for _, path := range append(segments, file) {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && path != file { // dropped since
			continue
		}
		if err != nil {
			return 0, err
		}
		size += uint64(info.Size())
	}
	return size, nil
}

// copyStore copies a store that nobody uses, with its log if it has one.
func copyStore(to, from string) error {
	segments, err := filepath.Glob(filepath.Join(bolt.LogOf(from), "*"))
	if err != nil {
		return err
	}
	if len(segments) > 0 {
		if err := os.Mkdir(bolt.LogOf(to), 0o700); err != nil {
			return err
		}
	}
	for _, path := range segments {
		if err := copyFile(filepath.Join(bolt.LogOf(to), filepath.Base(path)), path); err != nil {
			return err
		}
	}
	return copyFile(to, from)
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}
