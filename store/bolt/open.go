package bolt

import (
	"cmp"
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
	"parley/store/bolt/compact"
	"parley/store/bolt/dirlock"
	"parley/store/bolt/layer"
	"parley/store/bolt/mark"
	"parley/store/bolt/pages"
	"parley/store/bolt/refusal"
	"parley/store/bolt/wal"
)

// LogOf returns the folder of the log of the Store at path. It belongs to the file:
// whoever moves one of them moves both.
func LogOf(path string) string { return path + ".wal" }

// fileName is the name of the Store in its directory.
const fileName = "parley.db"

// Open opens the Store in cfg.Dir, which it locks. It returns a [*dirlock.LockedError] if
// another process has it open, a [*refusal.DamagedError] if the file is not the one that
// was there before, an [*refusal.OlderError] if it is an earlier version of that, and a
// [*refusal.FormatError] if a newer version of Parley wrote it, and a [*refusal.LeftError] if what was in it
// was moved into a Store of another type. It never begins an empty
// Store in its place. After an unclean end it first checks what was written last, and if
// that does not tell enough, has the file probed, and logs each value with a wrong
// checksum.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Probe == nil {
		cfg.Probe = Probe
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("open store: %w", err)
	}
	unlock := func() error { return nil }
	if !cfg.Locked {
		var err error
		unlock, err = dirlock.Wait(ctx, cfg.Dir, cfg.Brief, cfg.Patience, cfg.Log)
		if err != nil {
			return nil, fmt.Errorf("open store: %w", err)
		}
	}
	s, err := open(ctx, cfg)
	if err != nil {
		return nil, fmt.Errorf("open store: %w", errors.Join(err, unlock()))
	}
	s.unlock = unlock
	s.close = sync.OnceValue(s.shutDown)
	go s.writer.run()
	return s, nil
}

func open(ctx context.Context, cfg Config) (*Store, error) {
	path := filepath.Join(cfg.Dir, fileName)
	if err := CheckSize(path, MaxFile()); err != nil {
		return nil, err
	}
	if err := refusal.CheckLeft(path); err != nil {
		return nil, err
	}
	if err := compact.RemoveDraft(path); err != nil {
		return nil, err
	}
	m, err := mark.Read(path)
	if err != nil {
		return nil, err
	}
	if m != nil && m.Format > Format {
		return nil, &refusal.FormatError{File: path, Has: m.Format, Knows: Format}
	}
	clean, err := wasClosed(path, m)
	if err != nil {
		return nil, err
	}
	unread := 0
	if !clean {
		if unread, err = examine(ctx, cfg, path, m); err != nil {
			return nil, err
		}
	}
	db, err := openFile(path, options())
	if err != nil {
		return nil, damagedUnlessRefused(path, err)
	}
	db.NoFreelistSync = false
	w := &writer{
		db:        newDatabase(db, path),
		log:       cfg.Log,
		stopped:   cfg.Stopped,
		committed: cfg.Committed,
		salvage:   cfg.Salvage,
		step:      cfg.step,
		ops:       make(chan *op, maxBatch),
		moves:     make(chan move, 1),
		ended:     make(chan struct{}),
		due:       time.NewTimer(checkpointInterval),
		deferral:  time.NewTimer(store.DeferLimit),
		clean:     clean,
		unread:    unread,
	}
	w.deferral.Stop()
	if err := w.adoptFile(m); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	s := &Store{
		db:     w.db,
		writer: w,
		log:    cfg.Log,
		now:    time.Now,
		probe:  cfg.Probe,
		queues: map[string]*queue{},
	}
	s.locks = store.NewLocks(s.Bucket(store.BucketLocks))
	return s, nil
}

// maxUnreadStarts bounds the starts after unclean ends between which the file is not read
// as a whole: a page that is wrong may be what ends the process.
const maxUnreadStarts = 3

// examine returns an error if the file must not be used after an unclean end. It checks
// what was written last, and reads all of the file if that does not tell enough. unread
// counts the starts since all of it was read.
func examine(ctx context.Context, cfg Config, path string, m *mark.Mark) (unread int, err error) {
	why := checkWritten(path, m)
	switch {
	case why == nil && m.Unread < maxUnreadStarts:
		cfg.Log.Info("the store did not end cleanly; what was written last is sound")
		return m.Unread + 1, nil
	case why == nil:
		why = errors.New("it was not read to its end since the last clean one")
	}
	cfg.Log.Info("the whole store is read before it is used", "why", why)
	damaged, err := cfg.Probe(ctx, path)
	if err != nil {
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		return 0, damagedUnlessRefused(path, err)
	}
	if len(damaged) == 0 && errors.Is(why, pages.ErrNotWritten) {
		return 0, &refusal.DamagedError{File: path, Cause: why}
	}
	for _, where := range damaged {
		cfg.Log.Error("damaged value in the store", "where", where)
	}
	return 0, nil
}

// adoptFile checks that the file is the one that m describes, reads the log, and marks
// the file as open, before the first write.
func (w *writer) adoptFile(m *mark.Mark) (err error) {
	w.id, err = w.db.identify()
	if err != nil {
		return &refusal.DamagedError{File: w.db.path, Cause: err}
	}
	switch {
	case w.id.format > Format:
		return &refusal.FormatError{File: w.db.path, Has: w.id.format, Knows: Format}
	case w.clean && w.id.isOlder(m) && m.Closed.Spare && w.id.tx == m.Tx-1:
		w.log.Error("one of the two heads of the store is damaged; the other is used, and nothing is lost")
	case w.clean && w.id.isOlder(m):
		return &refusal.DamagedError{File: w.db.path, Cause: errors.New("its last changes are gone")}
	case w.id.isOlder(m):
		return &refusal.OlderError{File: w.db.path, Wrote: m.Wrote}
	}
	w.note = m.LastNote(w.db.path, w.id.tx)
	if err := w.readLog(m); err != nil {
		return err
	}
	if err := w.mark(nil, true); err != nil {
		return err
	}
	return syncDir(filepath.Dir(w.db.path))
}

// readLog reads what the log has and the file has not into a layer.
func (w *writer) readLog(m *mark.Mark) (err error) {
	var fresh *layer.Layer
	last := w.id.moved
	w.wal, err = openLog(w.db.path, w.id, m, w.clean, func(seq uint64, payload []byte) error {
		if _, ok := pages.ParseNote(payload); ok {
			return nil
		}
		next, err := fresh.Replay(payload)
		if err != nil {
			return err
		}
		fresh = next
		last = seq
		return nil
	}, w.step)
	if damage, ok := errors.AsType[*refusal.DamagedError](err); ok && w.salvage != nil {
		w.salvage(damage)
		return w.useSound(fresh, last)
	}
	if err != nil {
		return err
	}
	w.lastChange = last
	if w.clean && !w.wal.Exists() { // one of the two heads of the file may say otherwise
		if err := w.setLogged(false); err != nil && !errors.Is(err, store.ErrFull) {
			return err
		}
	}
	w.db.layers.Store(&layers{fresh: fresh, base: w.id.tx})
	if fresh != nil {
		w.log.Info("changes read from the log of the store", "records", last-w.id.moved)
	} else {
		w.due.Stop()
	}
	w.scheduled = fresh != nil
	return nil
}

// useSound moves the sound changes of a damaged log, which end with that record, into the
// file, and removes the log.
func (w *writer) useSound(changes *layer.Layer, last uint64) (err error) {
	m := w.db.move(changes, last)
	if m.err != nil || m.stuck != nil {
		return &refusal.DamagedError{File: w.db.path, Cause: cmp.Or(m.err, errUnreadable)}
	}
	w.wrote = true
	w.id.moved = last
	w.lastChange = last
	w.id.tx = m.tx
	if err := w.setLogged(false); err != nil {
		return err
	}
	if err := os.RemoveAll(LogOf(w.db.path)); err != nil {
		return err
	}
	w.wal, err = wal.Open(LogOf(w.db.path), uint64(w.id.lineage), last, nil, w.step)
	w.db.layers.Store(&layers{base: w.id.tx})
	w.due.Stop()
	return err
}

// openLog opens the log of the file at path, of which m says what it must have. clean says
// that nobody had touched the file since it was closed.
func openLog(
	path string, id identity, m *mark.Mark, clean bool, replay func(uint64, []byte) error, step func(wal.Step) error,
) (*wal.Log, error) {
	known := mark.Mark{Log: id.logged}
	if m != nil && m.Lineage == id.lineage {
		known.Log = known.Log || m.Log
		known.Seq = m.Seq
	}
	l, err := wal.Open(LogOf(path), uint64(id.lineage), id.moved, replay, step)
	var errno syscall.Errno
	switch {
	case errors.As(err, &errno):
		return nil, err
	case err != nil:
		return nil, &refusal.DamagedError{File: path, Cause: err, InLog: true}
	case known.Log && !clean && !l.Exists():
		return nil, &refusal.DamagedError{File: path, Cause: errors.New("it is missing"), InLog: true}
	case known.Seq > l.Last():
		return nil, &refusal.DamagedError{File: path, Cause: errors.New("its last changes are gone"), InLog: true}
	}
	return l, nil
}

// damagedUnlessRefused returns err, which occurred while path was being opened, as
// a refusal.DamagedError, unless it comes from the system or another process.
func damagedUnlessRefused(path string, err error) error {
	var errno syscall.Errno
	if errors.Is(err, errInUse) || errors.As(err, &errno) {
		return err
	}
	return &refusal.DamagedError{File: path, Cause: err}
}

var errInUse = errors.New("another program has it open")

// lockTimeout is how long bbolt tries to lock the file. After that, another
// process has it open.
const lockTimeout = 300 * time.Millisecond

// initialMap is the size of the file's map: address space only, so that a growing
// file does not stop everybody while it is mapped anew.
const initialMap = 1 << 30 // bytes

// options returns those with which files are opened, as measurements showed. A file
// without a free list is not given one before it is known to be the right one.
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
	o.MaxSize = MaxFile()
	return o
}

// MaxFile returns how large the file may get, in bytes; 0 is no limit. It is mapped as a whole, for which 32 bits have
// no more addresses than these in a row. When it is full, deletions are refused, too: they need pages first.
func MaxFile() int {
	if strconv.IntSize == 64 {
		return 0
	}
	return 1 << 30
}

// CheckSize returns an error if the file at path is larger than most, unless that is 0: bbolt would call it damaged.
// Open does so with [MaxFile].
func CheckSize(path string, most int) error {
	info, err := os.Stat(path)
	if err != nil || most == 0 || info.Size() <= int64(most) {
		return nil // whether it is there is looked at later
	}
	return fmt.Errorf("%s has %d MiB, more than the %d that a program of 32 bits can use: use one of 64 bits",
		path, info.Size()>>20, most>>20)
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
