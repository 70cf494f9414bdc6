package storetest

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"syscall"
)

// A Sparse is the content of a file without its holes. The file of a store has large
// ones, and a test that copies it often would spend its time with nothing.
type Sparse struct {
	size  int64
	parts []part
}

type part struct {
	at   int64
	data []byte
}

// ReadSparse reads a file.
func ReadSparse(path string) (s Sparse, err error) {
	f, err := os.Open(path)
	if err != nil {
		return Sparse{}, err
	}
	defer f.Close()
	if s.size, err = f.Seek(0, io.SeekEnd); err != nil {
		return Sparse{}, err
	}
	for at := int64(0); at < s.size; {
		from, to, err := nextData(f, at, s.size)
		if err != nil {
			return Sparse{}, err
		}
		p := part{from, make([]byte, to-from)}
		n, err := f.ReadAt(p.data, from)
		if err != nil && !errors.Is(err, io.EOF) { // it may have become shorter
			return Sparse{}, err
		}
		if p.data = p.data[:n]; n > 0 {
			s.parts = append(s.parts, p)
		}
		at = to
	}
	return s, nil
}

// nextData returns where the next data of a file of this size begins and ends.
func nextData(f *os.File, at, size int64) (from, to int64, err error) {
	if runtime.GOOS != "linux" { // elsewhere there are no holes, or they are asked for otherwise
		return at, size, nil
	}
	const seekData, seekHole = 3, 4
	from, err = f.Seek(at, seekData)
	if errors.Is(err, syscall.ENXIO) { // nothing but a hole
		return size, size, nil
	}
	if err != nil {
		return 0, 0, err
	}
	to, err = f.Seek(from, seekHole)
	return from, to, err
}

// Equal reports whether two files have the same content, with the same holes.
func (s Sparse) Equal(other Sparse) bool {
	return s.size == other.size && slices.EqualFunc(s.parts, other.parts, func(a, b part) bool {
		return a.at == b.at && bytes.Equal(a.data, b.data)
	})
}

// Write makes a file with the content of s.
func (s Sparse) Write(path string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = f.Truncate(s.size)
	for _, p := range s.parts {
		if err == nil {
			_, err = f.WriteAt(p.data, p.at)
		}
	}
	return errors.Join(err, f.Close())
}

// CopyDir is [os.CopyFS] for a directory with stores, of which it copies no holes.
func CopyDir(to, from string) error {
	return filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		target := filepath.Join(to, name)
		if d.IsDir() {
			return os.MkdirAll(target, 0o700)
		}
		s, err := ReadSparse(path)
		if err != nil {
			return err
		}
		return s.Write(target)
	})
}
