package workspace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
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

// charges are all of a workspace. They are read once.
type charges struct {
	sync.Mutex
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
	w.charges.Lock()
	defer w.charges.Unlock()
	if err := w.readCharges(); err != nil {
		return err
	}
	if w.charges.persons[p.name] == person {
		return nil
	}
	if person == "" {
		return w.dropCharge(p.name)
	}
	text, err := json.Marshal(charge{p.name, person})
	if err == nil {
		err = w.Names().WriteFile(chargeRecord(p.name), text)
	}
	if err == nil {
		w.charges.persons[p.name] = person
	}
	return err
}

// ChargedTo returns the person whom a file counts for, "" if it is nobody.
func (w *Workspace) ChargedTo(p Path) (string, error) {
	w.charges.Lock()
	defer w.charges.Unlock()
	err := w.readCharges()
	return w.charges.persons[p.name], err
}

// dropCharge makes a file count for nobody.
func (w *Workspace) dropCharge(name string) error {
	if _, found := w.charges.persons[name]; !found {
		return nil
	}
	if err := w.root.Remove(chargeRecord(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(w.charges.persons, name)
	return nil
}

// readCharges reads all records, once. One that is damaged counts for nobody.
func (w *Workspace) readCharges() error {
	if w.charges.persons != nil {
		return nil
	}
	entries, err := w.Names().ReadDir(strings.TrimSuffix(chargesDir, "/"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read whose files are: %w", err)
	}
	persons := map[string]string{}
	for _, e := range entries {
		var c charge
		text, err := w.Names().ReadFile(chargesDir + e.Name())
		if err == nil && json.Unmarshal(text, &c) == nil && chargesDir+e.Name() == chargeRecord(c.Name) {
			persons[c.Name] = c.Person
		}
	}
	w.charges.persons, w.charges.atMost = persons, map[string]int64{}
	return nil
}

// Reserve counts bytes that are about to be written for a person, unless the
// person would then have more than most stored: in files charged to them, and in
// all that is in their folder. It returns how much they have and whether the bytes
// may be written. What makes files no larger always may.
func (w *Workspace) Reserve(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.count(person, folder, bytes, bytes, most)
}

// Count counts bytes that were just written into the folder of a person, as
// Reserve does, and reports whether they may stay.
func (w *Workspace) Count(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.count(person, folder, bytes, 0, most)
}

// count adds bytes, of which missing are not on the disk yet. What a person has is
// summed up only when it may be too much: until then it is enough to know that
// it is not more than atMost.
func (w *Workspace) count(person, folder string, bytes, missing, most int64) (used int64, ok bool, err error) {
	w.charges.Lock()
	defer w.charges.Unlock()
	if err := w.readCharges(); err != nil {
		return 0, false, err
	}
	used, known := w.charges.atMost[person]
	if known && used+bytes <= most || bytes <= 0 {
		if known {
			w.charges.atMost[person] += bytes
		}
		return used, true, nil
	}
	used, err = w.sum(person, folder)
	if err != nil {
		return 0, false, fmt.Errorf("sum up what %s has stored: %w", person, err)
	}
	ok = used+missing <= most
	w.charges.atMost[person] = used
	if ok {
		w.charges.atMost[person] += missing
	}
	return used, ok, nil
}

// sum returns how many bytes a person has stored. Records of files that are gone
// are removed.
func (w *Workspace) sum(person, folder string) (bytes int64, err error) {
	for name, who := range w.charges.persons {
		if who != person || strings.HasPrefix(name, folder+"/") {
			continue
		}
		switch info, err := w.root.Lstat(name); {
		case err == nil && info.IsDir():
			bytes += diskBlock
		case err == nil:
			bytes += DiskBytes(info.Size())
		case errors.Is(err, fs.ErrNotExist):
			if err := w.dropCharge(name); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
	err = fs.WalkDir(w.root.FS(), folder, func(_ string, d fs.DirEntry, err error) error {
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
