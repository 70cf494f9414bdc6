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

// A log is one piece, unless damage has broken it: when the end of a piece cannot
// be read, nothing can be added to it, and the log goes on in the next piece.
type log struct{ part }

// piece returns piece n of the log. The first is number 0.
func (l log) piece(n int) log {
	if n == 0 {
		return log{l.store.part("log", l.name)}
	}
	return log{l.store.part(fmt.Sprintf("%s%d", laterPieces, n), l.name)}
}

// laterPieces begins the names of the top buckets with the pieces of logs that
// damage has broken.
const laterPieces = "log+"

// pieces counts the pieces of the log, of which there is always one. One that
// cannot be looked for may be there.
func (l log) pieces(tx *bbolt.Tx) int {
	n := 1
	for l.piece(n).mayExist(tx) {
		n++
	}
	return n
}

func (l log) mayExist(tx *bbolt.Tx) (may bool) {
	defer func() {
		if recover() != nil {
			may = true
		}
	}()
	return l.in(tx) != nil
}

// unknownEnd is the distance between the numbers of one piece and those of the
// next if nobody can tell where the first one ended.
const unknownEnd = 1 << 40

func (l log) Append(ctx context.Context, recs ...[]byte) (seq uint64, err error) {
	err = l.store.submit(ctx, &op{
		do: func(tx *bbolt.Tx) (err error) {
			seq, err = l.piece(l.pieces(tx)-1).add(tx, recs)
			return err
		},
		afterFault: func(tx *bbolt.Tx) (err error) {
			seq, err = l.addPiece(tx, recs)
			return err
		},
	})
	if err != nil {
		return 0, l.wrap(err)
	}
	return seq, nil
}

// addPiece lets the log go on with recs in a piece of its own.
func (l log) addPiece(tx *bbolt.Tx, recs [][]byte) (seq uint64, err error) {
	n := l.pieces(tx)
	end := uint64(n) * unknownEnd
	if last, err := l.piece(n - 1).lastNumber(tx); err == nil {
		end = last
	}
	next := l.piece(n)
	in, err := next.make(tx)
	if err == nil {
		err = in.SetSequence(end)
	}
	if err == nil {
		err = l.store.stampFormat(tx, formatOfPieces)
	}
	if err != nil {
		return 0, err
	}
	l.store.log.Error("the end of a log cannot be read, and what comes next is kept elsewhere", "log", l.name, "after", end)
	return next.add(tx, recs)
}

// add puts recs at the end of the piece.
func (l log) add(tx *bbolt.Tx, recs [][]byte) (seq uint64, err error) {
	in, err := l.make(tx)
	if err != nil {
		return 0, err
	}
	in.FillPercent = 0.9 // records only ever come at the end
	seq = last(in)
	for _, r := range recs {
		seq++
		if err := l.put(tx, number(seq), r); err != nil {
			return 0, err
		}
	}
	return seq, in.SetSequence(seq)
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
		extents, err := l.extents(ctx)
		if err != nil {
			yield(store.Record{}, l.wrap(err))
			return
		}
		for n, e := range extents {
			if e.err != nil && n+1 < len(extents) && seq+1 >= extents[n+1].first {
				continue
			}
			if e.err != nil {
				if seq++; !yield(store.Record{Seq: seq}, l.wrap(e.err)) {
					return
				}
				continue
			}
			var more bool
			if seq, more = l.piece(n).between(ctx, seq, e.end, yield); !more {
				return
			}
		}
	}
}

// between yields the records of the piece after seq and up to end. It returns
// the number of the last, and whether there may be more to yield.
func (l log) between(ctx context.Context, seq, end uint64, yield func(store.Record, error) bool) (uint64, bool) {
	for seq < end {
		recs, err := l.page(ctx, seq, end)
		if err != nil {
			return seq, yield(store.Record{}, l.wrap(err)) && false
		}
		if len(recs) == 0 {
			break
		}
		for _, r := range recs {
			seq = r.Seq
			var bad error
			if r.Body == nil {
				bad = l.wrap(fmt.Errorf("record %d: %w", seq, errChecksum))
			}
			if !yield(r, bad) {
				return seq, false
			}
		}
	}
	return seq, true
}

// An extent says which numbers a piece has.
type extent struct {
	first uint64 // 0 if nobody can tell, or there are none
	end   uint64
	err   error // why nothing of it can be read
}

func (l log) extents(ctx context.Context) (all []extent, err error) {
	err = l.store.view(ctx, func(tx *bbolt.Tx) error {
		for n := range l.pieces(tx) {
			var e extent
			e.end, e.err = l.piece(n).lastNumber(tx)
			e.first = l.piece(n).firstNumber(tx)
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// lastNumber returns the number of the last record of the piece. If the page
// that would tell cannot be read, the sequence is to be trusted.
func (l log) lastNumber(tx *bbolt.Tx) (end uint64, err error) {
	defer catch(&err)()
	if in := l.in(tx); in != nil {
		end = max(in.Sequence(), lastReadable(in))
	}
	return end, nil
}

// firstNumber returns that of its first record, 0 if it has none that can be read.
func (l log) firstNumber(tx *bbolt.Tx) (first uint64) {
	var err error
	defer catch(&err)()
	if in := l.in(tx); in != nil {
		if k, _ := in.Cursor().First(); len(k) == 8 {
			first, _ = split(k)
		}
	}
	return first
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

// Trim works in several commits, the oldest records first. What cannot be read
// it cannot remove: it then removes the rest.
func (l log) Trim(ctx context.Context, seq uint64) error {
	extents, err := l.extents(ctx)
	for n := range extents {
		err = errors.Join(err, l.piece(n).trim(ctx, seq))
	}
	return l.wrap(err)
}

func (l log) trim(ctx context.Context, seq uint64) error {
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
			return err
		}
	}
	return nil
}
