package configpages

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/lazyregexp"
	"parley/store"
)

const (
	maxText     = 128 << 10 // bytes of the file
	maxVersions = 30        // earlier texts that are kept
)

// A File is a text file that owners edit. It is replaced whole or not at all, keeps its permissions, and its earlier
// texts are kept.
type File struct {
	Path    string // links are followed
	History string // the folder of earlier texts, which only the user of this process can read
	// Secrets returns where secrets stand in a text, in order. They are never shown, nor kept in History. nil: there
	// are none.
	Secrets func(text string) []Secret

	mu     sync.Mutex                  // held while the file is read and replaced
	keyed  sync.Once                   // for key
	key    []byte                      // of fingerprints
	rename func(from, to string) error // nil: os.Rename
}

// A Text is what the file says.
type Text struct {
	Text    string `json:"text"`              // with masks in the place of secrets
	Secrets int    `json:"secrets,omitempty"` // how many there are
	Sum     string `json:"sum"`               // a digest of the file, "" if there is none
	Found   bool   `json:"found"`             // whether there is such a file
	// Locked says why the file cannot be changed here; "" if it can.
	Locked string `json:"locked,omitempty"`

	whole string // what the file says, with its secrets
	path  string // of the file itself, where links lead
	mode  fs.FileMode
}

// Read returns what the file says.
func (f *File) Read() (Text, error) {
	t := Text{path: f.Path, mode: 0o600}
	if real, err := filepath.EvalSymlinks(f.Path); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return t, fmt.Errorf("read the file: %w", err)
		}
		t.path = real
	}
	info, err := os.Stat(t.path)
	if errors.Is(err, fs.ErrNotExist) {
		t.Locked = locked(filepath.Dir(t.path), "the folder of the file")
		return t, nil
	}
	if err != nil {
		return t, fmt.Errorf("read the file: %w", err)
	}
	data, err := os.ReadFile(t.path)
	if err != nil {
		return t, fmt.Errorf("read the file: %w", err)
	}
	t.Found = true
	t.whole = string(data)
	t.Text = f.hide(t.whole)
	t.Secrets = len(f.secrets(t.whole))
	t.Sum = digest(t.whole)
	t.mode = info.Mode().Perm()
	switch {
	case t.mode&0o222 == 0:
		t.Locked = "the file is marked as read-only"
	case len(data) > maxText:
		t.Locked = "the file is too long"
	default:
		t.Locked = locked(filepath.Dir(t.path), "the folder of the file")
	}
	return t, nil
}

// locked says that what cannot be written to, or "".
func locked(path, what string) string {
	const write = 2
	if err := syscall.Access(path, write); err != nil {
		return what + " is read-only: " + err.Error()
	}
	return ""
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// Save makes text what the file says, with its secrets in the place of their masks. base is the Sum of what it said
// before: if it says something else by now, the error is store.ErrConflict. The text that is replaced is kept, without
// its secrets.
func (f *File) Save(base, text string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.Read()
	if err != nil {
		return err
	}
	if now.Sum != base {
		return store.ErrConflict
	}
	if now.Locked != "" {
		return errors.New(now.Locked)
	}
	to := f.fill(text, now)
	if len(to.missing) > 0 {
		return errors.New(to.missing[0].Text)
	}
	if now.Found {
		if err := f.keep(now.Text); err != nil {
			return fmt.Errorf("keep what the file said: %w", err)
		}
	}
	if err := f.replace(now, to.text); err != nil {
		return fmt.Errorf("replace the file: %w", err)
	}
	return nil
}

// replace writes text beside the file, with the permissions of was, and gives it the name of the file. What a
// process that died has left beside the file is written over.
func (f *File) replace(was Text, text string) error {
	draft := was.path + ".new"
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	rename := f.rename
	if rename == nil {
		rename = os.Rename
	}
	if err := errors.Join(write(draft, text), likeOld(was, draft)); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	if err := rename(draft, was.path); err != nil {
		return errors.Join(err, os.Remove(draft))
	}
	return syncFolder(filepath.Dir(was.path))
}

// write writes a file that is not there yet, and that only its owner can read, to the disk.
func write(path, text string) error {
	out, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = out.WriteString(text)
	return errors.Join(err, out.Sync(), out.Close())
}

// likeOld gives draft the permissions and the owner of the file that it replaces.
func likeOld(was Text, draft string) error {
	if !was.Found {
		return nil
	}
	if err := os.Chmod(draft, was.mode); err != nil {
		return err
	}
	info, err := os.Stat(was.path)
	if err != nil {
		return err
	}
	old, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(old.Uid) == os.Geteuid() && int(old.Gid) == os.Getegid() {
		return nil
	}
	return os.Chown(draft, int(old.Uid), int(old.Gid))
}

// syncFolder has the names in a folder survive a power cut.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}

// A Version is an earlier text of the file.
type Version struct {
	ID   string    `json:"id"`
	Time time.Time `json:"time"` // when it was replaced
}

const versionFormat = "20060102-150405.000000000"

var versionID = lazyregexp.New(`^\d{8}-\d{6}\.\d{9}$`)

// keep keeps text, which has masks, and forgets the oldest of too many.
func (f *File) keep(text string) error {
	all, err := f.Versions()
	if err != nil {
		return err
	}
	if len(all) > 0 {
		if last, err := f.Version(all[0].ID); err != nil || last == text {
			return err
		}
	}
	if err := os.MkdirAll(f.History, 0o700); err != nil {
		return err
	}
	for _, old := range all[min(len(all), maxVersions-1):] {
		if err := os.Remove(f.version(old.ID)); err != nil {
			return err
		}
	}
	for _, old := range all { // that an earlier program kept with its secrets
		whole, err := os.ReadFile(f.version(old.ID))
		if errors.Is(err, fs.ErrNotExist) {
			continue // just now
		}
		if err != nil {
			return err
		}
		hidden := f.hide(string(whole))
		if hidden == string(whole) {
			continue
		}
		if err := f.keepAs(old.ID, hidden); err != nil {
			return err
		}
	}
	return f.keepAs(time.Now().UTC().Format(versionFormat), text)
}

// keepAs keeps text as the version of that id. A process that dies leaves a text that is not whole: it has no name of a
// version yet.
func (f *File) keepAs(id, text string) error {
	draft := filepath.Join(f.History, "new")
	if err := os.Remove(draft); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := write(draft, text); err != nil {
		return err
	}
	return errors.Join(os.Rename(draft, f.version(id)), syncFolder(f.History))
}

func (f *File) version(id string) string { return filepath.Join(f.History, id) }

// Versions lists the earlier texts, the latest first.
func (f *File) Versions() ([]Version, error) {
	entries, err := os.ReadDir(f.History)
	if errors.Is(err, fs.ErrNotExist) {
		return []Version{}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("list earlier texts: %w", err)
	}
	all := []Version{}
	for _, e := range entries {
		at, err := time.Parse(versionFormat, e.Name())
		if err != nil { // another file
			continue
		}
		all = append(all, Version{e.Name(), at})
	}
	slices.SortFunc(all, func(a, b Version) int { return strings.Compare(b.ID, a.ID) })
	return all, nil
}

// Version returns an earlier text, with masks in the place of secrets. The error is store.ErrNotFound if it is not
// kept.
func (f *File) Version(id string) (string, error) {
	if !versionID.MatchString(id) {
		return "", store.ErrNotFound
	}
	text, err := os.ReadFile(f.version(id))
	if errors.Is(err, fs.ErrNotExist) {
		return "", store.ErrNotFound
	}
	if err != nil {
		return "", fmt.Errorf("read an earlier text: %w", err)
	}
	return f.hide(string(text)), nil
}
