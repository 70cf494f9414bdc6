package host

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// WriteNewFile is [WriteFile] unless there is such a file.
func WriteNewFile(file string, data []byte) (wrote bool, err error) {
	if _, err := os.Lstat(file); err == nil {
		return false, nil
	}
	err = write(file, data, os.Link) // fails where os.Rename would replace
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	return err == nil, err
}

// WriteFile makes a file that only its owner can read, whole or not at all.
func WriteFile(file string, data []byte) error { return write(file, data, os.Rename) }

// write writes a draft of the file, which put moves to its name.
func write(file string, data []byte, put func(from, to string) error) error {
	dir := filepath.Dir(file)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, ".new-*") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(data)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return put(f.Name(), file)
}
