package workspace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// originsDir holds a record for each file that has an origin: one for all whose
// names differ in case only, because some disks take these for one.
const originsDir = ".parley/origins/"

// record returns the name of the record of p.
func record(p Path) string {
	return originsDir + fmt.Sprintf("%x", sha256.Sum256([]byte(strings.ToLower(p.name))))
}

// Origin returns who wrote what a file holds, as SetOrigin was told, and false
// if it has no origin. A record that cannot be read counts as one of nobody.
func (w *Workspace) Origin(p Path) (author string, found bool) {
	name := record(p)
	if _, err := os.Lstat(filepath.Join(w.at.realDir, name)); errors.Is(err,
		fs.ErrNotExist) { // so it is with most, and searches ask of many
		return "", false
	}
	text, err := w.Names().ReadFile(name)
	authors := map[string]string{}
	if err != nil || json.Unmarshal(text, &authors) != nil {
		return "", true
	}
	if author, found = authors[p.name]; found || len(authors) == 0 {
		return author, found
	}
	return "", true // of a file whose name differs in case, and which may be the same
}

// SetOrigin notes who wrote what a file holds, or is about to hold: "" is
// somebody whom nobody trusts. The note survives a power cut, and it stays
// until ClearOrigin or Remove, whatever is written into the file meanwhile.
func (w *Workspace) SetOrigin(p Path, author string) error {
	return w.changeOrigin(p, func(authors map[string]string) { authors[p.name] = author })
}

// ClearOrigin notes that nothing of what a file had its origin for is left.
func (w *Workspace) ClearOrigin(p Path) error {
	return w.changeOrigin(p, func(authors map[string]string) { delete(authors, p.name) })
}

func (w *Workspace) changeOrigin(p Path, change func(authors map[string]string)) error {
	record, err := w.at.follow(record(p))
	if err != nil {
		return err
	}
	w.origins.Lock()
	defer w.origins.Unlock()
	text, err := w.ReadFile(record)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	authors := map[string]string{}
	damaged := err == nil && json.Unmarshal(text, &authors) != nil // of it nothing is left but what is known now
	before := maps.Clone(authors)
	change(authors)
	switch {
	case maps.Equal(before, authors) && !damaged:
		return nil
	case len(authors) == 0:
		return w.root.Remove(record.name)
	}
	text, err = json.Marshal(authors)
	if err != nil {
		return err
	}
	return w.WriteFile(record, text)
}
