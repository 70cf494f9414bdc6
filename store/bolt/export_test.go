package bolt

import (
	"context"
	"time"

	"go.etcd.io/bbolt"
)

// SetNow replaces the clock.
func (s *Store) SetNow(now func() time.Time) { s.now = now }

// Used returns the size of the file in bytes, without reserved space.
func (s *Store) Used() (size int64) {
	_ = s.db.View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size
}

// MarkNow makes the next commit update the mark.
func (s *Store) MarkNow() { s.marked = time.Time{} }

// SetFormat writes another format number into the file.
func (s *Store) SetFormat(n uint64) error {
	return s.write(context.Background(), func(tx *bbolt.Tx) error { return s.metaPart().put(tx, encodeKey("format"), encodeNumber(n)) }, nil)
}
