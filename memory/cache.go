package memory

import (
	"errors"
	"io/fs"
	"sync"
	"time"
)

// A Folder is a Reader that also lists folders, and reports when something has changed.
type Folder interface {
	Reader
	// ReadDir returns what is in the folder called name, sorted, or an fs.ErrNotExist.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Stat describes the file or folder called name.
	Stat(name string) (fs.FileInfo, error)
}

// A Cache reads a file or folder again only after it has changed. The caller must not modify
// the results. It is safe for concurrent use.
type Cache struct {
	folder  Folder
	mu      sync.Mutex
	files   map[string]kept[[]byte] // by name
	folders map[string]kept[[]fs.DirEntry]
}

// Cached returns a Cache of f.
func Cached(f Folder) *Cache {
	return &Cache{folder: f, files: map[string]kept[[]byte]{}, folders: map[string]kept[[]fs.DirEntry]{}}
}

// A kept is a file or folder as it was last read.
type kept[T any] struct {
	info    fs.FileInfo // from before it was read
	content T
}

// minAge is how old a change must be so that the next one has another modification
// time.
const minAge = time.Second

// maxKept is how many files are cached: those of some 50 people and 50 skills.
const maxKept = 200

// ReadFile returns the content of a file.
func (c *Cache) ReadFile(name string) ([]byte, error) {
	return readKept(c, c.files, name, c.folder.ReadFile)
}

// ReadDir returns what is in a folder, sorted.
func (c *Cache) ReadDir(name string) ([]fs.DirEntry, error) {
	return readKept(c, c.folders, name, c.folder.ReadDir)
}

// readKept returns what read returns for name, or what it returned before if that has not changed. It
// does not hold the lock while it waits for the disk: every turn needs several files.
func readKept[T any](c *Cache, all map[string]kept[T], name string, read func(string) (T, error)) (T, error) {
	info, err := c.folder.Stat(name)
	if errors.Is(err, fs.ErrNotExist) { // most people have few files
		var none T
		return none, err
	}
	if err != nil {
		return read(name)
	}
	c.mu.Lock()
	last, ok := all[name]
	c.mu.Unlock()
	if ok && same(last.info, info) {
		return last.content, nil
	}
	content, err := read(name)
	if err != nil || time.Since(info.ModTime()) <= minAge {
		return content, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(all) >= maxKept {
		clear(all)
	}
	all[name] = kept[T]{info, content}
	return content, nil
}
