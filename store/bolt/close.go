package bolt

import (
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/bolt/mark"
	"parley/store/bolt/pages"
)

// close moves what the log has, closes the file and marks it as closed, unless the
// next Open must probe it.
func (w *writer) close() error {
	w.due.Stop()
	w.deferral.Stop()
	err := w.flush()
	if err != nil && w.broken == nil {
		err = errors.Join(err, w.appendDeferred())
		w.log.Warn("changes stay in the log of the store until the next start", "err", err)
	}
	sound := err == nil && w.broken == nil && !w.suspectFreelist
	freelistOnly := false // the last commit changed only the free list
	if (w.wrote || w.id.logged) && sound {
		err := w.saveFreelist()
		sound = err == nil || errors.Is(err, store.ErrFull)
		freelistOnly = err == nil
	}
	if err := w.db.file.Load().Close(); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if !sound {
		w.wal.Cut()
		return nil
	}
	closed, err := mark.StateOf(w.db.path)
	if err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	closed.Spare = freelistOnly
	if err := w.mark(closed, true); err != nil {
		return fmt.Errorf("close store: %w", err)
	}
	if w.id.logged { // and the file says so: no space was left to change that
		w.wal.Cut()
		return nil
	}
	if err := w.wal.Remove(w.id.moved); err != nil { // it is only in the way
		w.log.Warn("log of the store not removed", "err", err)
	}
	return nil
}

// saveFreelist saves the next Open a walk through the whole file, and says in the file that
// it needs no log. If it fails, Open walks.
func (w *writer) saveFreelist() error {
	tx, err := w.db.update(func(tx *bbolt.Tx) error {
		if !w.id.logged {
			return nil
		}
		return w.db.writeLogged(tx, false)
	})
	if err != nil {
		w.log.Warn("free list not saved", "err", err)
		return err
	}
	w.id.logged = false
	w.id.tx = tx
	w.note = pages.NoteOf(w.db.path, tx)
	return nil
}

// mark writes what is known of the file and the log, and in which state the file was
// closed, if it is.
func (w *writer) mark(closed *mark.State, sync bool) error {
	w.marked = time.Now()
	m := mark.Mark{
		Format:  w.id.format,
		Lineage: w.id.lineage,
		Tx:      w.id.tx,
		Seq:     w.lastChange,
		Log:     w.id.logged,
		Wrote:   w.marked.UTC(),
		Closed:  closed,
		Unread:  w.unread,
	}
	m.SetPageNotes(w.note, w.nextNote)
	err := m.Write(w.db.path, sync)
	w.logMarked = err == nil && m.Log && (sync || w.logMarked)
	return err
}
