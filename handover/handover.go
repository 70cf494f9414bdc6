// Package handover moves the data of a gateway to another folder, so that at each moment one of the
// two can be started, and never both.
//
// The new folder is filled while a file in it says that it is arriving. Then a file in the old one
// says that it has moved: that is the moment. A start looks at these files with [Check]. An arriving
// folder whose old one has moved to it has arrived.
package handover

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"parley/store/bolt/dirlock"
)

// The files that say where the data is. Both hold a [Note].
const (
	movedName    = "moved.json"
	arrivingName = "arriving.json"
)

// A Note says where data has gone, or comes from.
type Note struct {
	Folder string    `json:"folder"`
	Time   time.Time `json:"time"`
}

// A MovedError says that the data of a folder is elsewhere.
type MovedError struct {
	Dir string
	Note
}

func (e *MovedError) Error() string {
	return fmt.Sprintf("%s was moved to %s on %s: start Parley there\n"+
		"to go on here instead, and lose what came since, never start it there again and delete %s",
		e.Dir, e.Folder, e.Time.Format(time.DateTime), filepath.Join(e.Dir, movedName))
}

// Check returns a [*MovedError] if the data of dir was moved elsewhere, and another error if it has not
// arrived yet.
func Check(dir string) error {
	moved, err := read(dir, movedName)
	if err != nil {
		return err
	}
	if moved != nil {
		return &MovedError{dir, *moved}
	}
	arriving, err := read(dir, arrivingName)
	if err != nil || arriving == nil {
		return err
	}
	there, err := read(arriving.Folder, movedName)
	if err != nil {
		return err
	}
	real, err := resolve(dir)
	if err != nil {
		return err
	}
	if there == nil || there.Folder != real && there.Folder != dir {
		const text = "%s is not complete: moving %s here was interrupted\nmove it again: parley --data %[2]s move %[1]s"
		return fmt.Errorf(text, dir, arriving.Folder)
	}
	return os.Remove(filepath.Join(dir, arrivingName))
}

// read returns a note, nil if there is none.
func read(dir, name string) (*Note, error) {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	n := &Note{}
	if err := json.Unmarshal(text, n); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
	}
	return n, nil
}

// A Move moves one folder to another.
type Move struct {
	From, To string // absolute
	// Instead has the files that are not copied as they are, but with this content, by their names in From.
	Instead map[string][]byte
	step    func() // for tests: called after each thing that a crash may leave done
}

// Do moves the data. No gateway may run on it. What an interrupted move has left in the new folder is
// begun again; anything else that is there is an error. The old data stays where it is.
func (m Move) Do() (err error) {
	if m.From, err = filepath.EvalSymlinks(m.From); err != nil {
		return err
	}
	if m.To, err = resolve(m.To); err != nil {
		return err
	}
	if err := m.check(); err != nil {
		return err
	}
	unlock, err := dirlock.Lock(m.From, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unlock()) }()
	if err := Check(m.From); err != nil {
		return err
	}
	if err := m.prepare(); err != nil {
		return err
	}
	m.done()
	if err := m.copyAll(); err != nil {
		return fmt.Errorf("copy the data: %w", err)
	}
	if err := write(m.From, movedName, Note{m.To, time.Now()}); err != nil {
		return err
	}
	m.done()
	return Check(m.To)
}

func (m Move) done() {
	if m.step != nil {
		m.step()
	}
}

// resolve returns dir, which need not be there, without symbolic links.
func resolve(dir string) (string, error) {
	real, err := filepath.EvalSymlinks(dir)
	if !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
		return real, err
	}
	above, err := resolve(filepath.Dir(dir))
	return filepath.Join(above, filepath.Base(dir)), err
}

// check returns why one of the folders cannot be.
func (m Move) check() error {
	info, err := os.Stat(m.From)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return fmt.Errorf("%s is no folder", m.From)
	}
	for _, pair := range [][2]string{{m.From, m.To}, {m.To, m.From}} {
		if pair[0] == pair[1] || strings.HasPrefix(pair[1], pair[0]+"/") {
			return fmt.Errorf("%s and %s are in one another", m.From, m.To)
		}
	}
	return nil
}

// prepare makes the new folder, which says that it is arriving.
func (m Move) prepare() error {
	if err := os.MkdirAll(m.To, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(m.To)
	if err != nil {
		return err
	}
	note, err := read(m.To, arrivingName)
	if err != nil {
		return err
	}
	if len(entries) > 0 && (note == nil || note.Folder != m.From) {
		return fmt.Errorf("%s is not empty", m.To)
	}
	if err := write(m.To, arrivingName, Note{m.From, time.Now()}); err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == arrivingName {
			continue
		}
		if err := os.RemoveAll(filepath.Join(m.To, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// copyAll copies what is in the old folder, but for what belongs to a process, and waits for the disk.
func (m Move) copyAll() error {
	return filepath.WalkDir(m.From, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(m.From, path)
		if err != nil {
			return err
		}
		to := filepath.Join(m.To, name)
		if name == "lock" || name == arrivingName {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		switch {
		case name == ".":
		case d.IsDir():
			err = os.Mkdir(to, info.Mode().Perm()|0o700)
		case info.Mode()&fs.ModeSymlink != 0:
			var link string
			if link, err = os.Readlink(path); err != nil {
				return err
			}
			err = os.Symlink(m.leads(link), to)
		case info.Mode().IsRegular():
			var in io.ReadCloser
			if in, err = m.open(name, path); err != nil {
				return err
			}
			err = copyFile(to, in, info)
		}
		if err != nil {
			return err
		}
		m.done()
		if d.IsDir() {
			return nil
		}
		return syncFolder(filepath.Dir(to))
	})
}

// leads returns where a link leads in the new folder: an absolute one into the old folder would lead there for good.
func (m Move) leads(link string) string {
	if !filepath.IsAbs(link) {
		return link
	}
	for _, path := range []func(string) (string, error){filepath.Abs, resolve} {
		target, err := path(link)
		if rest, is := strings.CutPrefix(target, m.From); err == nil && is && (rest == "" || rest[0] == '/') {
			return m.To + rest
		}
	}
	return link
}

// open opens what the file of that name has in the new folder.
func (m Move) open(name, path string) (io.ReadCloser, error) {
	if text, ok := m.Instead[name]; ok {
		return io.NopCloser(bytes.NewReader(text)), nil
	}
	return os.Open(path)
}

// copyFile writes in, which it closes, to a new file.
func copyFile(to string, in io.ReadCloser, info fs.FileInfo) error {
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Sync(), out.Close()); err != nil {
		return err
	}
	return os.Chtimes(to, time.Time{}, info.ModTime())
}

// write writes a note, whole or not at all, and waits for the disk.
func write(dir, name string, n Note) error {
	text, err := json.Marshal(n)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".moving-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(append(text, '\n'))
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), filepath.Join(dir, name)); err != nil {
		return err
	}
	return syncFolder(dir)
}

func syncFolder(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
