// Package bolt is a Store in one bbolt file, for one process at a time.
//
// In the file, names and keys are prefixed with a byte, so that they may be
// empty, and every value is sealed with a checksum over where it is and itself:
//
//	bucket  / name / key     revision, value
//	log     / name / number  record
//	log+1   / name / number  record of a log whose end in "log" cannot be read, log+2 the same again
//	queue   / name / number  id, body: the work that is not done
//	seen    / name / id      time of the last push to that queue
//	damaged / name / number  work whose checksum was wrong, as it was found
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
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"parley/store"
)

// Config says where the data lives.
type Config struct {
	Dir string       // made when absent; the Store is the file parley.db in it
	Log *slog.Logger // nil: log nothing
	// Brief says that this process soon ends, so that others wait for it.
	Brief bool
	// Patience is how long to wait for the lock of the directory while a
	// process that soon ends has it.
	Patience time.Duration
	// Probe is called after an unclean end. It returns what [Probe] does,
	// which it had better call in another process; nil: in this one.
	Probe func(ctx context.Context, path string) (damaged []string, err error)
	// Stopped is called once, and must not block, if the Store can write no
	// more until it is opened again; nil: nobody is told.
	Stopped func(error)
	// Committed is told how long each commit took, and must not block; nil: nobody is.
	Committed func(time.Duration)
}

// Store is a [store.Store]. Make one with [Open].
type Store struct {
	*store.Locks // has the Store's Lock

	db      *bbolt.DB
	path    string // of the file
	log     *slog.Logger
	dir     *os.File // holds the lock of the directory
	now     func() time.Time
	stopped func(error)
	commits func(time.Duration)
	probe   func(ctx context.Context, path string) ([]string, error)
	close   func() error // shut, once

	ops    chan *op
	ended  chan struct{} // the writer has returned
	broken error         // why the writer gave up writing
	wrote  bool
	clean  bool      // nobody has touched the file since it was closed
	id     identity  // the writer's, once it runs
	marked time.Time // the writer's: when the mark was written last
	// suspect says that the free list in memory may be wrong, because a fault
	// broke off a commit: the file is probed by the next Open.
	suspect bool

	mu     sync.RWMutex // guards what follows
	closed bool
	calls  sync.WaitGroup // those under way
	queues map[string]*queue
}

// Open opens the Store in cfg.Dir, which it locks. It returns a [*LockedError]
// when another process has it open, a [*DamagedError] when the file is not what
// was there before, an [*OlderError] when it is a former one, and a
// [*FormatError] when a newer version wrote it; it never starts empty in its
// place. After an end that was not clean it first has the file probed, and logs
// each value whose checksum is wrong.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Probe == nil {
		cfg.Probe = func(_ context.Context, path string) ([]string, error) { return Probe(path) }
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	dir, err := waitForLock(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, unlockDir(dir)))
	}
	s.dir, s.close = dir, sync.OnceValue(s.shut)
	go s.run()
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Store, error) {
	path := filepath.Join(cfg.Dir, "parley.db")
	m, err := readMark(path)
	if err != nil {
		return nil, err
	}
	if m != nil && m.Format > Format {
		return nil, &FormatError{File: path, Has: m.Format}
	}
	clean, err := inspect(path, m)
	if err != nil {
		return nil, err
	}
	if !clean {
		damaged, err := cfg.Probe(ctx, path)
		if err != nil {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return nil, damagedUnlessRefused(path, err)
		}
		for _, where := range damaged {
			cfg.Log.Error("damaged value in the store", "where", where)
		}
	}
	db, err := openFile(path, options())
	if err != nil {
		return nil, damagedUnlessRefused(path, err)
	}
	s := &Store{
		clean: clean,
		db:    db, path: path, log: cfg.Log, Locks: store.NewLocks(), now: time.Now, stopped: cfg.Stopped, commits: cfg.Committed, probe: cfg.Probe,
		ops: make(chan *op, maxBatch), ended: make(chan struct{}),
		queues: map[string]*queue{},
	}
	if err := s.begin(m); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// begin checks that the file is the one that m is about, gives it numbers if it
// has none, and notes, before the first write, that the Store is open.
func (s *Store) begin(m *mark) (err error) {
	if s.id, err = s.identify(); err != nil {
		return &DamagedError{File: s.path, Cause: err}
	}
	switch {
	case s.id.format > Format:
		return &FormatError{File: s.path, Has: s.id.format}
	case s.clean && s.id.isOlder(m) && m.Closed.Spare && s.id.tx == m.Tx-1:
		s.log.Error("one of the two heads of the store is damaged; the other is used, and nothing is lost")
	case s.clean && s.id.isOlder(m):
		return &DamagedError{File: s.path, Cause: errors.New("its last changes are gone")}
	case s.id.isOlder(m):
		return &OlderError{File: s.path, Wrote: m.Wrote}
	}
	if err := s.mark(nil, true); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(s.path)); err != nil {
		return err
	}
	if s.id.lineage == 0 {
		return s.giveNumbers()
	}
	return nil
}

// giveNumbers makes the file one of today's format. On a full disk, the next
// Open does.
func (s *Store) giveNumbers() error {
	s.id.format, s.id.lineage = plainFormat, time.Now().UnixNano()
	_, err := s.attempt([]*op{{do: s.stampNumbers(s.id.lineage)}}, make([]error, 1))
	switch {
	case errors.Is(err, store.ErrFull):
		s.id.lineage = 0
		s.log.Warn("store not numbered", "err", err)
	case errors.Is(err, store.ErrDamaged):
		return &DamagedError{File: s.path, Cause: err}
	case err != nil:
		return err
	}
	return nil
}

// mark notes what is known of the file, and how it was closed, if it is.
func (s *Store) mark(closed *state, sync bool) error {
	s.marked = time.Now()
	m := mark{Format: s.id.format, Lineage: s.id.lineage, Tx: s.id.tx, Wrote: s.marked.UTC(), Closed: closed}
	return m.write(s.path, sync)
}

// damagedUnlessRefused says of an error of opening path that the file is
// damaged, unless it is one of the system, or of another process.
func damagedUnlessRefused(path string, err error) error {
	var errno syscall.Errno
	if errors.Is(err, errInUse) || errors.As(err, &errno) {
		return err
	}
	return &DamagedError{File: path, Cause: err}
}

var errInUse = errors.New("another program has it open")

// lockTimeout is how long bbolt tries to lock the file: another process has it
// open when it is not free by then.
const lockTimeout = 300 * time.Millisecond

// options are the ones that were measured to keep small commits small while
// somebody reads, and a growing file from stopping everybody. The large map is
// address space only.
func options() *bbolt.Options {
	o := &bbolt.Options{
		Timeout:        lockTimeout,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		NoStatistics:   true,
	}
	if strconv.IntSize == 64 {
		o.InitialMmapSize = 1 << 30
	}
	return o
}

// openFile opens path with o, and returns a fault in its pages as an error.
func openFile(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	var f *os.File
	o.OpenFile = func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
		f, err = os.OpenFile(path, flag, mode)
		return f, err
	}
	defer func() {
		if db == nil && f != nil { // a fault has kept bbolt from letting go of its lock, which its map of the file holds, too
			_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
			_ = f.Close()
		}
	}()
	defer catch(&err)()
	db, err = bbolt.Open(path, 0o600, o)
	if errors.Is(err, berrors.ErrTimeout) {
		return nil, fmt.Errorf("%s: %w", path, errInUse)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return db, nil
}

// Close implements [store.Store]. Every call returns when all is closed.
func (s *Store) Close() error { return s.close() }

func (s *Store) shut() error {
	s.mu.Lock()
	s.closed = true
	for _, q := range s.queues {
		q.pending.Close()
	}
	s.mu.Unlock()
	s.Locks.Close()
	s.calls.Wait()
	close(s.ops)
	<-s.ended
	return errors.Join(s.closeFile(), unlockDir(s.dir))
}

func (s *Store) closeFile() error {
	whole, spare := s.broken == nil && !s.suspect, false
	if s.wrote && whole {
		err := s.keepFreelist()
		whole, spare = !errors.Is(err, store.ErrDamaged), err == nil
	}
	if err := s.db.Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if !whole {
		return nil // the next Open probes
	}
	closed, err := stateOf(s.path)
	if err == nil {
		closed.Spare = spare
		err = s.mark(closed, true)
	}
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	return nil
}

// keepFreelist saves the next Open a walk of the whole file. When it fails,
// the walk is made.
func (s *Store) keepFreelist() error {
	s.db.NoFreelistSync = false
	_, err := s.attempt([]*op{{do: func(*bbolt.Tx) error { return nil }}}, make([]error, 1))
	if err != nil {
		s.log.Warn("free list not kept", "err", err)
	}
	return err
}

// enter begins a call, unless it is in vain. Whoever enters leaves with calls.Done.
func (s *Store) enter(ctx context.Context) error {
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

// view runs fn in a read transaction. What fn keeps it must copy.
func (s *Store) view(ctx context.Context, fn func(*bbolt.Tx) error) (err error) {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	defer catch(&err)()
	return s.db.View(fn)
}
