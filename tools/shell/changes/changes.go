// Package changes finds what a program has written in a folder.
package changes

import (
	"errors"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	maxMarked = 100     // marks of what one program wrote
	maxLooked = 1 << 20 // files that are looked at
)

// Found is what was written in a folder. Names are relative to it.
type Found struct {
	files   []string
	folders []string        // that cannot be looked into
	kept    map[string]bool // folders in which there are other files, at any depth
	tooMany bool            // there are more files than are looked at
}

// Find looks for what was written in dir since a time. Of a folder that was moved or made, all counts.
func Find(
	dir string, since time.Time, isMoved func(d fs.DirEntry, name string) bool,
) (f Found, err error) {
	f.kept = map[string]bool{}
	moved := map[string]bool{}
	looked := 0
	err = filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, at) // it is below
		switch {
		case err != nil && name == ".":
			return err
		case err != nil && d != nil && d.IsDir() && !errors.Is(err, fs.ErrNotExist):
			f.folders = append(f.folders, name)
			return fs.SkipDir
		case err != nil:
			return nil // it is gone
		}
		if looked++; looked > maxLooked {
			f.tooMany = true
			return fs.SkipAll
		}
		folder := filepath.Dir(name)
		switch {
		case d.IsDir():
			moved[name] = name != "." && (moved[folder] || isMoved(d, name))
		case !d.Type().IsRegular():
		case moved[folder] || IsSince(d, since):
			f.files = append(f.files, name)
		default:
			for ; folder != "." && !f.kept[folder]; folder = filepath.Dir(folder) {
				f.kept[folder] = true
			}
		}
		return nil
	})
	return f, err
}

// A Mark is a file to be recorded as untrusted, or a folder with all that it holds.
type Mark struct {
	Name  string // relative to the folder; "." is the folder itself
	Below bool   // with all that it holds
}

// Marks returns at most maxMarked marks that cover what was written.
func (f Found) Marks() (all []Mark) {
	if f.tooMany {
		return []Mark{{".", true}}
	}
	for _, name := range f.files {
		all = append(all, Mark{name, false})
	}
	for _, name := range f.folders {
		all = append(all, Mark{name, true})
	}
	for _, replace := range []func(Mark) Mark{f.inFolder, inTop} {
		if len(all) <= maxMarked {
			break
		}
		chosen := map[Mark]bool{}
		for _, m := range all {
			chosen[replace(m)] = true
		}
		all = slices.SortedFunc(maps.Keys(chosen), func(a, b Mark) int { return strings.Compare(a.Name, b.Name) })
	}
	if len(all) > maxMarked {
		return []Mark{{".", true}}
	}
	return all
}

// inFolder returns the outermost folder that m is in and that has nothing else, or m if there is none.
func (f Found) inFolder(m Mark) Mark {
	for folder := filepath.Dir(m.Name); folder != "." && !f.kept[folder]; folder = filepath.Dir(folder) {
		m = Mark{folder, true}
	}
	return m
}

// inTop returns what m is in and is in the folder itself.
func inTop(m Mark) Mark {
	first, _, isBelow := strings.Cut(m.Name, "/")
	return Mark{first, isBelow || m.Below}
}

// Folders returns the folders in dir with their inodes. The error says that there are too many files.
func Folders(dir string) (map[string]uint64, error) {
	all := map[string]uint64{}
	looked := 0
	err := filepath.WalkDir(dir, func(at string, d fs.DirEntry, err error) error {
		if looked++; looked > maxLooked {
			return errors.New("there are more files than are looked at")
		}
		if err != nil || !d.IsDir() {
			return nil
		}
		name, _ := filepath.Rel(dir, at)
		all[name] = Inode(d)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return all, nil
}

// Inode returns the inode of a file, or 0 if it is not known.
func Inode(d fs.DirEntry) uint64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return stat.Ino
	}
	return 0
}

// ClockTick is how far the times of files may be behind the clock.
const ClockTick = 20 * time.Millisecond

// IsSince reports whether a file was written, or its times were set, since then, as far as is known.
func IsSince(d fs.DirEntry, since time.Time) bool {
	info, err := d.Info()
	if err != nil {
		return !errors.Is(err, fs.ErrNotExist)
	}
	return !changeTime(info).Before(since.Add(-ClockTick))
}
