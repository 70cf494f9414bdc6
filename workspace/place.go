package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// ErrMoved is returned for a file that a Path does not name any more: a symbolic link has replaced it, or
// one of its folders, since the Path was made.
var ErrMoved = errors.New("a symbolic link has taken its place")

// ownFolder has the records that Parley itself keeps.
const ownFolder = ".parley/"

// inFolder calls do with the folder that the file with a canonical name is in, and its name there. No
// symbolic link is followed on the way: a program that runs meanwhile could have made it, to have another
// file opened than the one that was checked (R-S18).
func inFolder(root *os.Root, name string, do func(folder *os.Root, base string) error) error {
	if strings.HasPrefix(name, ownFolder) { // no program can make a link there, and its records are read often
		return do(root, name)
	}
	dir, base := filepath.Split(name)
	folder := root
	for step := range strings.SplitSeq(strings.TrimSuffix(dir, "/"), "/") {
		if step == "" {
			continue
		}
		next, err := openFolder(folder, step)
		if folder != root {
			_ = folder.Close() // it was only looked through
		}
		if err != nil {
			return err
		}
		folder = next
	}
	if folder != root {
		defer folder.Close()
	}
	return do(folder, base)
}

// openFolder opens a folder in parent, and not one that a link of that name leads to.
func openFolder(parent *os.Root, name string) (*os.Root, error) {
	folder, err := parent.OpenRoot(name)
	if err != nil {
		return nil, err
	}
	if err := checkFolder(parent, name, folder); err != nil {
		return nil, errors.Join(err, folder.Close())
	}
	return folder, nil
}

// checkFolder returns ErrMoved unless folder is the folder called name in parent.
func checkFolder(parent *os.Root, name string, folder *os.Root) error {
	opened, err := folder.Stat(".")
	if err != nil {
		return err
	}
	named, err := parent.Lstat(name)
	if err != nil {
		return err
	}
	if !os.SameFile(opened, named) {
		return fmt.Errorf("%s: %w", name, ErrMoved)
	}
	return nil
}

// openPlain opens the file with a canonical name.
func openPlain(root *os.Root, name string, flag int) (f *os.File, err error) {
	err = inFolder(root, name, func(folder *os.Root, base string) error {
		f, err = folder.OpenFile(base, flag|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
		if errors.Is(err, syscall.ELOOP) {
			err = ErrMoved
		}
		return err
	})
	return f, err
}
