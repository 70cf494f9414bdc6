package bolt

import (
	"bytes"
	"context"
	"iter"

	"parley/store"
	"parley/store/bolt/checksum"
)

// Parts returns the names of what is in a top bucket of the file, in order, whether or not there are entries.
func (s *Store) Parts(ctx context.Context, top string) (names []string, err error) {
	err = s.view(ctx, func(t *txn) error {
		names = t.parts(top)
		return nil
	})
	return names, err
}

// Entries yields the keys and values of a part in a top bucket, in order, as they are in the file but without their
// checksums. A damaged value is yielded with its key and ErrDamaged, and the next ones follow; any other error is the
// last.
func (s *Store) Entries(ctx context.Context, top, name string) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		p := s.part(top, name)
		for next := []byte{}; next != nil; {
			var found []Entry
			err := s.view(ctx, func(t *txn) error {
				next = p.scan(t, next, func(k, stored []byte) bool {
					v, ok := checksum.Strip(p.place, k, stored)
					found = append(found, Entry{Key: bytes.Clone(k), Value: bytes.Clone(v), isDamaged: !ok})
					return true
				})
				return nil
			})
			for _, e := range found {
				fault := error(nil)
				if e.isDamaged {
					fault = p.wrap(errChecksum)
				}
				if !yield(e, fault) {
					return
				}
			}
			if err != nil {
				yield(Entry{}, store.Terminal(p.wrap(err)))
				return
			}
		}
	}
}

// An Entry is what the file has under a key.
type Entry struct {
	Key, Value []byte
	isDamaged  bool
}

// AddEntry adds an entry. Without a key it has the number after the last one.
func (s *Store) AddEntry(ctx context.Context, top, name string, e Entry) error {
	p := s.part(top, name)
	return p.wrap(s.write(ctx, func(t *txn) error {
		if e.Key != nil {
			return p.put(t, e.Key, e.Value)
		}
		n := p.lastNumber(t) + 1
		if err := p.put(t, encodeNumber(n), e.Value); err != nil {
			return err
		}
		return p.setSequence(t, n)
	}, nil))
}

// Skip has the next record of a log be numbered seq+1, unless the log has come as far.
func (s *Store) Skip(ctx context.Context, name string, seq uint64) error {
	l := log{part: s.part("log", name)}
	return l.part.wrap(s.write(ctx, func(t *txn) error {
		last := l.piece(l.pieces(t) - 1).part
		if last.lastNumber(t) >= seq {
			return errUnchanged
		}
		return last.setSequence(t, seq)
	}, nil))
}
