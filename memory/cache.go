package memory

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// A Folder is a Reader that also reports when files have changed.
type Folder interface {
	Reader
	// Stat describes the file called name.
	Stat(name string) (fs.FileInfo, error)
}

// Cached returns a Reader that reads a file of f again only after it has changed.
// The caller must not modify the results.
func Cached(f Folder) Reader { return &keeper{folder: f, files: map[string]keptFile{}} }

type keeper struct {
	folder Folder
	mu     sync.Mutex
	files  map[string]keptFile // by name
}

// A keptFile is a file as it was last read.
type keptFile struct {
	info fs.FileInfo // from before it was read
	text []byte
}

// minAge is how old a change must be so that the next one has another modification
// time.
const minAge = time.Second

// maxKept is how many files are cached: those of some 50 people and 50 skills.
const maxKept = 200

// ReadFile returns the content of a file.
func (k *keeper) ReadFile(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := k.folder.Stat(name)
	if errors.Is(err, fs.ErrNotExist) { // most people have few files
		return nil, err
	}
	if err != nil {
		return k.folder.ReadFile(name)
	}
	if f, ok := k.files[name]; ok && same(f.info, info) {
		return f.text, nil
	}
	text, err := k.folder.ReadFile(name)
	if err != nil || time.Since(info.ModTime()) <= minAge {
		return text, err
	}
	if len(k.files) >= maxKept {
		clear(k.files)
	}
	k.files[name] = keptFile{info, text}
	return text, nil
}
