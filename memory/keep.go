package memory

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// A Folder is a Reader that can tell what has changed.
type Folder interface {
	Reader
	// Stat describes the file called name.
	Stat(name string) (fs.FileInfo, error)
}

// Keep returns a Reader of the files in f that reads a file again only when it
// has changed. The caller must not modify what it returns.
func Keep(f Folder) Reader { return &keeper{folder: f, files: map[string]keptFile{}} }

type keeper struct {
	folder Folder
	mu     sync.Mutex
	files  map[string]keptFile // by name
}

// A keptFile is a file as it was read.
type keptFile struct {
	info fs.FileInfo // from before it was read
	text []byte
}

// minAge is how old a change must be for the next one to have another time.
const minAge = time.Second

// maxKept is how many files are held: those of some 50 people and 50 skills.
const maxKept = 200

// ReadFile returns the contents of a file.
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
