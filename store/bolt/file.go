package bolt

import (
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// A file is an open bbolt file. It is closed when nobody uses it any more: a compaction
// may put another one in its place while transactions go on in this one.
type file struct {
	bolt   *bbolt.DB
	users  atomic.Int64 // the transactions that only read, and one for the database
	closed chan struct{}
	err    error // of closing it
	// report is told err if nobody waits for it; nil: somebody does.
	report func(err error)
}

func newFile(db *bbolt.DB) *file {
	f := &file{bolt: db, closed: make(chan struct{})}
	f.users.Store(1)
	return f
}

// acquire makes the caller a user of f, unless f has none any more.
func (f *file) acquire() bool {
	for {
		n := f.users.Load()
		if n == 0 {
			return false
		}
		if f.users.CompareAndSwap(n, n+1) {
			return true
		}
	}
}

// release ends a use of f. The last user closes it.
func (f *file) release() {
	if f.users.Add(-1) > 0 {
		return
	}
	if f.err = f.bolt.Close(); f.err != nil && f.report != nil {
		f.report(f.err)
	}
	close(f.closed)
}

// retire ends the use of f by the database, and leaves f to who reads in it still. report is
// told if it cannot be closed then.
func (f *file) retire(report func(error)) {
	f.report = report
	f.release()
}

// close ends the use of f by the database, and waits for the others.
func (f *file) close() error {
	f.release()
	<-f.closed
	return f.err
}

// begin begins a transaction in f that only reads, and makes it a user of f. It is not ok
// if f was closed meanwhile.
func (f *file) begin() (tx *bbolt.Tx, ok bool, err error) {
	if !f.acquire() {
		return nil, false, nil
	}
	if tx, err = f.bolt.Begin(false); err != nil {
		f.release()
	}
	return tx, true, err
}

// end ends a transaction that begin has begun.
func (f *file) end(tx *bbolt.Tx) error {
	err := tx.Rollback()
	f.release()
	return err
}
