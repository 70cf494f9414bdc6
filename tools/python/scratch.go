package python

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"early.parley"
)

const (
	scratchPrefix    = "parley-python-"
	scratchAge       = time.Hour // after which nobody can be using one any more
	maxScratch       = 64 << 20  // bytes of all files
	maxScratchFiles  = 1000
	watchInterval    = 100 * time.Millisecond
	resultFile       = ".result"
	maxResult        = 256 << 10 // bytes of resultFile
	openFlagsOfFiles = os.O_RDONLY | syscall.O_NONBLOCK
)

// errScratchFull is the reason for which a run is ended.
var errScratchFull = fmt.Errorf("the code wrote more than %d MB or %d files", maxScratch>>20, maxScratchFiles)

// A scratch is the folder of one run: the only one that its code can write to.
type scratch struct {
	dir  string
	root *os.Root
}

func makeScratch() (scratch, error) {
	dir, err := os.MkdirTemp("", scratchPrefix)
	if err != nil {
		return scratch{}, fmt.Errorf("make a folder for Python: %w", err)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return scratch{}, errors.Join(err, os.Remove(dir))
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return scratch{}, errors.Join(err, os.Remove(dir))
	}
	return scratch{real, root}, nil
}

// remove removes the folder. What cannot be removed now is left to SweepTemp.
func (s scratch) remove() {
	_ = s.root.Close() // it was only read by
	early.RemoveAll(s.dir)
}

// watch cancels a run that writes too much. The returned function ends that.
func (s scratch) watch(cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(watchInterval)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
			}
			if s.isFull() {
				cancel(errScratchFull)
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// A listing is the files of a folder, as fs.WalkDir takes them. Code that still runs can put a pipe in the
// place of a folder, and the listing of [os.Root.FS] would wait at it forever.
type listing struct{ root *os.Root }

// Open opens a file or folder.
func (l listing) Open(name string) (fs.File, error) {
	return l.root.OpenFile(name, openFlagsOfFiles, 0)
}

// ReadDir returns the entries of a folder, sorted. With "/." everything else is an error.
func (l listing) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := l.root.Open(name + "/.")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return entries, err
}

// isFull reports whether there is more in the folder than there may be.
func (s scratch) isFull() bool {
	files := 0
	size := int64(0)
	_ = fs.WalkDir(listing{s.root}, ".", func(_ string, d fs.DirEntry, err error) error {
		if err != nil { // it is gone, or cannot be read
			return nil
		}
		files++
		info, err := d.Info()
		if err != nil {
			return nil
		}
		size += info.Size()
		if files > maxScratchFiles || size > maxScratch {
			return fs.SkipAll
		}
		return nil
	})
	return files > maxScratchFiles || size > maxScratch
}

// result returns what the program wrote to resultFile, nil if that is nothing.
func (s scratch) result() json.RawMessage {
	text, err := s.read(resultFile, maxResult)
	text = bytes.TrimSpace(text)
	if err != nil || len(text) == 0 || !json.Valid(text) {
		return nil
	}
	return text
}

// read returns the content of a file of at most so many bytes.
func (s scratch) read(name string, most int64) ([]byte, error) {
	f, err := s.root.OpenFile(name, openFlagsOfFiles, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > most {
		return nil, fmt.Errorf("%s: not a file of at most %d bytes", name, most)
	}
	return io.ReadAll(io.LimitReader(f, most))
}

// files returns the names of the files that are meant for people, sorted.
func (s scratch) files() (names []string) {
	_ = fs.WalkDir(listing{s.root}, ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil, name == ".":
			return nil
		case !isPublic(name) && d.IsDir():
			return fs.SkipDir
		case isPublic(name) && d.Type().IsRegular():
			names = append(names, name)
		}
		return nil
	})
	return names
}
