package imports

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"parley/imports/sqlite"
)

// Limits of what is read, in bytes or files. What is larger is left.
const (
	maxConfig   = 4 << 20
	maxText     = 4 << 20
	maxTalk     = 64 << 20
	maxDatabase = 4 << 30
	maxLog      = 256 << 20
	maxAll      = 512 << 20 // of all files together
	maxEntries  = 20_000    // of one folder with all below it
)

// Why something is not read.
var (
	errLink   = errors.New("it is a link, which is not followed")
	errKind   = errors.New("it is no regular file")
	errBig    = errors.New("it is too large")
	errAll    = errors.New("all files together are too large")
	errNoText = errors.New("it is not text")
	errName   = errors.New("its name leads elsewhere")
)

// A source is a folder that is only read, and not trusted: no link of it is followed, and
// nothing outside it is opened.
type source struct {
	dir    string // absolute
	prefix string // of its names in the report
	root   *os.Root
	left   func(what, from, why string)
	read   *int64 // bytes of all files
}

func openSource(dir string, left func(what, from, why string)) (*source, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &source{dir: dir, root: root, left: left, read: new(int64)}, nil
}

// sub returns the folder called name of s.
func (s *source) sub(name string) (*source, error) {
	if err := s.check(name); err != nil {
		return nil, err
	}
	root, err := s.root.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	name = path.Clean(name)
	return &source{dir: s.dir + "/" + name, prefix: name + "/", root: root, left: s.left, read: s.read}, nil
}

func (s *source) close() { _ = s.root.Close() } // it was only read

// check returns why name is not to be followed: it leads outside, or there is a link in it.
func (s *source) check(name string) error {
	if !filepath.IsLocal(name) {
		return errName
	}
	at := ""
	for part := range strings.SplitSeq(path.Clean(filepath.ToSlash(name)), "/") {
		at = path.Join(at, part)
		info, err := s.root.Lstat(at)
		if err != nil {
			return err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return errLink
		}
	}
	return nil
}

// open opens a regular file of at most so many bytes.
func (s *source) open(name string, most int64) (*os.File, int64, error) {
	if err := s.check(name); err != nil {
		return nil, 0, err
	}
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, 0, err
	}
	info, err := f.Stat()
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errKind
	case info.Size() > most:
		err = errBig
	}
	if err != nil {
		return nil, 0, errors.Join(err, f.Close())
	}
	return f, info.Size(), nil
}

// bytes returns the content of a file of at most so many bytes.
func (s *source) bytes(name string, most int64) ([]byte, error) {
	f, size, err := s.open(name, most)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if *s.read += size; *s.read > maxAll {
		return nil, errAll
	}
	return io.ReadAll(io.LimitReader(f, size))
}

// text returns a file that may be missing. One that cannot be used is noted as what.
func (s *source) text(what, name string, most int64) (text []byte, ok bool) {
	text, err := s.bytes(name, most)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	if bytes.IndexByte(text, 0) >= 0 {
		err = errNoText
	}
	if err != nil {
		s.left(what, s.prefix+name, reason(err))
		return nil, false
	}
	return text, true
}

// entries returns the names in a folder, sorted, none if there is no such folder. Links are noted as what.
func (s *source) entries(what, folder string) (names []string) {
	err := s.check(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var all []fs.DirEntry
	if !errors.Is(err, errLink) {
		all, err = fs.ReadDir(s.root.FS(), folder)
	}
	if err != nil {
		s.left(what, s.prefix+folder, reason(err))
		return nil
	}
	for _, e := range all {
		if e.Type()&fs.ModeSymlink != 0 {
			s.left(what+" "+line(e.Name()), s.prefix+path.Join(folder, e.Name()), errLink.Error())
			continue
		}
		names = append(names, e.Name())
	}
	return names[:min(len(names), maxEntries)]
}

// walk returns the regular files below a folder, sorted.
func (s *source) walk(what, folder string) (names []string) {
	err := s.check(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		s.left(what+" "+line(path.Base(folder)), s.prefix+folder, reason(err))
		return nil
	}
	err = fs.WalkDir(s.root.FS(), folder, func(name string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.Type()&fs.ModeSymlink != 0:
			s.left(what+" "+line(e.Name()), s.prefix+name, errLink.Error())
		case e.Type().IsRegular() && len(names) == maxEntries:
			return errBig
		case e.Type().IsRegular():
			names = append(names, name)
		case e.IsDir() && strings.HasPrefix(e.Name(), ".") && name != folder:
			return fs.SkipDir
		}
		return nil
	})
	if err != nil {
		s.left(what, s.prefix+folder, reason(err))
	}
	slices.Sort(names)
	return names
}

// database opens a SQLite file with its log. Without one, found is false.
func (s *source) database(what, name string) (db *sqlite.File, done func(), found bool) {
	f, size, err := s.open(name, maxDatabase)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, false
	}
	if err != nil {
		s.left(what, s.prefix+name, reason(err))
		return nil, nil, false
	}
	done = func() { _ = f.Close() } // it was only read
	wal, err := s.bytes(name+"-wal", maxLog)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.left(what, s.prefix+name, "its log: "+reason(err))
		done()
		return nil, nil, false
	}
	if db, err = sqlite.Open(f, size, wal); err != nil {
		s.left(what, s.prefix+name, reason(err))
		done()
		return nil, nil, false
	}
	return db, done, true
}

// reason returns what the report says of an error: without the path that it is about.
func reason(err error) string {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		err = p.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "there is none"
	case errors.Is(err, syscall.ELOOP):
		return errLink.Error()
	}
	return line(fmt.Sprint(err))
}
