package bolt

import (
	"bytes"
	"context"
	"errors"
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
		end, err := l.end(ctx)
		for err == nil && seq < end {
			var recs []store.Record
			recs, err = l.page(ctx, seq, end)
			if err == nil && len(recs) == 0 {
				return
			}
			for _, r := range recs {
				seq = r.Seq
				var bad error
				if r.Body == nil {
					bad = l.wrap(fmt.Errorf("record %d: %w", seq, errChecksum))
				}
				if !yield(r, bad) {
					return
				}
			}
		}
		if err != nil {
			yield(store.Record{}, l.wrap(err))
		}
	}
}

// end returns the number of the last record. If the page that would tell cannot
// be read, the sequence is to be trusted.
func (l log) end(ctx context.Context) (end uint64, err error) {
	err = l.store.view(ctx, func(tx *bbolt.Tx) error {
		in := l.in(tx)
		if in == nil {
			return nil
		}
		end = in.Sequence()
		end = max(end, lastReadable(in))
		return nil
	})
	return end, err
}

// lastReadable is last of b, 0 if the page that would tell cannot be read.
func lastReadable(b *bbolt.Bucket) (n uint64) {
	var err error
	defer catch(&err)()
	return last(b)
}

// page returns some records after seq and up to end. A damaged record has no
// Body. So have those that a page that cannot be read may have held, at most
// maxUnread of them.
func (l log) page(ctx context.Context, seq, end uint64) (recs []store.Record, err error) {
	err = l.store.view(ctx, func(tx *bbolt.Tx) error {
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
		return nil
	})
	if len(recs) > 0 || err == nil || !errors.Is(err, store.ErrDamaged) {
		return recs, ignoreFault(err) // those behind what was read come next
	}
	next, err := l.readable(ctx, seq+1, end)
	next = max(next, seq+2) // the page of a value may be lost, and that of its key not
	for n := max(seq+1, next-min(next, maxUnread)); n < next && err == nil; n++ {
		recs = append(recs, store.Record{Seq: n})
	}
	return recs, err
}

// maxUnread bounds the records that an unreadable page is taken to have held.
const maxUnread = 1000

// readable returns the first number from n on, which cannot be read, at which
// there is a page that can be, and the number behind end if there is none.
func (l log) readable(ctx context.Context, n, end uint64) (uint64, error) {
	for step := uint64(1); ; step *= 2 {
		n = min(n+step, end+1)
		if n > end {
			break
		}
		err := l.store.view(ctx, func(tx *bbolt.Tx) error {
			l.in(tx).Cursor().Seek(number(n))
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrDamaged) {
			return n, err
		}
	}
	return l.narrow(ctx, n)
}

// narrow returns the lowest number up to n from which on all can be read.
func (l log) narrow(ctx context.Context, n uint64) (uint64, error) {
	err := l.store.view(ctx, func(tx *bbolt.Tx) (err error) {
		defer catch(&err)()
		for c := l.in(tx).Cursor(); n > 1; n-- {
			c.Seek(number(n - 1))
		}
		return nil
	})
	return n, ignoreFault(err)
}

// ignoreFault returns err unless it says that a page cannot be read.
func ignoreFault(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	return err
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
