package bolt

import (
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"
)

// An identity is what the file says of itself. Its lineage is the time at which
// it was made, or at which a copy of it took the place of a later file: of two
// files, the one with the higher lineage is the one that is meant to be used,
// and of one lineage the one with more commits.
type identity struct {
	format  int
	lineage int64
	tx      int // the number of the last commit
}

func (s *Store) self() part { return s.part("store", "") }

// identify reads the identity of the file, without numbers if it has none yet.
func (s *Store) identify() (id identity, err error) {
	defer catch(&err)()
	err = s.db.View(func(tx *bbolt.Tx) error {
		id.tx = tx.ID()
		if v, err := s.self().get(tx, label("format")); err == nil {
			n, _ := split(v)
			id.format = int(n)
		}
		if v, err := s.self().get(tx, label("lineage")); err == nil {
			n, _ := split(v)
			id.lineage = int64(n)
		}
		return nil
	})
	return id, err
}

// isOlder reports whether a file of this identity lacks what m says was there.
func (id identity) isOlder(m *mark) bool {
	if m == nil || m.Lineage == 0 {
		return false
	}
	return id.lineage < m.Lineage || id.lineage == m.Lineage && id.tx < m.Tx
}

// stampNumbers writes the format and a lineage into the file.
func (s *Store) stampNumbers(lineage int64) func(*bbolt.Tx) error {
	return func(tx *bbolt.Tx) error {
		if err := s.stampFormat(tx, s.id.format); err != nil {
			return err
		}
		return s.self().put(tx, label("lineage"), number(uint64(lineage)))
	}
}

// stampFormat writes into the file which format it has, at least. The next mark
// says the same.
func (s *Store) stampFormat(tx *bbolt.Tx, format int) error {
	s.id.format = max(s.id.format, format)
	return s.self().put(tx, label("format"), number(uint64(s.id.format)))
}

// Renew makes this copy of a Store count as later than the one whose place it
// takes, although it has fewer changes.
func (s *Store) Renew(ctx context.Context) error {
	lineage := time.Now().UnixNano()
	return s.write(ctx, s.stampNumbers(lineage), func() { s.id.lineage = lineage })
}

// CheckLatest reports what keeps Open from using the whole file at path: it
// returns an [*OlderError] or a [*FormatError]. It changes nothing.
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
