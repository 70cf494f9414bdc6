package mem

import (
	"bytes"
	"context"
	"iter"

	"parley/store"
)

type log struct {
	store *Store
	gone  uint64 // records forgotten: the number of recs[0], less one
	recs  [][]byte
}

func (l *log) Append(ctx context.Context, recs ...[]byte) (uint64, error) {
	leave, err := l.store.enter(ctx)
	if err != nil {
		return 0, err
	}
	defer leave()
	for _, r := range recs {
		l.recs = append(l.recs, bytes.Clone(r))
	}
	return l.gone + uint64(len(l.recs)), nil
}

func (l *log) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		recs, seq, err := l.since(ctx, seq)
		if err != nil {
			yield(store.Record{}, err)
			return
		}
		for i, body := range recs {
			if !yield(store.Record{Seq: seq + uint64(i) + 1, Body: bytes.Clone(body)}, nil) {
				return
			}
		}
	}
}

// since returns the records after seq, and the number before the first of them.
func (l *log) since(ctx context.Context, seq uint64) ([][]byte, uint64, error) {
	leave, err := l.store.enter(ctx)
	if err != nil {
		return nil, 0, err
	}
	defer leave()
	seq = max(seq, l.gone)
	skip := min(seq-l.gone, uint64(len(l.recs)))
	return l.recs[skip:], seq, nil // records never change: trimming and appending leave this slice as it is
}

func (l *log) Trim(ctx context.Context, seq uint64) error {
	leave, err := l.store.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	if seq > l.gone {
		n := min(seq-l.gone, uint64(len(l.recs)))
		l.gone += n
		l.recs = l.recs[n:]
	}
	return nil
}
