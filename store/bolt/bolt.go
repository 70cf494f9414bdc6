// Package bolt is a Store in one bbolt file with a log in front of it, for one process
// at a time.
//
// A change is made in three steps. The writer makes it, with all others that wait, in a
// txn: over what the file and the layers say. It appends what they change to the log (see
// [parley/store/bolt/wal]), with one write and one sync. Then it publishes the layer with
// these changes, so that all readers see them, and the callers go on. A layer is what the
// log has and the file has not, in the order of the keys. Changes that are deferred (see
// [store.Deferred]) are published without the second step, and are part of the next record.
//
// A checkpoint moves a layer into the file, in one transaction that also says up to which
// record of the log the file now is, and then drops the segments of the log before that.
// It is made when the log has 4 MiB, when a change is a minute old, before the file is
// copied, and when the Store is closed, so that a closed Store is the file alone. After
// any other end, Open reads what is left of the log into a layer. A record may be moved
// twice: it says what the values are, not how they differ.
//
// In the file, names and keys are prefixed with a byte, so that they may be
// empty, and every value begins with a checksum over its place and itself:
//
//	bucket  / name / key     revision, value
//	log     / name / number  record
//	log+1   / name / number  record of a log whose end in "log" cannot be read, log+2 the same again
//	queue   / name / number  id, body: the work that is not done
//	seen    / name / id      time of the last push to that queue
//	damaged / name / number  work with a wrong checksum, as it was found
//	store   /      / name    what the file is: its format, its lineage, what of the log it has
//
// Deleted entries leave free pages, which later ones use. Compact rewrites the file without
// them, while everything goes on (see compact.go).
//
// A sequence per bucket gives revisions and numbers, and never one twice. No transaction
// is open while a caller's code runs (P20).
package bolt

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"parley/store"
	"parley/store/bolt/wal"
)

// Config says where the data is.
type Config struct {
	Dir string       // created if absent; the Store is the file parley.db in it
	Log *slog.Logger // nil: log nothing
	// Locked says that the caller has the lock of Dir, and keeps it.
	Locked bool
	// Brief says that this process soon ends, so that others wait for it.
	Brief bool
	// Patience is how long to wait for the lock of the directory while a
	// process that soon ends has it.
	Patience time.Duration
	// Probe reads a whole file: a copy, and the Store if what was written last does not
	// tell enough after an unclean end. nil: [Probe].
	Probe func(ctx context.Context, path string) (damaged []string, err error)
	// Stopped is called once, and must not block, when the Store cannot write any
	// more until it is opened again; may be nil.
	Stopped func(error)
	// Salvage is called with the damage if there is any in the log, or if that is missing.
	// What is sound is used, the rest is lost and removed: for a copy of a Store. With
	// nil, Open returns a [*refusal.DamagedError].
	Salvage func(lost error)
	// Committed is called with the duration of each commit, and must not block; may be nil.
	Committed func(time.Duration)

	step func(wal.Step) error // for tests: see wal.Open
}

// Store is a [store.Store]. Make one with [Open].
type Store struct {
	locks  *store.Locks
	db     *database
	writer *writer
	log    *slog.Logger
	unlock func() error // the directory
	now    func() time.Time
	probe  func(ctx context.Context, path string) ([]string, error)
	close  func() error // shutDown, once

	mu     sync.RWMutex // guards what follows
	closed bool
	calls  sync.WaitGroup // those under way
	queues map[string]*queue
}

// Lock implements [store.Store].
func (s *Store) Lock(ctx context.Context, name string) (store.Lease, error) {
	return s.locks.Lock(ctx, name)
}

// Close implements [store.Store]. Every call returns when everything is closed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shutDown() error {
	s.mu.Lock()
	s.closed = true
	for _, q := range s.queues {
		q.pending.Close()
	}
	s.mu.Unlock()
	s.locks.Close()
	s.calls.Wait()
	close(s.writer.ops)
	<-s.writer.ended
	return errors.Join(s.writer.close(), s.unlock())
}

// beginCall begins a call, unless ctx has ended or the Store is closed. The caller
// ends it with calls.Done.
func (s *Store) beginCall(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return store.ErrClosed
	}
	s.calls.Add(1)
	return nil
}

// view runs fn in a txn that only reads. fn must copy what it keeps.
func (s *Store) view(ctx context.Context, fn func(*txn) error) (err error) {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer catch(&err)()
	t, err := s.db.begin()
	if err != nil {
		return err
	}
	defer t.end()
	return fn(t)
}
