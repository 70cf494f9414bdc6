package retention

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// AddFile writes what from yields to a file called name, which has slashes, in the folder
// of a part, in place of one of that name. When it has returned nil the file is on disk.
func (a Archive) AddFile(part, name string, from io.Reader) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("archive %s: %q is no name of a file", part, name)
	}
	if err := a.addFile(filepath.Join(a.Dir, part, name), from); err != nil {
		return fmt.Errorf("archive %s: %w", part, err)
	}
	return nil
}

// addFile writes what from yields to a file that only its owner can read, whole or not
// at all.
func (a Archive) addFile(path string, from io.Reader) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	draft := filepath.Join(dir, ".new") // nobody else writes here, so that a crash leaves one at most
	f, err := os.OpenFile(draft, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, from)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return a.syncFolders(dir)
}
