package bolt

import (
	"bytes"
	"context"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log { return log{s.part("log", name)} }

type log struct{ part }

func (l log) Append(ctx context.Context, recs ...[]byte) (seq uint64, err error) {
	err = l.store.write(ctx, func(tx *bbolt.Tx) error {
		in, err := l.make(tx)
		if err != nil {
			return err
		}
		in.FillPercent = 0.9 // records only ever come at the end
		seq = last(in)
		for _, r := range recs {
			seq++
			if err := l.put(tx, number(seq), r); err != nil {
				return err
			}
		}
		return in.SetSequence(seq)
	}, nil)
	if err != nil {
		return 0, l.wrap(err)
	}
	return seq, nil
}

// last returns the number given last in b. It trusts the numbers that are there
// more than the sequence, of which there is no checksum. (Cursor.Last would never
// return in a transaction that has emptied all of several pages.)
func last(b *bbolt.Bucket) uint64 {
	n := b.Sequence()
	c := b.Cursor()
	for k, _ := c.Seek(number(n + 1)); len(k) == 8; k, _ = c.Next() {
		n, _ = split(k)
	}
	return n
}

func (l log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for end := ^uint64(0); seq < end; {
			var recs []store.Record
			err := l.store.view(ctx, func(tx *bbolt.Tx) error {
				recs, end = l.page(tx, seq, end)
				return nil
			})
			if err != nil {
				yield(store.Record{}, l.wrap(err))
				return
			}
			if len(recs) == 0 {
				return
			}
			for _, r := range recs {
				seq, err = r.Seq, nil
				if r.Body == nil {
					err = l.wrap(fmt.Errorf("record %d: %w", seq, errChecksum))
				}
				if !yield(r, err) {
					return
				}
			}
		}
	}
}

// page returns some records after seq and up to end, and the number of the
// last one up to end. A damaged record has no Body.
func (l log) page(tx *bbolt.Tx, seq, end uint64) ([]store.Record, uint64) {
	in := l.in(tx)
	if in == nil {
		return nil, end
	}
	end = min(end, last(in))
	var recs []store.Record
	l.scan(tx, number(seq+1), func(k, v []byte) bool {
		n, _ := split(k)
		if n > end {
			return false
		}
		r := store.Record{Seq: n}
		if body, ok := unseal(l.place, k, v); ok {
			r.Body = append(make([]byte, 0, len(body)), body...)
		}
		recs = append(recs, r)
		return true
	})
	return recs, end
}

// Trim works in several commits, the oldest records first.
func (l log) Trim(ctx context.Context, seq uint64) error {
	for next := number(0); next != nil; {
		err := l.store.write(ctx, func(tx *bbolt.Tx) error {
			var old [][]byte
			next = l.scan(tx, number(0), func(k, _ []byte) bool {
				if bytes.Compare(k, number(seq)) > 0 {
					return false
				}
				old = append(old, bytes.Clone(k))
				return true
			})
			err := errSame
			for _, k := range old {
				if err = l.delete(tx, k); err != nil {
					return err
				}
			}
			return err
		}, nil)
		if err != nil {
			return l.wrap(err)
		}
	}
	return nil
}
