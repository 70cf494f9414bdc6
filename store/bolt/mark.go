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

// Format is the highest number of a layout that this version understands. The
// number is in the file and in the mark. A change of the layout that an older
// version would misread raises it, and brings the code that upgrades.
const Format = formatOfPieces

const (
	// plainFormat is what a file begins with. One without a number has the same
	// layout, from before there were numbers, and is given this one.
	plainFormat = 1
	// formatOfPieces is that of a file in which damage has broken a log into
	// pieces. An older version would see the first of them only.
	formatOfPieces = 2
)

// A mark is the file beside the Store that says that there is one, so that a
// Store that was lost is told from one that never was, and a file that is older
// than the one that was used last from that one.
//
// It is one line of JSON, padded so that it fits in one sector and is
// overwritten in place: also on a full disk, and all of it or nothing.
type mark struct {
	Format  int       `json:"format"`
	Lineage int64     `json:"lineage,omitempty"` // of the file: see identity
	Tx      int       `json:"tx,omitempty"`      // the last commit that is known; the file has this one or a later one
	Wrote   time.Time `json:"wrote,omitzero"`    // when that was
	Closed  *state    `json:"closed,omitempty"`  // nil while the Store is open
}

// A state tells a file that nobody has touched since it was closed.
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

// readMark returns the mark of the Store at path, nil if there is none. One
// that makes no sense only says that there was a Store.
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
	case scanOld(string(text), &s): // as it was before format 1
		m = &mark{Closed: &s}
	default:
		m = &mark{}
	}
	return m, nil
}

func scanOld(text string, s *state) bool {
	n, err := fmt.Sscanf(text, "closed %d %d\n", &s.Size, &s.Time)
	return err == nil && n == 2
}

// write puts m beside path. It is on disk when sync is true.
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
	_, err = f.WriteAt([]byte(line), 0)
	if sync && err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// inspect says whether the file is as the last Close left it, by what the mark
// says. It makes the file when there was never one.
func inspect(path string, m *mark) (clean bool, err error) {
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

// create makes an empty Store at path: all of it or nothing, since an empty
// file counts as damage.
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
