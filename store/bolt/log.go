package bolt

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"iter"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log { return &log{s, name} }

type log struct {
	store *Store
	name  string
}

func (l *log) wrap(err error) error { return wrap("log", l.name, err) }

func (l *log) Append(ctx context.Context, recs ...[]byte) (seq uint64, err error) {
	err = l.store.write(ctx, func(tx *bbolt.Tx) error {
		in, err := ensure(tx, logs, l.name)
		if err != nil {
			return err
		}
		in.FillPercent = 0.9 // records only ever come at the end
		seq = in.Sequence()
		for _, r := range recs {
			seq++
			k := number(seq)
			if err := in.Put(k, seal(k, r)); err != nil {
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

func (l *log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		last := ^uint64(0) // then the end as it was at the beginning: whoever appends meanwhile would never see one
		for seq < last {
			recs, end, err := l.page(ctx, seq, last)
			if err != nil {
				yield(store.Record{}, l.wrap(err))
				return
			}
			last = end
			for _, r := range recs {
				if !yield(r, l.check(r)) {
					return
				}
			}
			if len(recs) == 0 {
				return
			}
			seq = recs[len(recs)-1].Seq
		}
	}
}

// check returns ErrDamaged for a record that page could not read.
func (l *log) check(r store.Record) error {
	if r.Body == nil {
		return l.wrap(fmt.Errorf("record %d: %w", r.Seq, store.ErrDamaged))
	}
	return nil
}

// page returns some records after seq and up to last, and the number of the
// last one there is. A damaged record has no Body.
func (l *log) page(ctx context.Context, seq, last uint64) (recs []store.Record, end uint64, err error) {
	err = l.store.view(ctx, func(tx *bbolt.Tx) error {
		in := child(tx, logs, l.name)
		if in == nil {
			return nil
		}
		end = min(last, in.Sequence())
		size := 0
		c := in.Cursor()
		for k, v := c.Seek(number(seq + 1)); k != nil && len(recs) < pageLen && size < pageSize; k, v = c.Next() {
			r := store.Record{Seq: binary.BigEndian.Uint64(k)}
			if r.Seq > end {
				break
			}
			if body, ok := unseal(k, v); ok {
				r.Body = append(make([]byte, 0, len(body)), body...)
			}
			recs = append(recs, r)
			size += len(v)
		}
		return nil
	})
	return recs, end, err
}

// Trim works in several commits, the oldest records first.
func (l *log) Trim(ctx context.Context, seq uint64) error {
	for more := true; more; {
		err := l.store.write(ctx, func(tx *bbolt.Tx) error {
			in := child(tx, logs, l.name)
			if in == nil {
				more = false
				return errSame
			}
			var old [][]byte
			old, more = upTo(in, number(seq))
			if len(old) == 0 {
				return errSame
			}
			for _, k := range old {
				if err := in.Delete(k); err != nil {
					return err
				}
			}
			return nil
		}, nil)
		if err != nil {
			return l.wrap(err)
		}
	}
	return nil
}

// upTo returns some of the first keys of b that are not after last, and
// whether there are more.
func upTo(b *bbolt.Bucket, last []byte) (keys [][]byte, more bool) {
	c := b.Cursor()
	for k, _ := c.First(); k != nil && bytes.Compare(k, last) <= 0; k, _ = c.Next() {
		if len(keys) == pageLen {
			return keys, true
		}
		keys = append(keys, bytes.Clone(k))
	}
	return keys, false
}
