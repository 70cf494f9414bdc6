package bwrap

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"parley/tools/sandbox"
)

// An etcCopy is a copy of those files of /etc that programs see. bwrap takes longer to show them one by
// one than for everything else.
type etcCopy struct {
	folder string // of this copy and earlier ones

	mu     sync.Mutex
	looked time.Time // at /etc
	latest string    // "" if no copy could be made
}

const (
	// etcTTL is for how long a copy is used without a look at /etc.
	etcTTL = time.Minute

	// etcKept is how long what nobody holds is kept: another process of Parley may be making it.
	etcKept = time.Hour

	etcPrefix = "etc-"
)

// hold returns the folder of the copy, which stays as it is until the folder is closed. It makes one if
// there is none of the files as they are, and returns nil if it cannot.
func (e *etcCopy) hold() *os.File {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Since(e.looked) < etcTTL {
		if e.latest == "" {
			return nil
		}
		if f, _ := holdFolder(e.latest); f != nil {
			return f
		}
	}
	e.looked = time.Now()
	e.latest = ""
	sources := sandbox.EtcFiles()
	latest := filepath.Join(e.folder, etcPrefix+fingerprint(sources))
	f, err := holdFolder(latest)
	if err != nil {
		if e.make(latest, sources) != nil {
			return nil
		}
		if f, err = holdFolder(latest); err != nil {
			return nil
		}
	}
	e.latest = latest
	return f
}

// holdFolder opens a copy that sweep does not remove before it is closed. A program that runs for days is
// not to lose its files when there is a newer one.
func holdFolder(path string) (*os.File, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if !errors.Is(err, syscall.EWOULDBLOCK) { // it can also be a disk without locks
		_, err = os.Stat(path) // it may have been removed before it was held
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// make makes latest, whole or not at all, and removes what is no longer used.
func (e *etcCopy) make(latest string, sources []string) error {
	if err := os.MkdirAll(e.folder, 0o700); err != nil {
		return err
	}
	e.sweep()
	temp, err := os.MkdirTemp(e.folder, etcPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	for _, source := range sources {
		if err := copyTree(filepath.Join(temp, strings.TrimPrefix(source, "/etc")), source); err != nil {
			return err
		}
	}
	err = os.Rename(temp, latest)
	if errors.Is(err, fs.ErrExist) { // another process was faster
		return nil
	}
	return err
}

// sweep removes earlier copies that nobody holds.
func (e *etcCopy) sweep() {
	entries, _ := os.ReadDir(e.folder)
	for _, entry := range entries {
		info, err := entry.Info()
		if err != nil || !strings.HasPrefix(entry.Name(), etcPrefix) || time.Since(info.ModTime()) < etcKept {
			continue
		}
		sandbox.RemoveUnlocked(filepath.Join(e.folder, entry.Name()))
	}
}

// copyTree copies a file or folder of /etc. What this user may not read is left out, and so is what is
// neither a file, a folder nor a symbolic link. Other users may use nothing of it, as of all in the data folder.
func copyTree(target, source string) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o700); err != nil {
		return err
	}
	return walk(source, func(name, path string, entry fs.DirEntry) error {
		to := filepath.Join(target, name)
		switch entry.Type() {
		case fs.ModeDir:
			return os.MkdirAll(to, 0o700)
		case fs.ModeSymlink:
			leadsTo, err := os.Readlink(path)
			if err != nil {
				return nil
			}
			return os.Symlink(leadsTo, to)
		case 0:
			content, err := os.ReadFile(path)
			if err != nil {
				return nil
			}
			return os.WriteFile(to, content, 0o400)
		}
		return nil
	})
}

// walk calls visit for source and, if it is a folder, for all that is in it and can be looked at, with names
// relative to source. A link at the top is followed, as it may lead out of what a program sees.
func walk(source string, visit func(name, path string, entry fs.DirEntry) error) error {
	top, err := filepath.EvalSymlinks(source)
	if err != nil {
		return nil // a symbolic link to nowhere
	}
	return filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil
		}
		return visit(strings.TrimPrefix(path, top), path, entry)
	})
}

// fingerprint says how sources are, with all that is in them, for this user. It is another one when the
// machine was started again, which may have cost the end of a copy.
func fingerprint(sources []string) string {
	boot, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
	all := sha256.New()
	fmt.Fprintf(all, "%s%d\n", boot, os.Getuid())
	for _, source := range sources {
		_ = walk(source, func(name, _ string, entry fs.DirEntry) error {
			info, err := entry.Info()
			if err != nil {
				return nil
			}
			fmt.Fprintf(all, "%q %v %d %d\n", source+name, info.Mode(), info.Size(), info.ModTime().UnixNano())
			return nil
		})
	}
	return hex.EncodeToString(all.Sum(nil)[:8])
}
