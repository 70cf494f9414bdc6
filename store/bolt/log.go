package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"parley/store"
)

// Log implements [store.Store].
func (s *Store) Log(name string) store.Log { return log{part: s.part("log", name)} }

// A log is in one piece, unless damage has broken it: if the end of a piece cannot
// be read, nothing can be added to it, and the log goes on in the next piece.
type log struct{ part part }

// laterPieces begins the names of the top buckets with the later pieces of logs.
const laterPieces = "log+"

// isLog reports whether a top bucket has logs.
func isLog(top string) bool { return top == "log" || strings.HasPrefix(top, laterPieces) }

// hasNumbers reports whether the keys in a top bucket are numbers.
func hasNumbers(top string) bool { return isLog(top) || top == "queue" || top == "damaged" }

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
func (l log) pieces(t *txn) int {
	n := 1
	for l.piece(n).mayExist(t) {
		n++
	}
	return n
}

func (l log) mayExist(t *txn) (may bool) {
	defer func() {
		if recover() != nil {
			may = true
		}
	}()
	return l.part.exists(t)
}

// unknownEnd is the distance between the numbers of one piece and those of the
// next if it is unknown where the first one ended.
const unknownEnd = 1 << 40

// Append implements [store.Log].
func (l log) Append(ctx context.Context, after uint64, recs ...[]byte) (seq uint64, err error) {
	if len(recs) == 0 {
		err = l.part.store.view(ctx, func(t *txn) error {
			seq, _ = l.end(t)
			return checkEnd(after, seq)
		})
	} else {
		err = l.part.store.submit(ctx, &op{
			do: func(t *txn) (err error) {
				seq, err = l.piece(l.pieces(t)-1).add(t, after, recs)
				return err
			},
			afterFault: func(t *txn) (err error) {
				seq, err = l.addPiece(t, after, recs)
				return err
			},
		})
	}
	if err != nil {
		return 0, l.part.wrap(err)
	}
	return seq, nil
}

// checkEnd returns ErrConflict unless what goes after that number goes after end.
func checkEnd(after, end uint64) error {
	if after != store.Any && after != end {
		return store.ErrConflict
	}
	return nil
}

// end returns the number of the last record, as far as that can be read, and the number of pieces.
func (l log) end(t *txn) (end uint64, pieces int) {
	pieces = l.pieces(t)
	end, err := l.piece(pieces - 1).lastNumber(t)
	if err != nil {
		end = uint64(pieces) * unknownEnd
	}
	return end, pieces
}

// addPiece adds recs in a new piece of the log.
func (l log) addPiece(t *txn, after uint64, recs [][]byte) (seq uint64, err error) {
	end, n := l.end(t)
	next := l.piece(n)
	if err := next.part.setSequence(t, end); err != nil {
		return 0, err
	}
	l.part.store.log.Error("the end of a log cannot be read, and what comes next is kept elsewhere",
		"log", l.part.name, "after", end)
	return next.add(t, after, recs)
}

// fillPercent is how full pages get: records are only ever added at the end.
const fillPercent = 0.9

// add adds recs at the end of the piece.
func (l log) add(t *txn, after uint64, recs [][]byte) (seq uint64, err error) {
	seq = l.part.lastNumber(t)
	if err := checkEnd(after, seq); err != nil {
		return 0, err
	}
	for _, r := range recs {
		seq++
		if err := l.part.put(t, encodeNumber(seq), r); err != nil {
			return 0, err
		}
	}
	return seq, l.part.setSequence(t, seq)
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
		err := l.part.store.write(ctx, func(t *txn) (err error) {
			more, err = l.trimPage(t, seq)
			return err
		}, nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// trimPage removes some records up to seq, and reports whether there may be more.
func (l log) trimPage(t *txn, seq uint64) (more bool, err error) {
	var old [][]byte
	next := l.part.scan(t, encodeNumber(0), func(k, _ []byte) bool {
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
		if err := l.part.delete(t, k); err != nil {
			return next != nil, err
		}
	}
	return next != nil, nil
}
