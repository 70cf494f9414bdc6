package bolt

import (
	"bytes"
	"context"
	"errors"
	"os"
	"slices"
	"time"

	"parley/store"
	"parley/store/bolt/pages"
)

// Verify reads everything in the Store while others use it, and calls report for each
// damaged entry or group of entries. What the log has is moved into the file first. It
// reads at most bytesPerSecond, in many short transactions, so that nobody waits for it.
// After an error it is incomplete. After the first complete one, an unclean end is not
// taken to come from something that nobody has read: see Open.
func (s *Store) Verify(ctx context.Context, bytesPerSecond int, report func(where string)) error {
	if err := s.submit(ctx, &op{alone: s.writer.flush}); err != nil && !errors.Is(err, store.ErrFull) {
		return err
	}
	v := verifier{store: s, report: report}
	for more := true; more; {
		if err := v.readSome(ctx); err != nil {
			return err
		}
		more = v.from != nil
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(v.size) * time.Second / time.Duration(bytesPerSecond)):
		}
	}
	return s.submit(ctx, &op{alone: s.writer.noteRead})
}

// noteRead notes that all of the file was read.
func (w *writer) noteRead() error {
	if w.unread == 0 {
		return nil
	}
	w.unread = 0
	return w.mark(nil, false)
}

// A verifier reads a file in steps, each of them in a transaction of its own: as long as
// that is open, the pages that it sees are not written again.
type verifier struct {
	store  *Store
	report func(where string)
	from   [][]byte // the entry at which the next step begins; nil: all was read
	size   int      // what the last step has read, in bytes
}

// errPause ends a step.
var errPause = errors.New("the rest is read later")

// readSome reads the next entries, and reports what is damaged when the transaction has ended.
func (v *verifier) readSome(ctx context.Context) error {
	var found []string
	add := func(where string) {
		if !slices.Contains(found, where) {
			found = append(found, where)
		}
	}
	err := v.store.readCommit(ctx, func(c *pages.Commit) error { return v.walk(c, add) })
	for _, where := range found {
		v.report(where)
	}
	return err
}

// readCommit has do read the file as one of its last two transactions left it.
func (s *Store) readCommit(ctx context.Context, do func(*pages.Commit) error) error {
	for {
		err := s.view(ctx, func(t *txn) error {
			f, err := os.Open(s.db.path)
			if err != nil {
				return err
			}
			defer f.Close()
			c, err := pages.Find(f, t.file.ID())
			if err != nil {
				return err
			}
			return do(c)
		})
		if !errors.Is(err, pages.ErrPassed) {
			return err
		}
	}
}

// walk reads the entries of c from v.from on, until they are enough for one step.
func (v *verifier) walk(c *pages.Commit, add func(where string)) error {
	from := v.from
	v.from = nil
	v.size = 0
	err := c.Read(pages.Walk{
		From: from,
		Value: func(names [][]byte, key, val []byte) error {
			if v.size > pageSize {
				v.from = clonePath(names, key)
				return errPause
			}
			v.size += len(key) + len(val)
			if where := damageAt(names, key, val); where != "" {
				add(where)
			}
			return nil
		},
		Damaged: func(names [][]byte, _ error) { add(describePlace(names)) },
	})
	if errors.Is(err, errPause) {
		return nil
	}
	return err
}

func clonePath(names [][]byte, key []byte) [][]byte {
	var path [][]byte
	for _, name := range names {
		path = append(path, bytes.Clone(name))
	}
	return append(path, bytes.Clone(key))
}

// describePlace names a bucket of the file for people.
func describePlace(names [][]byte) string {
	switch len(names) {
	case 0:
		return "the list of all buckets"
	case 1:
		return string(names[0])
	}
	return describeEntry(names[0], names[1], nil)
}
