// Package mark keeps what is known of a Store in a file beside it.
package mark

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"parley/store/bolt/pages"
)

// A Mark is a file beside the Store that says what is known of it. It distinguishes a
// lost Store from one that never was, and the file that was used last from an earlier
// version of it.
//
// It is one line of JSON, padded so that it fills one sector and is overwritten in
// place: even on a full disk, and all of it or nothing.
type Mark struct {
	Format  int       `json:"format"`
	Lineage int64     `json:"lineage,omitempty"` // of the file: its identity
	Tx      int       `json:"tx,omitempty"`      // the last known commit; the file has this one or a later one
	Seq     uint64    `json:"seq,omitempty"`     // the last known change in the log, like Tx
	Log     bool      `json:"log,omitempty"`     // there is a log, which the file needs
	Wrote   time.Time `json:"wrote,omitzero"`    // when Tx and Seq were known
	Closed  *State    `json:"closed,omitempty"`  // nil while the Store is open
	// Notes say what the last known commit has written, and that of a file which may take
	// the place of this one: see pages.Note. They are left out if the mark would be too long.
	Notes [][]byte `json:"notes,omitempty"`
	// Left says that there is no Store any more: it was moved into one of another type. nil: it was not.
	Left *Left `json:"left,omitempty"`
	// Unread counts the starts after unclean ends since all of the file was read.
	Unread int `json:"unread,omitempty"`
}

// A State identifies a file that nobody has touched since it was closed.
type State struct {
	Size int64 `json:"size"`
	Time int64 `json:"time"` // of the last change, in nanoseconds
	// Spare says that the last commit changed nothing but the free list.
	Spare bool `json:"spare,omitempty"`
}

// A Left says what a Store was moved into, and when.
type Left struct {
	To   string    `json:"to"` // a type of Stores
	Time time.Time `json:"time"`
}

const size = 512 // bytes

// Path returns the path of the mark of the Store at path.
func Path(path string) string { return path + ".mark" }

// StateOf returns the state of the file at path.
func StateOf(path string) (*State, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &State{Size: info.Size(), Time: info.ModTime().UnixNano()}, nil
}

// Read returns the mark of the Store at path, nil if there is none. A mark that
// cannot be understood says only that there was a Store.
func Read(path string) (*Mark, error) {
	text, err := os.ReadFile(Path(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &Mark{}
	var s State
	switch {
	case json.Unmarshal(text, m) == nil:
	case parseOldMark(string(text), &s):
		m = &Mark{Closed: &s}
	default:
		m = &Mark{}
	}
	return m, nil
}

// parseOldMark reads a mark from before format 1.
func parseOldMark(text string, s *State) bool {
	n, err := fmt.Sscanf(text, "closed %d %d\n", &s.Size, &s.Time)
	return err == nil && n == 2
}

// Write writes m beside path. If sync is true it returns when m is on disk.
func (m Mark) Write(path string, sync bool) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if len(text) >= size {
		m.Notes = nil
		if text, err = json.Marshal(m); err != nil {
			return err
		}
	}
	line := string(text) + strings.Repeat(" ", max(0, size-1-len(text))) + "\n"
	f, err := os.OpenFile(Path(path), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(line), 0); err != nil || !sync {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// IsClosed reports whether m says that the file was closed as it is now.
func (m *Mark) IsClosed(now *State) bool {
	return m != nil && m.Closed != nil && m.Closed.Size == now.Size && m.Closed.Time == now.Time
}

// SetPageNotes makes notes those of m, but for empty ones.
func (m *Mark) SetPageNotes(notes ...pages.Note) {
	m.Notes = nil
	for _, n := range notes {
		if n.Tx > 0 {
			m.Notes = append(m.Notes, n.Encode())
		}
	}
}

// PageNotes returns the notes of m, which may be nil.
func (m *Mark) PageNotes() (notes []pages.Note) {
	if m == nil {
		return nil
	}
	for _, record := range m.Notes {
		if n, ok := pages.ParseNote(record); ok && n.Tx > 0 {
			notes = append(notes, n)
		}
	}
	return notes
}

// LastNote returns the note of tx, the last commit of the file at path, which is sound: the
// one that m has, or else one of what is there.
func (m *Mark) LastNote(path string, tx int) pages.Note {
	for _, n := range m.PageNotes() {
		if n.Tx == tx {
			return n
		}
	}
	return pages.NoteOf(path, tx)
}
