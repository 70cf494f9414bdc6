package workspace

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
)

// chargesDir has a record for each file and folder that counts towards a person's
// limit.
const chargesDir = ".parley/stored/"

// diskBlock is the unit in which files count, in bytes, because even an empty file
// takes space on the disk.
const diskBlock = 4096

// DiskBytes returns how many bytes a file of this size counts as.
func DiskBytes(size int64) int64 {
	return max(1, (size+diskBlock-1)/diskBlock) * diskBlock
}

// A charge records whose limit a file counts towards.
type charge struct {
	Name   string `json:"name"`
	Person string `json:"person"`
}

// charges has all charges of a workspace. They are read once.
type charges struct {
	files   Names
	tree    tree
	mu      sync.Mutex
	persons map[string]string // by name of the file; nil: not read yet
	atMost  map[string]int64  // by person: an upper bound of the bytes they have stored, once these were summed up
}

func chargeRecord(name string) string {
	return chargesDir + fmt.Sprintf("%x", sha256.Sum256([]byte(name)))
}

// Charge makes a file or folder, which need not exist yet, count towards a
// person's limit; "" is nobody's. The record survives a power cut, and stays until
// the file is removed.
func (w *Workspace) Charge(p Path, person string) error {
	return w.charges.set(p.name, person)
}

// set makes the file called name count towards a person's limit.
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

// ChargeFolder makes everything in a folder count towards a person's limit, whatever
// writes it, and returns how many bytes they have stored now, there, in their own
// folder and in files charged to them.
func (w *Workspace) ChargeFolder(folder Path, person, own string) (used int64, err error) {
	c := w.charges
	if err := c.set(folder.name+below, person); err != nil {
		return 0, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	used, err = c.sum(person, own)
	if err != nil {
		return 0, fmt.Errorf("sum up what %s has stored: %w", person, err)
	}
	c.atMost[person] = used
	return used, nil
}

// ChargedTo returns the person whose limit a file counts towards, or "".
func (w *Workspace) ChargedTo(p Path) (string, error) {
	c := w.charges
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.read()
	return c.persons[p.name], err
}

// drop makes a file count towards nobody's limit. The caller holds c.mu.
func (c *charges) drop(name string) error {
	if _, found := c.persons[name]; !found {
		return nil
	}
	if err := c.tree.remove(chargeRecord(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	delete(c.persons, name)
	return nil
}

// read reads all records, once. A damaged record is ignored. The caller holds
// c.mu.
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
// their folder. It returns how much they have stored, and whether the bytes may be
// written. A write that does not make files larger is always allowed.
func (w *Workspace) Reserve(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.charges.count(person, folder, bytes, bytes, most)
}

// Count is like Reserve for bytes that have already been written to a person's
// folder, and reports whether they may stay.
func (w *Workspace) Count(person, folder string, bytes, most int64) (used int64, ok bool, err error) {
	return w.charges.count(person, folder, bytes, 0, most)
}

// count adds bytes, of which missing are not on the disk yet. It only sums up what
// a person has stored if that may be too much: until then, the upper bound atMost
// is enough.
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

// sum returns how many bytes a person has stored. It removes the records of files
// that no longer exist.
func (c *charges) sum(person, folder string) (bytes int64, err error) {
	folders := []string{folder}
	for name, who := range c.persons {
		if all, isFolder := strings.CutSuffix(name, below); isFolder && who == person {
			folders = append(folders, all)
		}
	}
	isCounted := func(name string) bool {
		return slices.ContainsFunc(folders, func(folder string) bool { return strings.HasPrefix(name, folder+"/") })
	}
	for name, who := range c.persons {
		if who != person || isCounted(name) {
			continue
		}
		switch info, err := c.tree.Stat(name); {
		case err == nil && info.IsDir():
			bytes += diskBlock
		case err == nil:
			bytes += DiskBytes(info.Size())
		case errors.Is(err, ErrMoved): // a link takes no space
		case isGone(err):
			if err := c.drop(name); err != nil {
				return 0, err
			}
		default:
			return 0, err
		}
	}
	for _, folder := range folders {
		inside, err := c.sumFolder(folder)
		if err != nil {
			return 0, err
		}
		bytes += inside
	}
	return bytes, nil
}

// sumFolder returns how many bytes the files in a folder count as.
func (c *charges) sumFolder(folder string) (bytes int64, err error) {
	err = fs.WalkDir(c.tree, folder, func(_ string, d fs.DirEntry, err error) error {
		if isGone(err) {
			return nil
		}
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		bytes += DiskBytes(info.Size())
		return nil
	})
	return bytes, err
}

// isGone reports whether err says that there is no file, because it or one of its folders was
// removed, or a file has replaced the folder.
func isGone(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
