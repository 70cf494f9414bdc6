package bolt

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"
)

// An identity is what the file says about itself. Its lineage is the time at which it
// was created, or at which a copy of it took the place of a later file: of two files,
// the one with the higher lineage is meant to be used, and within one lineage the one
// with more commits.
type identity struct {
	format  int
	lineage int64
	tx      int // the number of the last commit
}

// metaPart holds the identity.
func (s *Store) metaPart() part { return s.part("store", "") }

// identify reads the identity of the file, which has no format and lineage at first.
func (s *Store) identify() (id identity, err error) {
	defer catch(&err)()
	err = s.db.View(func(tx *bbolt.Tx) error {
		id.tx = tx.ID()
		id.format = int(s.metaNumber(tx, "format"))
		id.lineage = int64(s.metaNumber(tx, "lineage"))
		return nil
	})
	return id, err
}

// metaNumber returns a number of the identity, 0 if it is missing or damaged.
func (s *Store) metaNumber(tx *bbolt.Tx, key string) uint64 {
	v, err := s.metaPart().get(tx, encodeKey(key))
	if err != nil {
		return 0
	}
	n, _ := decodeNumber(v)
	return n
}

// isOlder reports whether a file of this identity lacks commits that m knows of.
func (id identity) isOlder(m *mark) bool {
	if m == nil || m.Lineage == 0 {
		return false
	}
	return id.lineage < m.Lineage || id.lineage == m.Lineage && id.tx < m.Tx
}

// writeIdentity returns the change that writes the format and a lineage into the file.
func (s *Store) writeIdentity(lineage int64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if err := s.writeFormat(tx, s.id.format); err != nil {
			return err
		}
		return s.metaPart().put(tx, encodeKey("lineage"), encodeNumber(uint64(lineage)))
	}
}

// writeFormat raises the format of the file to at least format. The next mark has it,
// too.
func (s *Store) writeFormat(tx *bbolt.Tx, format int) error {
	s.id.format = max(s.id.format, format)
	return s.metaPart().put(tx, encodeKey("format"), encodeNumber(uint64(s.id.format)))
}

// Renew makes this copy of a Store count as later than the one whose place it
// takes, although it has fewer changes.
func (s *Store) Renew(ctx context.Context) error {
	lineage := time.Now().UnixNano()
	return s.write(ctx, s.writeIdentity(lineage), func() { s.id.lineage = lineage })
}

// CheckLatest returns why Open would refuse the file at path although it is sound: an
// [*OlderError] or a [*FormatError]. It changes nothing.
func CheckLatest(path string) error {
	m, err := readMark(path)
	if err != nil {
		return err
	}
	db, err := openFile(path, &bbolt.Options{ReadOnly: true, Timeout: lockTimeout})
	if err != nil {
		return err
	}
	s := &Store{db: db, path: path}
	id, err := s.identify()
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	switch {
	case id.format > Format:
		return &FormatError{File: path, Has: id.format}
	case !id.isOlder(m), m.Closed != nil && m.Closed.Spare && id.tx == m.Tx-1:
		return nil
	}
	return &OlderError{File: path, Wrote: m.Wrote}
}
