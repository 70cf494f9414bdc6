package bolt

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Format is the highest layout number that this version understands. The number is in
// the file and in the mark. A change of the layout that an older version would misread
// raises it, and comes with code that upgrades.
const Format = formatOfPieces

const (
	// plainFormat is that of a new file. A file without a number has the same layout,
	// from before there were numbers, and gets this one.
	plainFormat = 1
	// formatOfPieces is that of a file in which damage has broken a log into pieces.
	// An older version would see only the first one.
	formatOfPieces = 2
)

// A mark is a file beside the Store that says what is known of it. It distinguishes a
// lost Store from one that never was, and the file that was used last from an earlier
// version of it.
//
// It is one line of JSON, padded so that it fills one sector and is overwritten in
// place: even on a full disk, and all of it or nothing.
type mark struct {
	Format  int       `json:"format"`
	Lineage int64     `json:"lineage,omitempty"` // of the file: see identity
	Tx      int       `json:"tx,omitempty"`      // the last known commit; the file has this one or a later one
	Wrote   time.Time `json:"wrote,omitzero"`    // when that was
	Closed  *state    `json:"closed,omitempty"`  // nil while the Store is open
}

// A state identifies a file that nobody has touched since it was closed.
type state struct {
	Size int64 `json:"size"`
	Time int64 `json:"time"` // of the last change, in nanoseconds
	// Spare says that the last commit changed nothing but the free list.
	Spare bool `json:"spare,omitempty"`
}

const markSize = 512 // bytes

func markOf(path string) string { return path + ".mark" }

func stateOf(path string) (*state, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	return &state{Size: info.Size(), Time: info.ModTime().UnixNano()}, nil
}

// readMark returns the mark of the Store at path, nil if there is none. A mark that
// cannot be understood says only that there was a Store.
func readMark(path string) (*mark, error) {
	text, err := os.ReadFile(markOf(path))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	m := &mark{}
	var s state
	switch {
	case json.Unmarshal(text, m) == nil:
	case parseOldMark(string(text), &s):
		m = &mark{Closed: &s}
	default:
		m = &mark{}
	}
	return m, nil
}

// parseOldMark reads a mark from before format 1.
func parseOldMark(text string, s *state) bool {
	n, err := fmt.Sscanf(text, "closed %d %d\n", &s.Size, &s.Time)
	return err == nil && n == 2
}

// write writes m beside path. If sync is true it returns when m is on disk.
func (m mark) write(path string, sync bool) error {
	text, err := json.Marshal(m)
	if err != nil {
		return err
	}
	line := string(text) + strings.Repeat(" ", max(0, markSize-1-len(text))) + "\n"
	f, err := os.OpenFile(markOf(path), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteAt([]byte(line), 0); err != nil || !sync {
		return errors.Join(err, f.Close())
	}
	return errors.Join(f.Sync(), f.Close())
}

// wasClosed reports whether the file is unchanged since the last Close, according to
// its mark. It creates the file if there was never one.
func wasClosed(path string, m *mark) (clean bool, err error) {
	now, err := stateOf(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && m == nil:
		return true, create(path)
	case errors.Is(err, fs.ErrNotExist):
		return false, &DamagedError{File: path, Cause: errors.New("it is missing")}
	case err != nil:
		return false, err
	case now.Size == 0:
		return false, &DamagedError{File: path, Cause: errors.New("it is empty")}
	}
	return m != nil && m.Closed != nil && m.Closed.Size == now.Size && m.Closed.Time == now.Time, nil
}

// create creates an empty Store at path: all of it or nothing, because an empty file
// counts as damage.
func create(path string) error {
	draft := path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	o := options()
	o.InitialMmapSize = 0
	db, err := openFile(draft, o)
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	if err := os.Rename(draft, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
