package workspace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// originsDir has a record for each file with an origin. Files whose names differ
// only in case share a record, because some file systems treat them as one.
const originsDir = ".parley/origins/"

// below stands behind the name of a folder whose record is about everything in it.
const below = "/"

// record returns the name of the record for p.
func record(p Path) string {
	return originsDir + fmt.Sprintf("%x", sha256.Sum256([]byte(strings.ToLower(p.name))))
}

// Origin returns the author of a file's content, as SetOrigin recorded it, and
// false if the file has no origin. An unreadable record counts as an untrusted
// author.
func (w *Workspace) Origin(p Path) (author string, found bool) {
	authors, found := OriginsOf(w).read(record(p))
	if !found {
		return "", false
	}
	if author, found = authors[p.name]; found {
		return author, true
	}
	maps.DeleteFunc(authors, func(name, _ string) bool { return strings.HasSuffix(name, below) })
	return "", len(authors) > 0 || authors == nil // of a file whose name differs in case, and which may be the same
}

// SetOrigin records the author of a file's content, before or after it is written:
// "" is an untrusted author. The record survives a power cut, and stays until
// ClearOrigin or Remove, whatever is written to the file in between.
func (w *Workspace) SetOrigin(p Path, author string) error {
	return OriginsOf(w).change(p, func(authors map[string]string) { authors[p.name] = author })
}

// ClearOrigin records that nothing is left of the content that had the origin.
func (w *Workspace) ClearOrigin(p Path) error {
	return OriginsOf(w).change(p, func(authors map[string]string) { delete(authors, p.name) })
}

// change changes the record of p.
func (o Origins) change(p Path, change func(authors map[string]string)) error {
	w := o.w
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

// Origins are the records of all authors in a workspace.
type Origins struct{ w *Workspace }

// OriginsOf returns the records of w.
func OriginsOf(w *Workspace) Origins { return Origins{w} }

// SetBelow records the author of everything in a folder, also of what comes
// into being there later; "" is an untrusted author. For a file with an origin of its
// own, both count. The record stays until ClearBelow.
func (o Origins) SetBelow(folder Path, author string) error {
	return o.change(folder, func(authors map[string]string) { authors[folder.name+below] = author })
}

// ClearBelow removes the record that SetBelow made.
func (o Origins) ClearBelow(folder Path) error {
	return o.change(folder, func(authors map[string]string) { delete(authors, folder.name+below) })
}

// Below returns the author of everything in a folder, as SetBelow recorded
// it, and false if there is none. An unreadable record counts as an untrusted author.
func (o Origins) Below(folder Path) (author string, found bool) {
	authors, found := o.read(record(folder))
	if found && authors == nil {
		return "", true
	}
	for name, author := range authors {
		if strings.EqualFold(name, folder.name+below) { // one whose name differs in case may be the same
			return author, true
		}
	}
	return "", false
}

// Above returns the author of everything in one of the folders that p is in: of
// the innermost that has one.
func (o Origins) Above(p Path) (author string, found bool) {
	for p.name != "." && !found {
		p = p.Dir()
		author, found = o.Below(p)
	}
	return author, found
}

// An Origin is the record of the author of a file's content, or of everything in a folder.
type Origin struct {
	Name   string // canonical
	Below  bool   // it is that of everything in the folder
	Author string
}

// All returns all records, in no order. The error is that of reading one of them: then it is not known
// whose all files are.
func (o Origins) All() (all []Origin, err error) {
	dir := strings.TrimSuffix(originsDir, "/")
	entries, err := o.w.Names().ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read whose files are: %w", err)
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") { // it is being written
			continue
		}
		authors, found := o.read(originsDir + e.Name())
		if found && authors == nil {
			return nil, fmt.Errorf("read whose files are: %s is damaged", e.Name())
		}
		for name, author := range authors {
			all = append(all, Origin{strings.TrimSuffix(name, below), strings.HasSuffix(name, below), author})
		}
	}
	return all, nil
}

// Remove removes the record r, which All returned, whatever has become of the file since.
func (o Origins) Remove(r Origin) error {
	name := r.Name
	if r.Below {
		name += below
	}
	return o.change(Path{name: r.Name}, func(authors map[string]string) { delete(authors, name) })
}

// Prune removes the records of files that are gone. It is called before anything is
// written: a record is made before its file. What is gone with all else in its outermost
// folder keeps its record: it may be on a disk that is missing.
func (o Origins) Prune(log *slog.Logger) {
	n, err := o.prune()
	if err != nil {
		log.Warn("records of files that are gone not removed", "err", err)
	}
	if n > 0 {
		log.Debug("records of files that are gone removed", "records", n)
	}
}

// prune returns how many records it has removed.
func (o Origins) prune() (n int, err error) {
	all, err := o.All()
	if err != nil {
		return 0, err
	}
	dir := o.w.at.realDir
	isThere := map[string]bool{}
	for _, r := range all {
		top, _, inFolder := strings.Cut(r.Name, "/")
		if _, looked := isThere[top]; inFolder && !looked {
			entries, _ := os.ReadDir(filepath.Join(dir, top))
			isThere[top] = len(entries) > 0
		}
		_, err := os.Lstat(filepath.Join(dir, r.Name))
		isGone := errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
		if !isGone || inFolder && !isThere[top] {
			continue
		}
		if err := o.Remove(r); err != nil {
			return n, fmt.Errorf("remove the record of a file that is gone: %w", err)
		}
		n++
	}
	return n, nil
}

// read reads a record, and reports whether it is there. An unreadable one is nil.
func (o Origins) read(name string) (authors map[string]string, found bool) {
	if _, err := os.Lstat(filepath.Join(o.w.at.realDir, name)); errors.Is(err,
		fs.ErrNotExist) { // so it is with most, and searches ask of many
		return nil, false
	}
	text, err := o.w.Names().ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) { // it is gone
		return nil, false
	}
	if err != nil || json.Unmarshal(text, &authors) != nil {
		return nil, true
	}
	return authors, true
}
