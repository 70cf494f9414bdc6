package bolt

import (
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/bolt/layer"
	"parley/store/bolt/mapped"
	"parley/store/bolt/pages"
)

// A checkpoint moves what the log has into the file, while changes go on: what is new
// goes into another segment of the log and another layer meanwhile. Then the segments
// before that are dropped.

const (
	// checkpointInterval is how long a change stays in the log alone.
	checkpointInterval = time.Minute
	// checkpointSize is how long the log gets before a checkpoint.
	checkpointSize = 4 << 20 // bytes
	// maxLog is how long the log gets while a checkpoint goes on, or fails.
	maxLog = 4 * checkpointSize
	// maxStuck bounds what stays in the log because of damage in the file.
	maxStuck = 1 << 20 // bytes
)

// A move is the outcome of a checkpoint.
type move struct {
	seq   uint64 // the record up to which all is moved
	tx    int    // the last transaction of the file
	note  pages.Note
	stuck *layer.Layer // what could not be moved: its pages cannot be read
	err   error        // why not all the rest was moved
}

// scheduleCheckpoint begins a checkpoint if the log is long, or soon.
func (w *writer) scheduleCheckpoint() {
	if w.checkpointing || w.isMoved() {
		return
	}
	if w.wal.Size() >= checkpointSize && !w.postponed {
		w.beginCheckpoint()
		return
	}
	if !w.scheduled {
		w.scheduled = true
		w.due.Reset(checkpointInterval)
	}
}

// isMoved reports whether the file has all changes, up to the last record with changes.
// That may have only deferred ones which a checkpoint has moved before.
func (w *writer) isMoved() bool {
	l := w.db.layers.Load()
	return l.fresh == nil && l.moving == nil && w.lastChange <= w.id.moved
}

// beginCheckpoint begins a checkpoint, unless one is going on or there is nothing to
// move. Its outcome comes from s.writer.moves.
func (w *writer) beginCheckpoint() {
	w.due.Stop()
	w.scheduled = false
	if w.broken != nil || w.checkpointing || w.isMoved() {
		return
	}
	l := w.db.layers.Load()
	w.wal.Cut()
	changes := l.fresh.Over(l.moving)
	w.db.layers.Store(&layers{moving: changes, base: l.base})
	seq := w.wal.Last()
	w.checkpointing = true
	c := w.compaction
	go func() { w.moves <- w.move(c, changes, seq) }()
}

// move puts the changes of a layer into the file, which then has the log up to record seq.
func (d *database) move(changes *layer.Layer, seq uint64) move {
	m := move{seq: seq}
	m.tx, m.err = d.update(func(tx *bbolt.Tx) error {
		if err := putLayer(tx, changes); err != nil {
			return err
		}
		return d.writeMoved(tx, seq)
	})
	if errors.Is(m.err, errUnreadable) {
		return d.moveParts(changes, seq)
	}
	if m.err != nil {
		return m
	}
	m.note = pages.NoteOf(d.path, m.tx)
	_ = mapped.Release(d.bolt()) // otherwise what the checkpoint has touched stays in memory
	return m
}

// moveParts moves each part by itself, and leaves out those that meet damage.
func (d *database) moveParts(changes *layer.Layer, seq uint64) move {
	m := move{seq: seq}
	for _, part := range changes.Parts() {
		tx, err := d.update(func(tx *bbolt.Tx) error { return putLayer(tx, part) })
		switch {
		case err == nil:
			m.tx = tx
		case errors.Is(err, errUnreadable):
			m.stuck = part.Over(m.stuck)
		default:
			m.err = err
			return m
		}
	}
	return m
}

// putLayer makes the changes of l in the file.
func putLayer(tx *bbolt.Tx, l *layer.Layer) error {
	for key, val := range l.All() {
		if err := putInFile(tx, layer.Change{Key: key, Val: val}); err != nil {
			return err
		}
	}
	return nil
}

// endCheckpoint ends a checkpoint with that outcome. If it failed for lack of space, it
// is made again later, and nothing is lost.
func (w *writer) endCheckpoint(m move) error {
	w.checkpointing = false
	w.postponed = false
	if m.tx > 0 {
		w.id.tx = max(w.id.tx, m.tx)
		w.wrote = true
	}
	if err := errors.Join(m.err, w.keepInLog(m)); err != nil {
		return w.failCheckpoint(err)
	}
	w.db.layers.Store(&layers{fresh: w.db.layers.Load().fresh, base: w.id.tx})
	w.id.moved = m.seq
	if err := w.wal.Drop(m.seq); err != nil {
		w.log.Warn("segment of the log not removed", "err", err)
	}
	w.note = m.note
	if err := w.addNote(m.note); err != nil { // which may use the dropped segment
		return err
	}
	w.scheduleCheckpoint()
	return nil
}

// failCheckpoint returns the error of a checkpoint that failed with err. If the disk was
// full, it is made again later.
func (w *writer) failCheckpoint(err error) error {
	switch {
	case errors.Is(err, store.ErrFull):
		w.log.Warn("changes stay in the log of the store", "err", err)
		w.postponed = true
		w.scheduleCheckpoint()
		return err
	case w.broken != nil:
		return err
	}
	return w.stop(err)
}

// keepInLog appends what is stuck, if anything is, to the log again, so that the segment
// that has it can be dropped. It will be tried again.
func (w *writer) keepInLog(m move) error {
	if m.err != nil || m.stuck == nil {
		return nil
	}
	w.suspectFreelist = true
	t := &txn{fresh: w.db.layers.Load().fresh}
	size := 0
	for key, val := range m.stuck.All() {
		size += len(key) + len(val)
		if t.fresh.Find(key) == nil { // otherwise there is a newer one
			t.set(key, val)
		}
	}
	w.log.Error("changes that belong into damaged pages of the store stay in its log", "bytes", size)
	if size > maxStuck {
		return errUnreadable
	}
	if len(t.changes) > 0 {
		if err := w.wal.Append(layer.Encode(t.changes)); err != nil {
			return w.logError(err)
		}
		w.lastChange = w.wal.Last()
		l := w.db.layers.Load()
		w.db.layers.Store(&layers{fresh: t.fresh, moving: l.moving, base: l.base})
	}
	tx, err := w.db.update(func(tx *bbolt.Tx) error { return w.db.writeMoved(tx, m.seq) })
	if err != nil {
		return err
	}
	w.id.tx = tx
	return nil
}

// limitLog waits for the checkpoint if the log has become too long.
func (w *writer) limitLog() error {
	if w.wal.Size() < maxLog {
		return nil
	}
	if err := w.flush(); err != nil {
		return err
	}
	if w.wal.Size() >= maxLog {
		return w.stop(errors.New("the log does not become shorter"))
	}
	return nil
}

// flush moves all that the log has. Only the writer calls it, or who knows that it has
// ended.
func (w *writer) flush() error {
	if w.checkpointing {
		if err := w.endCheckpoint(<-w.moves); err != nil {
			return err
		}
	}
	if w.isMoved() {
		return nil
	}
	if w.broken != nil {
		return w.broken
	}
	w.beginCheckpoint()
	return w.endCheckpoint(<-w.moves)
}

// update changes the file in one transaction, and returns its number. The error is
// ErrFull or errUnreadable if nothing was changed; after any other it is unknown what is
// on disk. Only one update may be made at a time.
func (d *database) update(change func(*bbolt.Tx) error) (id int, err error) {
	tx, err := d.bolt().Begin(true)
	if err != nil {
		return 0, err
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errUnreadable, r)
			if e := rollBack(tx); e != nil {
				err = fmt.Errorf("roll back: %w", e)
			}
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	if err := change(tx); err != nil {
		return 0, errors.Join(err, tx.Rollback())
	}
	id = tx.ID()
	if err := tx.Commit(); err != nil {
		return 0, d.commitError(err, id)
	}
	return id, nil
}

func rollBack(tx *bbolt.Tx) (err error) {
	defer catch(&err)()
	return tx.Rollback()
}

// commitError returns the error of the failed commit of transaction id. A full disk may
// get better.
func (d *database) commitError(err error, id int) error {
	if isFull(err) && d.lastID() < id {
		return fmt.Errorf("write store: %w: %w", store.ErrFull, err)
	}
	return err
}

// fileError returns the error of a write beside the log that failed with err. After most
// errors it is unknown what is on disk: the Store stops writing until it is opened again,
// and goes on reading.
func (w *writer) fileError(err error) error {
	switch {
	case err == nil, errors.Is(err, store.ErrFull):
		return err
	case isFull(err):
		return fmt.Errorf("write store: %w: %w", store.ErrFull, err)
	}
	return w.stop(err)
}

// lastID returns the number of the transaction that readers see.
func (d *database) lastID() (id int) {
	err := d.bolt().View(func(tx *bbolt.Tx) error {
		id = tx.ID()
		return nil
	})
	if err != nil {
		return int(^uint(0) >> 1)
	}
	return id
}
