package bolt

import (
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
