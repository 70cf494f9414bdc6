package bolt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"parley/store/bolt/pages"
)

// Backup writes the Store as it is now to a new file, while others go on reading and
// writing. When it returns nil, the copy is on disk and was read back and found sound;
// otherwise there is no file (P20). The disk of path should be a local one: until the
// copy is complete, every write to the Store makes its file grow.
func (s *Store) Backup(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("backup: %w", err)
	}
	if err := s.writeCopy(ctx, f); err != nil {
		return fmt.Errorf("backup: %w", errors.Join(err, os.Remove(path)))
	}
	return nil
}

// writeCopy writes the Store to f, closes f, and verifies it.
func (s *Store) writeCopy(ctx context.Context, f *os.File) error {
	if err := errors.Join(s.copyTo(ctx, f), f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := s.verifyCopy(ctx, f.Name()); err != nil {
		return err
	}
	return syncDir(filepath.Dir(f.Name()))
}

// copyTo writes the file to f as it is when it needs no log.
func (s *Store) copyTo(ctx context.Context, f *os.File) (err error) {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer catch(&err)()
	var t *txn
	if err := s.submit(ctx, &op{alone: func() (err error) {
		w := s.writer
		if err := w.completeFile(); err != nil {
			return err
		}
		if err := w.addNote(pages.NoteOf(w.db.path, w.id.tx)); err != nil {
			return err
		}
		t, err = s.db.begin()
		return err
	}}); err != nil {
		return err
	}
	defer t.end()
	_, err = t.file.WriteTo(contextWriter{ctx: ctx, to: f})
	return err
}

// A contextWriter writes until ctx ends.
type contextWriter struct {
	ctx context.Context
	to  io.Writer
}

// Write implements [io.Writer].
func (w contextWriter) Write(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	return w.to.Write(p)
}

// verifyCopy reads a copy. A value that is damaged in the Store is damaged in the copy,
// too, which is no reason to have no copy.
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
