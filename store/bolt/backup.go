package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Backup writes the Store as it is now to the file path, which must not be
// there, while others go on reading and writing. The copy is on disk and was
// read back and found whole when Backup returns nil; else there is no file
// (P20). The disk of path should be a local one: until the copy is made, what
// is written to the Store makes its file grow.
func (s *Store) Backup(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	err = errors.Join(s.copyTo(ctx, f), f.Sync(), f.Close())
	if err == nil {
		err = s.verifyCopy(ctx, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		return fmt.Errorf("backup: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

func (s *Store) copyTo(ctx context.Context, f *os.File) error {
	return s.view(ctx, func(tx *bbolt.Tx) error {
		_, err := tx.WriteTo(untilEnd{ctx, f})
		return err
	})
}

// untilEnd writes until ctx ends.
type untilEnd struct {
	ctx context.Context
	io.Writer
}

func (w untilEnd) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.Writer.Write(p)
}

// verifyCopy reads a copy. A value damaged in the Store is damaged in the copy, too,
// and no reason to have none.
func (s *Store) verifyCopy(ctx context.Context, path string) error {
	damaged, err := s.probe(ctx, path)
	if err != nil {
		return fmt.Errorf("verify: %w", err)
	}
	for _, where := range damaged {
		s.log.Warn("damaged value in the backup", "where", where)
	}
	return nil
}

// Queues names the queues that have work.
func (s *Store) Queues(ctx context.Context) (names []string, err error) {
	err = s.view(ctx, func(tx *bbolt.Tx) error {
		top := tx.Bucket([]byte("queue"))
		if top == nil {
			return nil
		}
		return top.ForEachBucket(func(name []byte) error {
			if k, _ := top.Bucket(name).Cursor().First(); k != nil {
				names = append(names, string(name[1:])) // see label
			}
			return nil
		})
	})
	return names, err
}
