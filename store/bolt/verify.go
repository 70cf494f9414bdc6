package bolt

import (
	"bytes"
	"context"
	"errors"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

// Verify reads everything in the Store while others use it, and calls report for each
// damaged entry or group of entries. It reads at most bytesPerSecond, in many short
// transactions, so that nobody waits for it. After an error it is incomplete.
func (s *Store) Verify(ctx context.Context, bytesPerSecond int, report func(where string)) error {
	v := verifier{store: s, rate: bytesPerSecond, report: report}
	tops, err := v.names(ctx, func(tx *bbolt.Tx) *bbolt.Cursor { return tx.Cursor() }, "the list of all buckets")
	for _, top := range tops {
		if err != nil {
			return err
		}
		err = v.verifyTop(ctx, top)
	}
	return err
}

// maxNames bounds the names that are read in one transaction.
const maxNames = pageSize / 16 // bytes

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
		err = v.verifyPart(ctx, v.store.part(string(top), decodeKey(name)))
	}
	return err
}

// names returns the keys that a cursor yields. If they cannot be read, that is
// reported under the name what.
func (v *verifier) names(
	ctx context.Context, cursor func(*bbolt.Tx) *bbolt.Cursor, what string,
) (names [][]byte, err error) {
	for next := []byte{}; next != nil; {
		from := next
		size := 0
		err := v.store.view(ctx, func(tx *bbolt.Tx) error {
			next = nil
			c := cursor(tx)
			if c == nil {
				return nil
			}
			for k, _ := c.Seek(from); k != nil; k, _ = c.Next() {
				size += len(k)
				if size > maxNames {
					next = bytes.Clone(k)
					return nil
				}
				names = append(names, bytes.Clone(k))
			}
			return nil
		})
		if errors.Is(err, store.ErrDamaged) {
			v.report(what)
			return names, nil
		}
		if err != nil {
			return names, err
		}
		if err := v.throttle(ctx, size); err != nil {
			return names, err
		}
	}
	return names, nil
}

// verifyPart reads the entries of p, up to a page that cannot be read.
func (v *verifier) verifyPart(ctx context.Context, p part) error {
	top := []byte(p.top)
	name := encodeKey(p.name)
	for next := []byte{}; next != nil; {
		from := next
		size := 0
		var damaged [][]byte
		err := v.store.view(ctx, func(tx *bbolt.Tx) error {
			next = p.scan(tx, from, func(k, stored []byte) bool {
				if _, ok := stripChecksum(p.place, k, stored); !ok {
					damaged = append(damaged, bytes.Clone(k))
				}
				size += len(k) + len(stored)
				return true
			})
			return nil
		})
		for _, k := range damaged {
			v.report(describeEntry(top, name, k))
		}
		if errors.Is(err, store.ErrDamaged) {
			v.report(describeEntry(top, name, nil))
			return nil
		}
		if err != nil {
			return err
		}
		if err := v.throttle(ctx, size); err != nil {
			return err
		}
	}
	return nil
}

// throttle waits as long as reading size bytes may take.
func (v *verifier) throttle(ctx context.Context, size int) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Duration(size) * time.Second / time.Duration(v.rate)):
		return nil
	}
}
