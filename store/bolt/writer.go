package bolt

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
)

// maxBatch is how many changes at most share one commit.
const maxBatch = 1024

// An op is one change, and whoever waits for it.
type op struct {
	// do makes the change. It looks before it changes anything, so that when
	// it fails the others of its batch are not disturbed. errSame says that
	// there was nothing to change.
	do func(*bbolt.Tx) error
	// then runs when the change is on disk; those of a batch in its order.
	then func()
	// vital says that without this change nothing goes on as it should: when it
	// comes upon damage, the Store stops.
	vital bool
	// afterFault makes the change in another way if do has come upon damage;
	// nil: there is none.
	afterFault func(*bbolt.Tx) error
	done       chan error
}

var errSame = errors.New("nothing to change")

// write has do done by the writer and returns when it is on disk. It waits for
// that also when ctx ends, so that the caller knows what became of the change.
func (s *Store) write(ctx context.Context, do func(*bbolt.Tx) error, then func()) error {
	return s.submit(ctx, &op{do: do, then: then})
}

// submit is write of o.
func (s *Store) submit(ctx context.Context, o *op) error {
	if err := s.enter(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	o.done = make(chan error, 1)
	s.ops <- o
	store.Queued(ctx)
	return <-o.done
}

// run is the writer: whoever waits for the disk while it commits shares the
// next commit. Nobody waits for company.
func (s *Store) run() {
	defer close(s.ended)
	debug.SetPanicOnFault(true)
	var batch []*op
	for o := range s.ops {
		runtime.Gosched() // let those that the last commit woke come along
		batch = append(batch[:0], o)
		for len(batch) < maxBatch && len(s.ops) > 0 {
			batch = append(batch, <-s.ops)
		}
		s.commit(batch)
		clear(batch)
	}
}

func (s *Store) commit(batch []*op) {
	errs := make([]error, len(batch))
	s.try(batch, errs)
	for i, o := range batch {
		switch {
		case errs[i] == nil && o.then != nil:
			o.then()
		case errors.Is(errs[i], errSame):
			errs[i] = nil
		}
		o.done <- errs[i]
	}
}

// try makes all changes of batch in one transaction; errs takes what came of
// each. A change that comes upon a page that cannot be read is left out, and
// the others are made without it (P21). One that others rely on stops the Store.
func (s *Store) try(batch []*op, errs []error) {
	faulty, err := s.attempt(batch, errs)
	switch {
	case err == nil:
		return
	case !errors.Is(err, errFault), s.broken != nil:
		for i := range errs { // an op may have failed because of another that was not kept
			errs[i] = err
		}
		return
	case len(batch) > 1 && faulty < 0: // in the commit: nobody knows whose page it was
		for i := range batch {
			s.try(batch[i:i+1], errs[i:i+1])
		}
		return
	case len(batch) > 1:
		s.try(batch[faulty:faulty+1], errs[faulty:faulty+1])
		rest := slices.Concat(batch[:faulty], batch[faulty+1:])
		others := make([]error, len(rest))
		s.try(rest, others)
		copy(errs, others[:faulty])
		copy(errs[faulty+1:], others[faulty:])
		return
	case batch[0].vital:
		err = s.stop(err)
	case batch[0].afterFault != nil:
		if _, err = s.attempt([]*op{{do: batch[0].afterFault}}, errs); err == nil {
			return
		}
	}
	errs[0] = err
}

// errFault says that a page cannot be read.
var errFault = fmt.Errorf("%w: unreadable page", store.ErrDamaged)

// attempt makes the changes of batch in one transaction. It returns an error
// when none was kept, and which op is to blame for an errFault, -1 if none or
// all may be; errs takes those of single ops.
func (s *Store) attempt(batch []*op, errs []error) (faulty int, err error) {
	if s.broken != nil {
		return -1, s.broken
	}
	tx, err := s.db.Begin(true)
	if err != nil {
		return -1, err
	}
	faulty = -1
	defer func() {
		if r := recover(); r != nil {
			s.suspect = s.suspect || faulty < 0
			err = fmt.Errorf("%w: %v", errFault, r)
			if e := rollBack(tx); e != nil {
				err = s.stop(errors.Join(err, e))
			}
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	changed := false
	for i, o := range batch {
		faulty = i
		errs[i] = o.do(tx)
		changed = changed || errs[i] == nil
	}
	faulty = -1
	if !changed {
		return -1, tx.Rollback()
	}
	id, began := tx.ID(), time.Now()
	if err := tx.Commit(); err != nil {
		return -1, s.failed(err, id)
	}
	if s.commits != nil {
		s.commits(time.Since(began))
	}
	s.wrote, s.id.tx = true, id
	if time.Since(s.marked) > markEvery {
		if err := s.mark(nil, false); err != nil { // the one before it is true, too
			s.log.Debug("mark of the store not written", "err", err)
		}
	}
	return -1, nil
}

func rollBack(tx *bbolt.Tx) (err error) {
	defer catch(&err)()
	return tx.Rollback()
}

// markEvery is how often the mark is told of new commits.
const markEvery = time.Minute

// failed tells a full disk, which may get better, from every other failure to
// commit the transaction id, after which nobody knows what the disk holds: the
// Store then stops writing until it is opened again, and goes on reading.
func (s *Store) failed(err error, id int) error {
	if isFull(err) && s.lastID() < id {
		return fmt.Errorf("write store: %w: %w", store.ErrFull, err)
	}
	return s.stop(err)
}

func (s *Store) stop(err error) error {
	s.broken = fmt.Errorf("store stopped writing, restart to go on: %w", err)
	if s.stopped != nil {
		s.stopped(s.broken)
	}
	return s.broken
}

// lastID is the transaction that readers see.
func (s *Store) lastID() (id int) {
	err := s.db.View(func(tx *bbolt.Tx) error {
		id = tx.ID()
		return nil
	})
	if err != nil {
		return int(^uint(0) >> 1)
	}
	return id
}

// isFull looks at the text too: bbolt does not wrap the errors of growing the file.
func isFull(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// catch makes this goroutine's faults in the mapped file panics, and a panic
// the error ErrDamaged. Use: defer catch(&err)().
func catch(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%w: %v", store.ErrDamaged, r)
		}
	}
}
