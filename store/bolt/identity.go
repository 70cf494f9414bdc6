package bolt

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"parley/store/bolt/checksum"
	"parley/store/bolt/layer"
	"parley/store/bolt/mark"
	"parley/store/bolt/pages"
	"parley/store/bolt/refusal"
)

// An identity is what the file says about itself. Its lineage is the time at which it
// was created, or at which a copy of it took the place of a later file: of two files,
// the one with the higher lineage is meant to be used, and within one lineage the one
// with more commits.
type identity struct {
	format  int
	lineage int64
	tx      int    // the number of the last commit
	moved   uint64 // the last record of the log whose changes are in the file
	// logged says that there is a log, which may have changes that the file lacks: a copy
	// of the file alone is not the whole Store.
	logged bool
}

// identityPart holds the identity.
func identityPart() part { return newPart("store", "") }

// identify reads the identity of the file, which has no format and lineage at first.
func (d *database) identify() (id identity, err error) {
	defer catch(&err)()
	err = d.bolt().View(func(tx *bbolt.Tx) error {
		id.tx = tx.ID()
		id.format = int(d.metaNumber(tx, "format"))
		id.lineage = int64(d.metaNumber(tx, "lineage"))
		id.moved = d.metaNumber(tx, "moved")
		id.logged = d.metaNumber(tx, "logged") != 0
		return nil
	})
	return id, err
}

// metaNumber returns a number of the identity, 0 if it is missing or damaged.
func (d *database) metaNumber(tx *bbolt.Tx, key string) uint64 {
	v, err := identityPart().get(&txn{file: tx}, encodeKey(key))
	if err != nil {
		return 0
	}
	n, _ := decodeNumber(v)
	return n
}

// isOlder reports whether a file of this identity lacks commits that m knows of.
func (id identity) isOlder(m *mark.Mark) bool {
	if m == nil || m.Lineage == 0 {
		return false
	}
	return id.lineage < m.Lineage || id.lineage == m.Lineage && id.tx < m.Tx
}

// writeMetaNumber writes a number of the identity.
func (d *database) writeMetaNumber(tx *bbolt.Tx, key string, n uint64) error {
	p := identityPart()
	k := encodeKey(key)
	return putInFile(tx, layer.Change{Key: p.prefix + string(k), Val: checksum.Add(p.place, k, encodeNumber(n))})
}

// writeMoved notes that the file has the changes of the log up to record seq.
func (d *database) writeMoved(tx *bbolt.Tx, seq uint64) error {
	return d.writeMetaNumber(tx, "moved", seq)
}

// setLogged writes into the file whether there is a log that it needs.
func (w *writer) setLogged(logged bool) error {
	if w.id.logged == logged {
		return nil
	}
	tx, err := w.db.update(func(tx *bbolt.Tx) error { return w.db.writeLogged(tx, logged) })
	if err != nil {
		return w.fileError(err)
	}
	w.id.logged = logged
	w.id.tx = tx
	w.note = pages.NoteOf(w.db.path, tx)
	w.wrote = true
	return nil
}

func (d *database) writeLogged(tx *bbolt.Tx, logged bool) error {
	if logged {
		return d.writeMetaNumber(tx, "logged", 1)
	}
	return d.writeMetaNumber(tx, "logged", 0)
}

// writeIdentity writes the format and a lineage into the file, at once.
func (w *writer) writeIdentity(lineage int64) error {
	tx, err := w.db.update(func(tx *bbolt.Tx) error {
		if err := w.db.writeMetaNumber(tx, "format", Format); err != nil {
			return err
		}
		return w.db.writeMetaNumber(tx, "lineage", uint64(lineage))
	})
	if err != nil {
		return err
	}
	w.id.format = Format
	w.id.lineage = lineage
	w.id.tx = tx
	w.wrote = true
	return nil
}

// Renew makes this copy of a Store count as later than the one whose place it
// takes, although it has fewer changes.
func (s *Store) Renew(ctx context.Context) error {
	return s.submit(ctx, &op{alone: func() error {
		w := s.writer
		if err := w.removeLog(); err != nil {
			return err
		}
		if err := w.writeIdentity(time.Now().UnixNano()); err != nil {
			return w.fileError(err)
		}
		w.wal.SetLineage(uint64(w.id.lineage))
		return nil
	}})
}

// removeLog makes the file the whole Store, and removes the log: no segment may be there
// that has another lineage than the file.
func (w *writer) removeLog() error {
	if err := w.completeFile(); err != nil {
		return err
	}
	if err := w.mark(nil, true); err != nil {
		return w.fileError(err)
	}
	if err := w.wal.Remove(w.id.moved); err != nil {
		return w.stop(err)
	}
	return nil
}

// completeFile moves all that the log has into the file, which from then on needs no log,
// until the next change.
func (w *writer) completeFile() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.setLogged(false)
}

// CheckLatest returns why Open would refuse the file at path although it is sound: an
// [*refusal.OlderError], a [*refusal.FormatError], or a [*refusal.DamagedError] about its log. It changes nothing.
func CheckLatest(path string) error {
	m, err := mark.Read(path)
	if err != nil {
		return err
	}
	now, err := mark.StateOf(path)
	if err != nil {
		return err
	}
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	id, err := newDatabase(db, path).identify()
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	switch {
	case id.format > Format:
		return &refusal.FormatError{File: path, Has: id.format, Knows: Format}
	case !id.isOlder(m), m.Closed != nil && m.Closed.Spare && id.tx == m.Tx-1:
		_, err := openLog(path, id, m, m.IsClosed(now), func(uint64, []byte) error { return nil }, nil)
		return err
	}
	return &refusal.OlderError{File: path, Wrote: m.Wrote}
}
