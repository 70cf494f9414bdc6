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

// Keep returns a Reader of the files in f, which it reads again only when they
// have changed. What it returns is not to be written to.
func Keep(f Folder) Reader { return &keeper{Folder: f, kept: map[string]page{}} }

type keeper struct {
	Folder
	mu   sync.Mutex
	kept map[string]page // by the name of the file
}

// A page is a file as it was read.
type page struct {
	info fs.FileInfo // from before
	text []byte
}

// settled is how old a change must be for the next one to have another time.
const settled = time.Second

// maxPages is how many files are held: those of some 50 people and 50 skills.
const maxPages = 200

func (k *keeper) ReadFile(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	info, err := k.Stat(name)
	if errors.Is(err, fs.ErrNotExist) { // of most people there is little
		return nil, err
	}
	if err != nil {
		return k.Folder.ReadFile(name)
	}
	if p, ok := k.kept[name]; ok && same(p.info, info) {
		return p.text, nil
	}
	text, err := k.Folder.ReadFile(name)
	if err == nil && time.Since(info.ModTime()) > settled {
		if len(k.kept) >= maxPages {
			clear(k.kept)
		}
		k.kept[name] = page{info, text}
	}
	return text, err
}
