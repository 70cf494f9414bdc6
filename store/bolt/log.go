package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log { return log{part: s.part("log", name)} }

// A log is in one piece, unless damage has broken it: if the end of a piece cannot
// be read, nothing can be added to it, and the log goes on in the next piece.
type log struct{ part part }

// laterPieces begins the names of the top buckets with the later pieces of logs.
const laterPieces = "log+"

// hasNumbers reports whether the keys in a top bucket are numbers.
func hasNumbers(top string) bool {
	return top == "log" || strings.HasPrefix(top, laterPieces) || top == "queue" || top == "damaged"
}

// piece returns piece n of the log, counted from 0.
func (l log) piece(n int) log {
	top := "log"
	if n > 0 {
		top = fmt.Sprintf("%s%d", laterPieces, n)
	}
	return log{part: l.part.store.part(top, l.part.name)}
}

// pieces counts the pieces of the log, at least one. A piece counts as existing if
// a fault hides whether it does.
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
	return l.part.bucket(tx) != nil
}

// unknownEnd is the distance between the numbers of one piece and those of the
// next if it is unknown where the first one ended.
const unknownEnd = 1 << 40

// Append implements [store.Log].
func (l log) Append(ctx context.Context, recs ...[]byte) (seq uint64, err error) {
	err = l.part.store.submit(ctx, &op{
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
		return 0, l.part.wrap(err)
	}
	return seq, nil
}

// addPiece adds recs in a new piece of the log.
func (l log) addPiece(tx *bbolt.Tx, recs [][]byte) (seq uint64, err error) {
	n := l.pieces(tx)
	end, err := l.piece(n - 1).lastNumber(tx)
	if err != nil {
		end = uint64(n) * unknownEnd
	}
	next := l.piece(n)
	in, err := next.part.createBucket(tx)
	if err != nil {
		return 0, err
	}
	if err := in.SetSequence(end); err != nil {
		return 0, err
	}
	if err := l.part.store.writeFormat(tx, formatOfPieces); err != nil {
		return 0, err
	}
	l.part.store.log.Error("the end of a log cannot be read, and what comes next is kept elsewhere",
		"log", l.part.name, "after", end)
	return next.add(tx, recs)
}

// fillPercent is how full pages get: records are only ever added at the end.
const fillPercent = 0.9

// add adds recs at the end of the piece.
func (l log) add(tx *bbolt.Tx, recs [][]byte) (seq uint64, err error) {
	in, err := l.part.createBucket(tx)
	if err != nil {
		return 0, err
	}
	in.FillPercent = fillPercent
	seq = lastNumberIn(in)
	for _, r := range recs {
		seq++
		if err := l.part.put(tx, encodeNumber(seq), r); err != nil {
			return 0, err
		}
	}
	return seq, in.SetSequence(seq)
}

// lastNumberIn returns the number given last in b. Numbers that are there count
// more than the sequence, which has no checksum. (Cursor.Last would never return in
// a transaction that has emptied all of several pages.)
func lastNumberIn(b *bbolt.Bucket) uint64 {
	n := b.Sequence()
	c := b.Cursor()
	for k, _ := c.Seek(encodeNumber(n + 1)); len(k) == 8; k, _ = c.Next() {
		n, _ = decodeNumber(k)
	}
	return n
}

// Trim implements [store.Log]. It works in several commits, the oldest records
// first. Records that cannot be read cannot be removed either: the others are.
func (l log) Trim(ctx context.Context, seq uint64) error {
	extents, err := l.extents(ctx)
	for n := range extents {
		err = errors.Join(err, l.piece(n).trim(ctx, seq))
	}
	return l.part.wrap(err)
}

func (l log) trim(ctx context.Context, seq uint64) error {
	for more := true; more; {
		err := l.part.store.write(ctx, func(tx *bbolt.Tx) (err error) {
			more, err = l.trimPage(tx, seq)
			return err
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// trimPage removes some records up to seq, and reports whether there may be more.
func (l log) trimPage(tx *bbolt.Tx, seq uint64) (more bool, err error) {
	var old [][]byte
	next := l.part.scan(tx, encodeNumber(0), func(k, _ []byte) bool {
		if bytes.Compare(k, encodeNumber(seq)) > 0 {
			return false
		}
		old = append(old, bytes.Clone(k))
		return true
	})
	if len(old) == 0 {
		return next != nil, errUnchanged
	}
	for _, k := range old {
		if err := l.part.delete(tx, k); err != nil {
			return next != nil, err
		}
	}
	return next != nil, nil
}
