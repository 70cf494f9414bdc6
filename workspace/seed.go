package workspace

import (
	"embed"
	"fmt"
	"io/fs"
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
	var written []string
	for _, e := range entries {
		if w.tree.top.exists(e.Name()) {
			continue
		}
		if err := seed(w.Names(), files, e.Name()); err != nil {
			return written, fmt.Errorf("seed workspace: %w", err)
		}
		written = append(written, e.Name())
	}
	return written, nil
}

// First returns the text of a file of a new workspace, "" if there is no file of that name.
func First(name string) string {
	text, err := first.ReadFile("first/" + name)
	if err != nil {
		return ""
	}
	return string(text)
}

// seed writes the file called name, or everything in the folder with that name.
func seed(to Names, files fs.FS, name string) error {
	return fs.WalkDir(files, name, func(name string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return err
		}
		return to.WriteFile(name, data)
	})
}
