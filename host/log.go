package host

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
)

const (
	logName    = "parley.log"
	maxLogSize = 10 << 20 // bytes; the file before it is kept, too
)

// A LogFile is parley.log in a folder. When it is full it becomes parley.log.1, in place of
// the one before, and a new one begins (P28). Its methods may be called concurrently.
type LogFile struct {
	folder string
	mu     sync.Mutex
	file   *os.File
	size   int64
}

// OpenLog opens parley.log in folder, which is made if it is missing, to append to
// it. Only this user can read it.
func OpenLog(folder string) (*LogFile, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("make data folder: %w", err)
	}
	l := &LogFile{folder: folder}
	if err := l.open(); err != nil {
		return nil, fmt.Errorf("open log: %w", err)
	}
	return l, nil
}

func (l *LogFile) open() error {
	f, err := os.OpenFile(filepath.Join(l.folder, logName), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err != nil {
		return errors.Join(err, f.Close())
	}
	l.file = f
	l.size = info.Size()
	return nil
}

// Write appends p, which is a whole line.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > maxLogSize {
		l.rotate()
	}
	n, err := l.file.Write(p)
	l.size += int64(n)
	return n, err
}

// rotate begins a new file. If that fails the old one goes on, and the next line tries again.
func (l *LogFile) rotate() {
	full := l.file
	path := filepath.Join(l.folder, logName)
	err := os.Rename(path, path+".1")
	if errors.Is(err, fs.ErrNotExist) { // somebody has removed it, or the last line could not open a new one
		err = nil
	}
	if err != nil || l.open() != nil {
		return
	}
	_ = full.Close() // nothing more is written to it
}

// Close closes the file.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.file.Close()
}
