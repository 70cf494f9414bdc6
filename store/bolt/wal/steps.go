package wal

import (
	"errors"
	"os"
)

// The methods below are all that changes the folder.

func (l *Log) step(s Step) error {
	if l.before == nil {
		return nil
	}
	return l.before(s)
}

func (l *Log) mkdir(path string) error {
	if err := l.step(Step{Call: "mkdir", Path: path}); err != nil {
		return err
	}
	return os.MkdirAll(path, 0o700)
}

func (l *Log) open(path string, flags int) (*os.File, error) {
	if flags&os.O_CREATE != 0 {
		if err := l.step(Step{Call: "create", Path: path}); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(path, flags, 0o600)
}

func (l *Log) writeAt(f *os.File, path string, data []byte, at int64) error {
	if err := l.step(Step{Call: "write", Path: path, Data: data, At: at}); err != nil {
		return err
	}
	_, err := f.WriteAt(data, at)
	return err
}

func (l *Log) truncate(f *os.File, path string, size int64) error {
	if err := l.step(Step{Call: "truncate", Path: path, At: size}); err != nil {
		return err
	}
	return f.Truncate(size)
}

func (l *Log) sync(f *os.File, path string) error {
	if err := l.step(Step{Call: "sync", Path: path}); err != nil {
		return err
	}
	return syncData(f)
}

func (l *Log) rename(from, to string) error {
	if err := l.step(Step{Call: "rename", Path: from, To: to}); err != nil {
		return err
	}
	return os.Rename(from, to)
}

func (l *Log) remove(path string) error {
	if err := l.step(Step{Call: "remove", Path: path}); err != nil {
		return err
	}
	return os.Remove(path)
}

func (l *Log) syncDir(path string) error {
	if err := l.step(Step{Call: "sync folder", Path: path}); err != nil {
		return err
	}
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
