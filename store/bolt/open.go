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

// fileName is the name of the Store in its directory.
const fileName = "parley.db"

// Open opens the Store in cfg.Dir, which it locks. It returns a [*LockedError] if
// another process has it open, a [*DamagedError] if the file is not the one that
// was there before, an [*OlderError] if it is an earlier version of that, and a
// [*FormatError] if a newer version of Parley wrote it. It never begins an empty
// Store in its place. After an unclean end it first has the file probed, and logs
// each value with a wrong checksum.
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
	s.dir = dir
	s.close = sync.OnceValue(s.shutDown)
	go s.run()
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Store, error) {
	path := filepath.Join(cfg.Dir, fileName)
	m, err := readMark(path)
	if err != nil {
		return nil, err
	}
	if m != nil && m.Format > Format {
		return nil, &FormatError{File: path, Has: m.Format}
	}
	clean, err := wasClosed(path, m)
	if err != nil {
		return nil, err
	}
	if !clean {
		if err := probe(ctx, cfg, path); err != nil {
			return nil, err
		}
	}
	db, err := openFile(path, options())
	if err != nil {
		return nil, damagedUnlessRefused(path, err)
	}
	s := &Store{
		locks:     store.NewLocks(),
		db:        db,
		path:      path,
		log:       cfg.Log,
		now:       time.Now,
		stopped:   cfg.Stopped,
		committed: cfg.Committed,
		probe:     cfg.Probe,
		ops:       make(chan *op, maxBatch),
		ended:     make(chan struct{}),
		clean:     clean,
		queues:    map[string]*queue{},
	}
	if err := s.adoptFile(m); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return s, nil
}

// probe has the file probed and logs the damaged values.
func probe(ctx context.Context, cfg Config, path string) error {
	damaged, err := cfg.Probe(ctx, path)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return damagedUnlessRefused(path, err)
	}
	for _, where := range damaged {
		cfg.Log.Error("damaged value in the store", "where", where)
	}
	return nil
}

// adoptFile checks that the file is the one that m describes, gives it an identity
// if it has none, and marks it as open, before the first write.
func (s *Store) adoptFile(m *mark) (err error) {
	s.id, err = s.identify()
	if err != nil {
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
		return s.assignIdentity()
	}
	return nil
}

// assignIdentity gives the file a format and a lineage. If the disk is full, the
// next Open does.
func (s *Store) assignIdentity() error {
	s.id.format = plainFormat
	s.id.lineage = time.Now().UnixNano()
	_, err := s.attempt([]*op{{do: s.writeIdentity(s.id.lineage)}}, make([]error, 1))
	switch {
	case errors.Is(err, store.ErrFull):
		s.id.lineage = 0
		s.log.Warn("identity of the store not written", "err", err)
	case errors.Is(err, store.ErrDamaged):
		return &DamagedError{File: s.path, Cause: err}
	case err != nil:
		return err
	}
	return nil
}

// damagedUnlessRefused returns err, which occurred while path was being opened, as
// a DamagedError, unless it comes from the system or another process.
func damagedUnlessRefused(path string, err error) error {
	var errno syscall.Errno
	if errors.Is(err, errInUse) || errors.As(err, &errno) {
		return err
	}
	return &DamagedError{File: path, Cause: err}
}

var errInUse = errors.New("another program has it open")

// lockTimeout is how long bbolt tries to lock the file. After that, another
// process has it open.
const lockTimeout = 300 * time.Millisecond

// initialMap is the size of the file's map: address space only, so that a growing
// file does not stop everybody while it is mapped anew.
const initialMap = 1 << 30 // bytes

// options returns those which keep small commits small while others read, as
// measurements showed.
func options() *bbolt.Options {
	o := &bbolt.Options{
		Timeout:        lockTimeout,
		NoFreelistSync: true,
		FreelistType:   bbolt.FreelistMapType,
		NoStatistics:   true,
	}
	if strconv.IntSize == 64 {
		o.InitialMmapSize = initialMap
	}
	return o
}

// openFile opens path with o. A fault in its pages is an error.
func openFile(path string, o *bbolt.Options) (db *bbolt.DB, err error) {
	var f *os.File
	o.OpenFile = func(path string, flag int, mode os.FileMode) (_ *os.File, err error) {
		f, err = os.OpenFile(path, flag, mode)
		return f, err
	}
	defer func() {
		if db == nil && f != nil {
			// After a fault bbolt does not release its lock, which its map of the file also holds.
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
