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

// maxBatch is how many changes share a commit at most.
const maxBatch = 1024

// An op is one change, and the channel that its caller waits on.
type op struct {
	// do makes the change. It checks everything before it changes anything, so that
	// its failure does not affect the others of its batch. errUnchanged says that
	// there was nothing to change.
	do func(*bbolt.Tx) error
	// onCommit, which may be nil, is called when the change is on disk, in the order
	// of the batch.
	onCommit func()
	// vital says that nothing works properly without this change: if it meets
	// damage, the Store stops.
	vital bool
	// afterFault makes the change in another way if do has met damage; may be nil.
	afterFault func(*bbolt.Tx) error
	done       chan error
}

var errUnchanged = errors.New("nothing to change")

// write has the writer do the change and returns when it is on disk. It waits for
// that even if ctx ends, so that the caller knows what became of the change.
func (s *Store) write(ctx context.Context, do func(*bbolt.Tx) error, onCommit func()) error {
	return s.submit(ctx, &op{do: do, onCommit: onCommit})
}

// submit is write for any op.
func (s *Store) submit(ctx context.Context, o *op) error {
	if err := s.beginCall(ctx); err != nil {
		return err
	}
	defer s.calls.Done()
	o.done = make(chan error, 1)
	s.ops <- o
	store.Queued(ctx)
	return <-o.done
}

// run is the writer. Changes that arrive while it commits share the next commit. No
// change waits for others.
func (s *Store) run() {
	defer close(s.ended)
	debug.SetPanicOnFault(true)
	var batch []*op
	for o := range s.ops {
		runtime.Gosched() // lets callers that the last commit woke join
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
	s.commitAll(batch, errs)
	for i, o := range batch {
		switch {
		case errs[i] == nil && o.onCommit != nil:
			o.onCommit()
		case errors.Is(errs[i], errUnchanged):
			errs[i] = nil
		}
		o.done <- errs[i]
	}
}

// commitAll makes all changes of batch in one transaction, and sets the error of each.
// A change that meets a page that cannot be read is left out, and the others are made
// without it (P21). A vital one stops the Store.
func (s *Store) commitAll(batch []*op, errs []error) {
	faulty, err := s.attempt(batch, errs)
	switch {
	case err == nil:
		return
	case !errors.Is(err, errUnreadable), s.broken != nil:
		for i := range errs { // an op may have failed because of another that was not kept
			errs[i] = err
		}
		return
	case len(batch) > 1 && faulty < 0: // in the commit: it is unknown whose page it was
		for i := range batch {
			s.commitAll(batch[i:i+1], errs[i:i+1])
		}
		return
	case len(batch) > 1:
		s.commitWithout(faulty, batch, errs)
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

// commitWithout commits one op of batch by itself, and the others without it.
func (s *Store) commitWithout(faulty int, batch []*op, errs []error) {
	s.commitAll(batch[faulty:faulty+1], errs[faulty:faulty+1])
	rest := slices.Concat(batch[:faulty], batch[faulty+1:])
	others := make([]error, len(rest))
	s.commitAll(rest, others)
	copy(errs, others[:faulty])
	copy(errs[faulty+1:], others[faulty:])
}

// errUnreadable says that a page cannot be read.
var errUnreadable = fmt.Errorf("%w: unreadable page", store.ErrDamaged)

// attempt makes the changes of batch in one transaction, and sets the errors of
// single ops. It returns an error if no change was kept. faulty is the op that met an
// errUnreadable, or -1 if there was none or it may have been any.
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
			s.suspectFreelist = s.suspectFreelist || faulty < 0
			err = fmt.Errorf("%w: %v", errUnreadable, r)
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
	return -1, s.commitTx(tx)
}

// commitTx commits tx and updates the mark now and then.
func (s *Store) commitTx(tx *bbolt.Tx) error {
	id := tx.ID()
	began := time.Now()
	if err := tx.Commit(); err != nil {
		return s.commitError(err, id)
	}
	if s.committed != nil {
		s.committed(time.Since(began))
	}
	s.wrote = true
	s.id.tx = id
	if time.Since(s.marked) <= markInterval {
		return nil
	}
	if err := s.mark(nil, false); err != nil { // the earlier mark is still true
		s.log.Debug("mark of the store not written", "err", err)
	}
	return nil
}

func rollBack(tx *bbolt.Tx) (err error) {
	defer catch(&err)()
	return tx.Rollback()
}

// markInterval is how often the mark is updated after commits.
const markInterval = time.Minute

// commitError returns the error of the failed commit of transaction id. A full disk
// may get better. After any other failure it is unknown what is on disk: the Store
// stops writing until it is opened again, and goes on reading.
func (s *Store) commitError(err error, id int) error {
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

// lastID returns the number of the transaction that readers see.
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

// isFull reports whether the disk is full. It checks the text, too, because bbolt does
// not wrap the errors of growing the file.
func isFull(err error) bool {
	for _, e := range []syscall.Errno{syscall.ENOSPC, syscall.EDQUOT, syscall.EFBIG} {
		if errors.Is(err, e) || strings.HasSuffix(err.Error(), e.Error()) {
			return true
		}
	}
	return false
}

// catch turns this goroutine's faults in the mapped file into panics, and a panic into
// the error ErrDamaged. Use it as in: defer catch(&err)()
func catch(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if r := recover(); r != nil {
			*err = fmt.Errorf("%w: %v", store.ErrDamaged, r)
		}
	}
}
