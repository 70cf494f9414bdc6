package workspace

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"sync"
)

// first has the files and folders of a new workspace.
//
//go:embed first
var first embed.FS

// Seed writes the initial files and folders that do not exist yet, and returns
// their names. It never changes an existing file, nor the content of an existing
// folder: a page that somebody deleted from it stays deleted.
func (w *Workspace) Seed() ([]string, error) {
	files, err := fs.Sub(first, "first")
	if err != nil {
		return nil, err
	}
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, err
	}
	var written, names []string
	for _, e := range entries {
		if w.tree.top.exists(e.Name()) {
			continue
		}
		below, err := filesBelow(files, e.Name())
		if err != nil {
			return nil, err
		}
		names = append(names, below...)
		written = append(written, e.Name())
	}
	if err := writeAll(w.Names(), files, names); err != nil {
		return nil, fmt.Errorf("seed workspace: %w", err)
	}
	return written, nil
}

// filesBelow returns the file called name, or all in the folder with that name.
func filesBelow(files fs.FS, name string) (names []string, err error) {
	err = fs.WalkDir(files, name, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		names = append(names, name)
		return nil
	})
	return names, err
}

// writeAll writes copies of files, side by side: so they share the time that the disk takes for each.
func writeAll(to Names, files fs.FS, names []string) error {
	errs := make([]error, len(names))
	var writing sync.WaitGroup
	for i, name := range names {
		writing.Go(func() {
			errs[i] = seed(to, files, name)
		})
	}
	writing.Wait()
	return errors.Join(errs...)
}

// First returns the text of a file of a new workspace, "" if there is no file of that name.
func First(name string) string {
	text, err := first.ReadFile("first/" + name)
	if err != nil {
		return ""
	}
	return string(text)
}

// seed writes a copy of the file called name.
func seed(to Names, files fs.FS, name string) error {
	data, err := fs.ReadFile(files, name)
	if err != nil {
		return err
	}
	return to.WriteFile(name, data)
}
