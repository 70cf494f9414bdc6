package bolt

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"parley/store"
	"parley/store/bolt/layer"
	"parley/store/bolt/pages"
	"parley/store/bolt/wal"
)

// A writer makes all changes of a Store. It owns the log, the checkpoints and the mark.
// Its methods are for its goroutine, run, and after that for who closes the Store.
type writer struct {
	db        *database
	log       *slog.Logger
	stopped   func(error)          // see Config
	committed func(time.Duration)  // see Config
	salvage   func(error)          // see Config
	step      func(wal.Step) error // see wal.Open

	ops   chan *op
	moves chan move     // the outcome of the checkpoint that is going on
	ended chan struct{} // run has returned

	wal           *wal.Log
	lastChange    uint64 // the last record of the log that has changes, or the last one that was moved
	broken        error  // why nothing is written any more
	id            identity
	note          pages.Note    // of the last commit that has one
	nextNote      pages.Note    // of the draft that is about to become the file
	clean         bool          // nobody had touched the file since it was closed
	wrote         bool          // into the file
	marked        time.Time     // when the mark was last written
	logMarked     bool          // the mark says that there is a log
	checkpointing bool          // a checkpoint is going on
	postponed     bool          // the last checkpoint found the disk full
	unread        int           // see mark
	scheduled     bool          // due is set
	due           *time.Timer   // for the next checkpoint
	compaction    *compaction   // that is going on; nil: none
	deferred      layer.Backlog // what readers see and the log has not
	deferral      *time.Timer   // ends when the log must have it
	// suspectFreelist says that the free list in memory may be wrong, because a
	// fault interrupted a commit: the file is probed by the next Open.
	suspectFreelist bool
}

// maxBatch is how many calls share a commit at most.
const maxBatch = 1024

// An op is one change, and the channel that its caller waits on.
type op struct {
	// do makes the change. errUnchanged says that there was nothing to change.
	do func(*txn) error
	// onCommit, which may be nil, is called when readers see the change, in the order
	// of the batch.
	onCommit func()
	// vital says that nothing works properly without this change: if it meets
	// damage, the Store stops.
	vital bool
	// deferred says that the caller does not wait for the disk: see store.Deferred.
	deferred bool
	// afterFault makes the change in another way if do has met damage; may be nil.
	afterFault func(*txn) error
	// alone is called by the writer when the changes before it are on disk, in the
	// place of all the others; nil: it is an op as described above.
	alone func() error
	done  chan error
}

var errUnchanged = errors.New("nothing to change")

// write has the writer do the change and returns when it is on disk, or sooner if it is
// deferred. It waits for that even if ctx ends, so that the caller knows what became of
// the change.
func (s *Store) write(ctx context.Context, do func(*txn) error, onCommit func()) error {
	return s.submit(ctx, &op{do: do, onCommit: onCommit})
}

// submit is write for any op.
func (s *Store) submit(ctx context.Context, o *op) error {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	o.deferred = store.IsDeferred(ctx)
	o.done = make(chan error, 1)
	s.writer.ops <- o
	return <-o.done
}

// run is the writer. Changes that arrive while it commits share the next commit. No
// change waits for others.
func (w *writer) run() {
	defer close(w.ended)
	debug.SetPanicOnFault(true)
	var batch []*op
	for {
		select {
		case o, ok := <-w.ops:
			if !ok {
				return
			}
			runtime.Gosched() // lets callers that the last commit woke join
			batch = append(batch[:0], o)
			for len(batch) < maxBatch && len(w.ops) > 0 {
				batch = append(batch, <-w.ops)
			}
			w.commit(batch)
			clear(batch)
		case m := <-w.moves:
			_ = w.endCheckpoint(m) // it logs what the operator must know, and is made again
		case <-w.due.C:
			w.beginCheckpoint()
		case <-w.deferral.C:
			w.endDeferral()
		}
	}
}

func (w *writer) commit(batch []*op) {
	errs := make([]error, len(batch))
	if err := w.commitAll(batch, errs); err != nil {
		for i := range errs { // an op may have failed because of another that was not kept
			errs[i] = err
		}
	}
	for i, o := range batch {
		switch {
		case o.alone != nil:
			continue
		case errs[i] == nil && o.onCommit != nil:
			o.onCommit()
		case errors.Is(errs[i], errUnchanged):
			errs[i] = nil
		}
		o.done <- errs[i]
	}
	for _, o := range batch {
		if o.alone != nil {
			o.done <- o.alone()
		}
	}
}

// commitAll makes all changes of batch in one record of the log, with those that were
// deferred before, and sets the error of each. If all of batch are deferred, none is
// written. A change that meets a page that cannot be read is left out, and the others are
// made without it (P21). A vital one stops the Store. With an error, no change was kept.
func (w *writer) commitAll(batch []*op, errs []error) error {
	if w.broken != nil {
		return w.broken
	}
	if err := w.limitLog(); err != nil {
		return err
	}
	t, err := w.makeChanges(batch, errs)
	if err != nil || len(w.deferred.Changes)+len(t.changes) == 0 {
		return err
	}
	if canDefer(batch, errs) && w.deferred.Takes(t.changes) {
		return w.deferChanges(t)
	}
	return w.append(t)
}

// canDefer reports whether nobody in batch waits for the disk. Who is told that there was
// nothing to change does, because that may be so through a deferred change.
func canDefer(batch []*op, errs []error) bool {
	for i, o := range batch {
		if o.do != nil && !o.deferred && (errs[i] == nil || errors.Is(errs[i], errUnchanged)) {
			return false
		}
	}
	return true
}

// deferChanges shows the changes of t to readers, and leaves them to the next append.
func (w *writer) deferChanges(t *txn) error {
	if len(t.changes) == 0 {
		return nil
	}
	if err := w.beginLog(); err != nil { // a checkpoint may move them before
		return err
	}
	if len(w.deferred.Changes) == 0 {
		w.deferral.Reset(store.DeferLimit)
	}
	w.deferred.Add(t.changes)
	w.show(t)
	return nil
}

// show shows the changes of t to readers.
func (w *writer) show(t *txn) {
	w.db.layers.Store(&layers{fresh: t.fresh, moving: t.moving, base: w.db.layers.Load().base})
}

// endDeferral appends what is deferred to the log. On a full disk it is tried again.
func (w *writer) endDeferral() {
	if w.broken != nil {
		return
	}
	if err := w.appendDeferred(); err != nil {
		w.log.Debug("deferred changes not written", "err", err)
		w.deferral.Reset(store.DeferLimit)
	}
}

func (w *writer) appendDeferred() error {
	if len(w.deferred.Changes) == 0 {
		return nil
	}
	l := w.db.layers.Load()
	return w.append(&txn{fresh: l.fresh, moving: l.moving})
}

// makeChanges makes the changes of batch in a txn that has ended.
func (w *writer) makeChanges(batch []*op, errs []error) (*txn, error) {
	t, err := w.db.begin()
	if err != nil {
		return nil, err
	}
	defer t.end()
	for i, o := range batch {
		if o.do == nil {
			continue
		}
		if errs[i], err = w.try(t, o); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// try makes the change of o in t. It returns why o fails, and why all of its batch do.
func (w *writer) try(t *txn, o *op) (failed, fatal error) {
	err := t.attempt(o.do)
	if !errors.Is(err, errUnreadable) {
		return err, nil
	}
	if o.vital {
		return err, w.stop(err)
	}
	if o.afterFault != nil {
		err = t.attempt(o.afterFault)
	}
	return err, nil
}

// errUnreadable says that a page cannot be read.
var errUnreadable = fmt.Errorf("%w: unreadable page", store.ErrDamaged)

// append appends what is deferred and the changes of t to the log, and shows them to
// readers when they are on disk.
func (w *writer) append(t *txn) error {
	if err := w.beginLog(); err != nil {
		return err
	}
	began := time.Now()
	if err := w.wal.Append(layer.Encode(slices.Concat(w.deferred.Changes, t.changes))); err != nil {
		return w.logError(err)
	}
	w.lastChange = w.wal.Last()
	w.deferred = layer.Backlog{}
	w.deferral.Stop()
	if w.committed != nil {
		w.committed(time.Since(began))
	}
	w.show(t)
	if time.Since(w.marked) > markInterval {
		if err := w.mark(nil, false); err != nil { // the earlier mark is still true
			w.log.Debug("mark of the store not written", "err", err)
		}
	}
	w.scheduleCheckpoint()
	return nil
}

// beginLog begins a segment of the log, unless there is one. It must be on disk, and the
// file and the mark must say so, before the first change is acknowledged.
func (w *writer) beginLog() error {
	if w.id.format < Format || w.id.lineage == 0 {
		lineage := w.id.lineage
		if lineage == 0 {
			lineage = time.Now().UnixNano()
		}
		if err := w.writeIdentity(lineage); err != nil {
			return w.fileError(err)
		}
		w.wal.SetLineage(uint64(lineage))
	}
	if err := w.wal.Begin(); err != nil {
		return w.logError(err)
	}
	if !w.id.logged {
		if err := w.setLogged(true); err != nil {
			return err
		}
		if err := w.addNote(w.note); err != nil {
			return err
		}
	}
	if w.logMarked {
		return nil
	}
	if err := w.mark(nil, true); err != nil {
		return w.fileError(err)
	}
	return nil
}

// logError returns the error of an append that failed with err.
func (w *writer) logError(err error) error {
	if errors.Is(err, wal.ErrNoSpace) {
		return fmt.Errorf("write store: %w: %w", store.ErrFull, err)
	}
	return w.stop(err)
}

// markInterval is how often the mark is updated after commits.
const markInterval = time.Minute

func (w *writer) stop(err error) error {
	w.broken = fmt.Errorf("store stopped writing, restart to go on: %w", err)
	if w.stopped != nil {
		w.stopped(w.broken)
	}
	return w.broken
}

// isFull reports whether the disk is full, or the file as large as it may be. It checks the
// text, too, because bbolt does not wrap the errors of growing the file.
func isFull(err error) bool {
	if errors.Is(err, berrors.ErrMaxSizeReached) {
		return true
	}
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// catch turns this goroutine's faults in the mapped file into panics, and a panic into
// the error ErrDamaged. Use it as in: defer catch(&err)()
func catch(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%w: %v", store.ErrDamaged, r)
		}
	}
}
