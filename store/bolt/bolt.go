// Package bolt is a Store in one bbolt file, for one process at a time.
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
//	store   /      / name    what the file is: its format, its lineage
//
// bbolt keeps a sequence per bucket: it gives revisions and numbers, and never
// one twice. No transaction is open while a caller's code runs (P20).
package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Config says where the data is.
type Config struct {
	Dir string       // created if absent; the Store is the file parley.db in it
	Log *slog.Logger // nil: log nothing
	// Brief says that this process soon ends, so that others wait for it.
	Brief bool
	// Patience is how long to wait for the lock of the directory while a
	// process that soon ends has it.
	Patience time.Duration
	// Probe is called after an unclean end. It returns what [Probe] does, which
	// should run in another process; nil: in this one.
	Probe func(ctx context.Context, path string) (damaged []string, err error)
	// Stopped is called once, and must not block, when the Store cannot write any
	// more until it is opened again; may be nil.
	Stopped func(error)
	// Committed is called with the duration of each commit, and must not block; may be nil.
	Committed func(time.Duration)
}

// Store is a [store.Store]. Make one with [Open].
type Store struct {
	locks     *store.Locks
	db        *bbolt.DB
	path      string // of the file
	log       *slog.Logger
	dir       *os.File // holds the lock of the directory
	now       func() time.Time
	stopped   func(error)
	committed func(time.Duration)
	probe     func(ctx context.Context, path string) ([]string, error)
	close     func() error // shutDown, once

	ops    chan *op
	ended  chan struct{} // the writer has returned
	broken error         // why the writer stopped writing
	wrote  bool
	clean  bool      // nobody has touched the file since it was closed
	id     identity  // the writer's, once it runs
	marked time.Time // the writer's: when the mark was last written
	// suspectFreelist says that the free list in memory may be wrong, because a
	// fault interrupted a commit: the file is probed by the next Open.
	suspectFreelist bool

	mu     sync.RWMutex // guards what follows
	closed bool
	calls  sync.WaitGroup // those under way
	queues map[string]*queue
}

// Lock implements [store.Store].
func (s *Store) Lock(ctx context.Context, name string) (unlock func(), err error) {
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
	close(s.ops)
	<-s.ended
	return errors.Join(s.closeFile(), unlockDir(s.dir))
}

// closeFile closes the file and marks it as closed, unless the next Open must
// probe it.
func (s *Store) closeFile() error {
	sound := s.broken == nil && !s.suspectFreelist
	freelistOnly := false // the last commit changed only the free list
	if s.wrote && sound {
		err := s.saveFreelist()
		sound = !errors.Is(err, store.ErrDamaged)
		freelistOnly = err == nil
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if !sound {
		return nil
	}
	closed, err := stateOf(s.path)
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	closed.Spare = freelistOnly
	if err := s.mark(closed, true); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// saveFreelist saves the next Open a walk through the whole file. If it fails,
// Open walks.
func (s *Store) saveFreelist() error {
	s.db.NoFreelistSync = false
	_, err := s.attempt([]*op{{do: func(*bbolt.Tx) error { return nil }}}, make([]error, 1))
	if err != nil {
		s.log.Warn("free list not saved", "err", err)
	}
	return err
}

// mark writes what is known of the file, and in which state it was closed, if it is.
func (s *Store) mark(closed *state, sync bool) error {
	s.marked = time.Now()
	m := mark{Format: s.id.format, Lineage: s.id.lineage, Tx: s.id.tx, Wrote: s.marked.UTC(), Closed: closed}
	return m.write(s.path, sync)
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

// view runs fn in a read transaction. fn must copy what it keeps.
func (s *Store) view(ctx context.Context, fn func(*bbolt.Tx) error) (err error) {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer catch(&err)()
	return s.db.View(fn)
}
