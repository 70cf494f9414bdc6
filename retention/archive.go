package retention

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// Folder is the folder of the archive in the data folder.
const Folder = "archive"

// tailSize is how much of the end of a file is searched for lines that are handed over
// again, besides as much as they take. A batch that was written before a crash is there.
const tailSize = 1 << 20 // bytes

// An Archive keeps what is removed, as files of text in which each line is JSON. Each file
// may be written by one goroutine at a time.
type Archive struct {
	Dir    string      // it is made when it is needed
	Wanted func() bool // whether anything is to be kept

	// step is called before each call of the system that changes something, and its error
	// is that of the call; nil but in tests.
	step func(call string) error
}

// Add appends lines to the file name of a part, but for those that were handed over
// before, as the last ones: so a pass that a crash ended can be made again. When it has
// returned nil they are on disk. A line that was cut off by a crash is removed first.
func (a Archive) Add(part, name string, lines ...[]byte) error {
	if err := a.add(filepath.Join(a.Dir, part, fileName(name)+".jsonl"), lines); err != nil {
		return fmt.Errorf("archive %s: %w", part, err)
	}
	return nil
}

func (a Archive) add(path string, lines [][]byte) (err error) {
	if err := a.before("open"); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, tail, err := a.readTail(f, lines)
	if err != nil {
		return err
	}
	if size == 0 { // the file may be a new one: its name must be there as long as its lines
		if err := a.syncFolders(filepath.Dir(path)); err != nil {
			return err
		}
	}
	added := without(lines, tail)
	if len(added) > 0 {
		if err := a.write(f, size, added); err != nil {
			return err
		}
	}
	if err := a.before("sync"); err != nil { // what is there already may not be on disk either
		return err
	}
	return f.Sync()
}

// readTail returns the size of f up to the end of its last whole line, and the end of that
// in which lines may be that were handed over before. What follows is cut off.
func (a Archive) readTail(f *os.File, lines [][]byte) (size int64, tail []byte, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	want := int64(tailSize)
	for _, line := range lines {
		want += int64(len(line)) + 1
	}
	for size = info.Size(); ; want *= 2 { // a line may be longer than that
		start := max(0, size-want)
		tail = make([]byte, size-start)
		if _, err := io.ReadFull(io.NewSectionReader(f, start, size-start), tail); err != nil {
			return 0, nil, err
		}
		end := bytes.LastIndexByte(tail, '\n') + 1
		if end == 0 && start > 0 {
			continue
		}
		whole := tail[:end]
		if start > 0 { // in the middle of a line
			whole = whole[bytes.IndexByte(whole, '\n')+1:]
		}
		if start+int64(end) == size {
			return size, whole, nil
		}
		if err := a.before("truncate"); err != nil {
			return 0, nil, err
		}
		return start + int64(end), whole, f.Truncate(start + int64(end))
	}
}

// without returns the text of those lines that are not in text, each once.
func without(lines [][]byte, text []byte) (rest []byte) {
	unknown := map[string]bool{}
	for _, line := range lines {
		unknown[string(line)] = true
	}
	for line := range bytes.Lines(text) {
		delete(unknown, string(bytes.TrimSuffix(line, []byte("\n"))))
	}
	for _, line := range lines {
		if unknown[string(line)] {
			delete(unknown, string(line))
			rest = append(append(rest, line...), '\n')
		}
	}
	return rest
}

// write appends text to f, which has that size: all of it, or nothing if it fails.
func (a Archive) write(f *os.File, size int64, text []byte) error {
	if err := a.before("write"); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	if _, err := f.Write(text); err != nil {
		return errors.Join(err, f.Truncate(size))
	}
	return nil
}

// syncFolders makes the name of a file in folder, and those of the folders that may have
// been made for it, survive a power cut.
func (a Archive) syncFolders(folder string) error {
	for ; len(folder) >= len(filepath.Dir(a.Dir)); folder = filepath.Dir(folder) {
		if err := a.before("sync folder"); err != nil {
			return err
		}
		if err := syncFolder(folder); err != nil {
			return err
		}
	}
	return nil
}

// before is called before each step: see Archive.step.
func (a Archive) before(call string) error {
	if a.step == nil {
		return nil
	}
	return a.step(call)
}

const maxFileName = 150 // bytes

// fileName returns name as the name of one file, another one for each name.
func fileName(name string) string {
	escaped := strings.ReplaceAll(url.PathEscape(name), ".", "%2E")
	if len(escaped) <= maxFileName {
		return escaped
	}
	return fmt.Sprintf("%s-%x", escaped[:maxFileName-17], sha256.Sum256([]byte(name)))[:maxFileName]
}

// syncFolder makes the names in a folder survive a power cut.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
