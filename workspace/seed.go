package workspace

import (
	"embed"
	"fmt"
)

// first holds the files that a new workspace begins with.
//
//go:embed first/*.md
var first embed.FS

// Seed writes those of the first files that are not there, and returns their
// names. It never changes a file that is.
func (w *Workspace) Seed() ([]string, error) {
	entries, err := first.ReadDir("first")
	if err != nil {
		return nil, err
	}
	var written []string
	for _, e := range entries {
		if _, err := w.root.Lstat(e.Name()); err == nil {
			continue
		}
		data, err := first.ReadFile("first/" + e.Name())
		if err == nil {
			err = w.WriteFile(e.Name(), data)
		}
		if err != nil {
			return written, fmt.Errorf("seed workspace: %w", err)
		}
		written = append(written, e.Name())
	}
	return written, nil
}
