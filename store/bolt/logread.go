package bolt

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"parley/store"
	"parley/store/bolt/checksum"
)

// Since implements [store.Log].
func (l log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		extents, err := l.extents(ctx)
		if err != nil {
			yield(store.Record{}, l.part.wrap(err))
			return
		}
		for n, e := range extents {
			if e.err != nil && n+1 < len(extents) && seq+1 >= extents[n+1].first {
				continue
			}
			if e.err != nil {
				seq++
				if !yield(store.Record{Seq: seq}, l.part.wrap(e.err)) {
					return
				}
				continue
			}
			var more bool
			seq, more = l.piece(n).yieldRange(ctx, seq, e.end, yield)
			if !more {
				return
			}
		}
	}
}

// yieldRange yields the records of the piece after seq and up to end. It returns
// the number of the last one, and whether there may be more to yield.
func (l log) yieldRange(
	ctx context.Context, seq, end uint64, yield func(store.Record, error) bool,
) (last uint64, more bool) {
	for seq < end {
		recs, err := l.page(ctx, seq, end)
		if err != nil {
			yield(store.Record{}, l.part.wrap(err))
			return seq, false
		}
		if len(recs) == 0 {
			break
		}
		for _, r := range recs {
			seq = r.Seq
			var damage error
			if r.Body == nil {
				damage = l.part.wrap(fmt.Errorf("record %d: %w", seq, errChecksum))
			}
			if !yield(r, damage) {
				return seq, false
			}
		}
	}
	return seq, true
}

// An extent says which numbers a piece has.
type extent struct {
	first uint64 // 0 if it is unknown, or there are none
	end   uint64
	err   error // why nothing of the piece can be read
}

func (l log) extents(ctx context.Context) (all []extent, err error) {
	err = l.part.store.view(ctx, func(t *txn) error {
		for n := range l.pieces(t) {
			var e extent
			e.end, e.err = l.piece(n).lastNumber(t)
			e.first = l.piece(n).firstNumber(t)
			all = append(all, e)
		}
		return nil
	})
	return all, err
}

// lastNumber returns the number of the last record of the piece. If the page with
// it cannot be read, the sequence counts.
func (l log) lastNumber(t *txn) (end uint64, err error) {
	defer catch(&err)()
	end, _ = l.part.sequence(t)
	return max(end, l.lastReadable(t)), nil
}

// firstNumber returns the number of the first record, 0 if none can be read.
func (l log) firstNumber(t *txn) (first uint64) {
	var err error
	defer catch(&err)()
	if k, _ := l.part.cursor(t).seek(nil); len(k) == 8 {
		first, _ = decodeNumber(k)
	}
	return first
}

// lastReadable returns the last number in the piece, 0 if the page with it cannot be read.
func (l log) lastReadable(t *txn) (n uint64) {
	var err error
	defer catch(&err)()
	return l.part.lastNumber(t)
}

// maxUnread bounds the records that an unreadable page is taken to have held.
const maxUnread = 1000

// page returns some records after seq and up to end. A damaged record has no Body.
// An unreadable page is taken to have held up to maxUnread damaged records.
func (l log) page(ctx context.Context, seq, end uint64) (recs []store.Record, err error) {
	err = l.part.store.view(ctx, func(t *txn) error {
		l.part.scan(t, encodeNumber(seq+1), func(k, v []byte) bool {
			n, _ := decodeNumber(k)
			if n > end {
				return false
			}
			r := store.Record{Seq: n}
			if body, ok := checksum.Strip(l.part.place, k, v); ok {
				r.Body = append(make([]byte, 0, len(body)), body...)
			}
			recs = append(recs, r)
			return true
		})
		return nil
	})
	if len(recs) > 0 || err == nil || !errors.Is(err, store.ErrDamaged) {
		return recs, ignoreDamage(err) // later records are in the next page
	}
	next, err := l.nextReadable(ctx, seq+1, end)
	next = max(next, seq+2) // the page of a value may be lost while that of its key is not
	for n := max(seq+1, next-min(next, maxUnread)); n < next && err == nil; n++ {
		recs = append(recs, store.Record{Seq: n})
	}
	return recs, err
}

// nextReadable returns the first number after n, which cannot be read, whose page
// can be read, and the number after end if there is none.
func (l log) nextReadable(ctx context.Context, n, end uint64) (uint64, error) {
	for step := uint64(1); ; step *= 2 {
		n = min(n+step, end+1)
		if n > end {
			break
		}
		err := l.part.store.view(ctx, func(t *txn) error {
			l.part.cursor(t).seek(encodeNumber(n))
			return nil
		})
		if err == nil {
			break
		}
		if !errors.Is(err, store.ErrDamaged) {
			return n, err
		}
	}
	return l.firstReadable(ctx, n)
}

// firstReadable returns the lowest number up to n from which on all can be read.
func (l log) firstReadable(ctx context.Context, n uint64) (uint64, error) {
	err := l.part.store.view(ctx, func(t *txn) (err error) {
		defer catch(&err)()
		c := l.part.cursor(t)
		for ; n > 1; n-- {
			c.seek(encodeNumber(n - 1))
		}
		return nil
	})
	return n, ignoreDamage(err)
}

// ignoreDamage returns err unless it says that a page cannot be read.
func ignoreDamage(err error) error {
	if errors.Is(err, store.ErrDamaged) {
		return nil
	}
	return err
}
