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

// originsDir has a record for each file with an origin. Files whose names differ
// only in case share a record, because some file systems treat them as one.
const originsDir = ".parley/origins/"

// record returns the name of the record for p.
func record(p Path) string {
	return originsDir + fmt.Sprintf("%x", sha256.Sum256([]byte(strings.ToLower(p.name))))
}

// Origin returns the author of a file's content, as SetOrigin recorded it, and
// false if the file has no origin. An unreadable record counts as an untrusted
// author.
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

// SetOrigin records the author of a file's content, before or after it is written:
// "" is an untrusted author. The record survives a power cut, and stays until
// ClearOrigin or Remove, whatever is written to the file in between.
func (w *Workspace) SetOrigin(p Path, author string) error {
	return w.changeOrigin(p, func(authors map[string]string) { authors[p.name] = author })
}

// ClearOrigin records that nothing is left of the content that had the origin.
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
		return w.tree.remove(record.name)
	}
	text, err = json.Marshal(authors)
	if err != nil {
		return err
	}
	return w.WriteFile(record, text)
}
