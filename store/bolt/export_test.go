package bolt

import (
	"context"
	"time"

	"go.etcd.io/bbolt"
)

// SetNow replaces the clock.
func (s *Store) SetNow(now func() time.Time) { s.now = now }

// Used returns the size of the file, in bytes, without what it may grow into.
func (s *Store) Used() (size int64) {
	_ = s.db.View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size
}

// MarkNow has the mark told of the next commit.
func (s *Store) MarkNow() { s.marked = time.Time{} }

// SetFormat writes another format number into the file.
func (s *Store) SetFormat(n uint64) error {
	return s.write(context.Background(), func(tx *bbolt.Tx) error { return s.metaPart().put(tx, encodeKey("format"), encodeNumber(n)) }, nil)
}
