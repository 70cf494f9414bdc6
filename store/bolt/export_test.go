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
	_ = s.db.bolt().View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	})
	return size
}

// LimitFile sets how large the file may get, in bytes; 0 is no limit.
func (s *Store) LimitFile(most int) { s.db.bolt().MaxSize = most }

// MarkNow makes the next commit update the mark.
func (s *Store) MarkNow() { s.writer.marked = time.Time{} }

// SetFormat writes another format number into the file.
func (s *Store) SetFormat(n uint64) error {
	return s.write(context.Background(), func(t *txn) error { return identityPart().put(t, encodeKey("format"), encodeNumber(n)) }, nil)
}

// Flush makes a checkpoint.
func (s *Store) Flush(ctx context.Context) error { return s.submit(ctx, &op{alone: s.writer.flush}) }

// BeginCheckpoint begins a checkpoint, for which nobody waits.
func (s *Store) BeginCheckpoint(ctx context.Context) error {
	return s.submit(ctx, &op{alone: func() error { s.writer.beginCheckpoint(); return nil }})
}
