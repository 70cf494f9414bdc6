// Package handle keeps a file of bbolt open for as long as somebody uses it.
package handle

import (
	"sync/atomic"

	"go.etcd.io/bbolt"
)

// A File is an open bbolt file. It is closed when nobody uses it any more: a compaction
// may put another one in its place while transactions go on in this one.
type File struct {
	DB     *bbolt.DB
	users  atomic.Int64 // the transactions that only read, and one for the database
	closed chan struct{}
	err    error // of closing it
	// report is told err if nobody waits for it; nil: somebody does.
	report func(err error)
}

// New returns db with the database as its only user.
func New(db *bbolt.DB) *File {
	f := &File{DB: db, closed: make(chan struct{})}
	f.users.Store(1)
	return f
}

// Acquire makes the caller a user of f, unless f has none any more.
func (f *File) Acquire() bool {
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

// Release ends a use of f. The last user closes it.
func (f *File) Release() {
	if f.users.Add(-1) > 0 {
		return
	}
	if f.err = f.DB.Close(); f.err != nil && f.report != nil {
		f.report(f.err)
	}
	close(f.closed)
}

// Retire ends the use of f by the database, and leaves f to who reads in it still. report is
// told if it cannot be closed then.
func (f *File) Retire(report func(error)) {
	f.report = report
	f.Release()
}

// Closed is closed when the file is.
func (f *File) Closed() <-chan struct{} { return f.closed }

// Close ends the use of f by the database, and waits for the others.
func (f *File) Close() error {
	f.Release()
	<-f.closed
	return f.err
}

// Begin begins a transaction in f that only reads, and makes it a user of f. It is not ok
// if f was closed meanwhile.
func (f *File) Begin() (tx *bbolt.Tx, ok bool, err error) {
	if !f.Acquire() {
		return nil, false, nil
	}
	if tx, err = f.DB.Begin(false); err != nil {
		f.Release()
	}
	return tx, true, err
}

// End ends a transaction that Begin has begun.
func (f *File) End(tx *bbolt.Tx) error {
	err := tx.Rollback()
	f.Release()
	return err
}
