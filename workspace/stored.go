package workspace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
)

// chargesDir holds a record for each file and folder that counts for somebody.
const chargesDir = ".parley/stored/"

// diskBlock is the unit, in bytes, in which files count: an empty one takes
// room on the disk, too.
const diskBlock = 4096

// DiskBytes returns how many bytes a file of that size counts for.
func DiskBytes(size int64) int64 {
	return max(1, (size+diskBlock-1)/diskBlock) * diskBlock
}

// A charge is the record of a file: whom it counts for.
type charge struct {
	Name   string `json:"name"`
	Person string `json:"person"`
}

// charges are all charges of a workspace. They are read once.
type charges struct {
	files   Names
	root    *os.Root
	mu      sync.Mutex
	persons map[string]string // by name of the file; nil: not read yet
	atMost  map[string]int64  // by person: bytes that the person has, or more, if they were summed up
}

func chargeRecord(name string) string {
	return chargesDir + fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

// Charge makes a file or folder, which need not exist yet, count for a person;
// "" is nobody. The note survives a power cut, and it stays until the file is
// removed.
func (w *Workspace) Charge(p Path, person string) error {
	return w.charges.set(p.name, person)
}

// set makes the file called name count for person.
func (c *charges) set(name, person string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(); err != nil {
		return err
	}
	if c.persons[name] == person {
		return nil
	}
	if person == "" {
		return c.drop(name)
	}
	text, err := json.Marshal(charge{name, person})
	if err != nil {
		return err
	}
	if err := c.files.WriteFile(chargeRecord(name), text); err != nil {
		return err
	}
	c.persons[name] = person
	return nil
}

// ChargedTo returns the person whom a file counts for, "" if it is nobody.
func (w *Workspace) ChargedTo(p Path) (string, error) {
	c := &w.charges
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.read()
	return c.persons[p.name], err
}

// drop makes a file count for nobody. c.mu is held.
func (c *charges) drop(name string) error {
	if _, found := c.persons[name]; !found {
		return nil
	}
	if err := c.root.Remove(chargeRecord(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(c.persons, name)
	return nil
}

// read reads all records, once. A damaged record counts for nobody. c.mu is held.
func (c *charges) read() error {
	if c.persons != nil {
		return nil
	}
	entries, err := c.files.ReadDir(strings.TrimSuffix(chargesDir, "/"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read whose files are: %w", err)
	}
	persons := map[string]string{}
	for _, e := range entries {
		var found charge
		text, err := c.files.ReadFile(chargesDir + e.Name())
		if err != nil || json.Unmarshal(text, &found) != nil {
			continue
		}
		if chargesDir+e.Name() == chargeRecord(found.Name) {
			persons[found.Name] = found.Person
		}
	}
	c.persons = persons
	c.atMost = map[string]int64{}
	return nil
}

// Reserve counts bytes that are about to be written for a person, unless the
// person would then have more than most stored: in files charged to them, and in
// all that is in their folder. It returns how much they have and whether the bytes
// may be written. What makes files no larger always may.
func (w *Workspace) Reserve(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.charges.count(person, folder, bytes, bytes, most)
}

// Count counts bytes that were just written into the folder of a person, as
// Reserve does, and reports whether they may stay.
func (w *Workspace) Count(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.charges.count(person, folder, bytes, 0, most)
}

// count adds bytes, of which missing are not on the disk yet. What a person has is
// summed up only when it may be too much: until then it is enough to know that
// it is not more than atMost.
func (c *charges) count(person, folder string, bytes, missing, most int64) (used int64, ok bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.read(); err != nil {
		return 0, false, err
	}
	used, known := c.atMost[person]
	if known && used+bytes <= most || bytes <= 0 {
		if known {
			c.atMost[person] += bytes
		}
		return used, true, nil
	}
	used, err = c.sum(person, folder)
	if err != nil {
		return 0, false, fmt.Errorf("sum up what %s has stored: %w", person, err)
	}
	ok = used+missing <= most
	c.atMost[person] = used
	if ok {
		c.atMost[person] += missing
	}
	return used, ok, nil
}

// sum returns how many bytes a person has stored. Records of files that are gone
// are removed.
func (c *charges) sum(person, folder string) (bytes int64, err error) {
	for name, who := range c.persons {
		if who != person || strings.HasPrefix(name, folder+"/") {
			continue
		}
		switch info, err := c.root.Lstat(name); {
		case err == nil && info.IsDir():
			bytes += diskBlock
		case err == nil:
			bytes += DiskBytes(info.Size())
		case errors.Is(err, fs.ErrNotExist):
			if err := c.drop(name); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
	err = fs.WalkDir(c.root.FS(), folder, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				bytes += DiskBytes(info.Size())
			}
		}
		if errors.Is(err, fs.ErrNotExist) { // it is gone
			return nil
		}
		return err
	})
	return bytes, err
}
