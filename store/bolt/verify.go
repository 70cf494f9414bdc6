package bolt

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Verify reads everything in the Store, while others use it, and calls report
// for each entry, or group of entries, that is damaged. It reads at most
// bytesPerSecond, in many short transactions, so that nobody waits for it. An
// error says that it did not come to its end.
func (s *Store) Verify(ctx context.Context, bytesPerSecond int, report func(where string)) error {
	v := verifier{store: s, rate: bytesPerSecond, report: report}
	tops, err := v.names(ctx, func(tx *bbolt.Tx) *bbolt.Cursor { return tx.Cursor() }, "the list of all there is")
	for _, top := range tops {
		if err != nil {
			return err
		}
		err = v.verifyTop(ctx, top)
	}
	return err
}

type verifier struct {
	store  *Store
	rate   int
	report func(where string)
}

func (v *verifier) verifyTop(ctx context.Context, top []byte) error {
	parts, err := v.names(ctx, func(tx *bbolt.Tx) *bbolt.Cursor {
		if b := tx.Bucket(top); b != nil {
			return b.Cursor()
		}
		return nil
	}, string(top))
	for _, name := range parts {
		if err != nil {
			return err
		}
		err = v.verifyPart(ctx, part{store: v.store, top: string(top), name: string(name[1:]), place: placeOf(top, name)})
	}
	return err
}

// names returns the keys of buckets that a cursor yields. What cannot be read
// is reported under the name what.
func (v *verifier) names(ctx context.Context, cursor func(*bbolt.Tx) *bbolt.Cursor, what string) (names [][]byte, err error) {
	for next := []byte{}; next != nil; {
		from, size := next, 0
		err := v.store.view(ctx, func(tx *bbolt.Tx) error {
			next = nil
			c := cursor(tx)
			if c == nil {
				return nil
			}
			for k, _ := c.Seek(from); k != nil; k, _ = c.Next() {
				if size += len(k); size > pageSize/16 {
					next = bytes.Clone(k)
					return nil
				}
				names = append(names, bytes.Clone(k))
			}
			return nil
		})
		switch {
		case errors.Is(err, store.ErrDamaged):
			v.report(what)
			return names, nil
		case err != nil:
			return names, err
		}
		if err := v.rest(ctx, size); err != nil {
			return names, err
		}
	}
	return names, nil
}

// verifyPart reads the entries of p. It skips those of a page that cannot be read.
func (v *verifier) verifyPart(ctx context.Context, p part) error {
	top, name := []byte(p.top), label(p.name)
	for next := []byte{}; next != nil; {
		from, size := next, 0
		var damaged [][]byte
		err := v.store.view(ctx, func(tx *bbolt.Tx) error {
			next = p.scan(tx, from, func(k, sealed []byte) bool {
				if _, ok := unseal(p.place, k, sealed); !ok {
					damaged = append(damaged, bytes.Clone(k))
				}
				size += len(k) + len(sealed)
				return true
			})
			return nil
		})
		for _, k := range damaged {
			v.report(describe(top, name, k))
		}
		switch {
		case errors.Is(err, store.ErrDamaged):
			v.report(describe(top, name, nil))
			return nil
		case err != nil:
			return err
		}
		if err := v.rest(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// rest waits as long as reading size bytes may take.
func (v *verifier) rest(ctx context.Context, size int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(size) * time.Second / time.Duration(v.rate)):
		return nil
	}
}
