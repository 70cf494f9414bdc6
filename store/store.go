// Package store defines what Parley asks of a database: it keeps what must survive a
// restart.
//
// The interfaces ask for no more than both bbolt and a distributed engine can
// give: single-key compare-and-set, append-only logs, at-least-once queues and
// named locks. There are no transactions across keys. Whatever a call has
// acknowledged is on disk, unless it was [Deferred]: a power cut does not undo it.
//
// All methods may be called concurrently.
package store

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Errors every Store returns.
var (
	ErrNotFound = errors.New("not found")
	ErrConflict = errors.New("changed by someone else")
	ErrFull     = errors.New("disk full")       // nothing was written; the same call may succeed later (P19)
	ErrDamaged  = errors.New("damaged on disk") // the value does not match its checksum
	ErrClosed   = errors.New("store is closed")
)

// A Store consists of buckets, logs and queues, each created on first use. Names may
// contain any bytes.
type Store interface {
	Bucket(name string) Bucket
	Log(name string) Log
	Queue(name string) Queue

	// Lock locks name, on all machines that share the Store. It waits until the
	// lock is free or ctx ends.
	Lock(ctx context.Context, name string) (Lease, error)

	// Close ends the Store: calls under way finish, later ones return ErrClosed.
	Close() error
}

// A Bucket maps keys to small values.
type Bucket interface {
	// Get returns the value of key and its revision, ErrNotFound or ErrDamaged.
	Get(ctx context.Context, key string) (val []byte, rev uint64, err error)
	// Put sets key to val and returns its new revision. It returns ErrConflict
	// unless rev is key's revision: 0 for a new key, Any to overwrite.
	Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error)
	// Delete removes key, which may be absent.
	Delete(ctx context.Context, key string) error
	// Keys yields the keys that begin with prefix, in order. The caller may
	// write to the Store meanwhile.
	Keys(ctx context.Context, prefix string) iter.Seq2[string, error]
}

// Any is the revision of a key, or the number of a record, that matches whatever is there.
const Any = ^uint64(0)

// DeleteAll removes all keys of b.
func DeleteAll(ctx context.Context, b Bucket) error {
	for key, err := range b.Keys(ctx, "") {
		if err != nil {
			return err
		}
		if err := b.Delete(ctx, key); err != nil {
			return err
		}
	}
	return nil
}

// A Log is an append-only list of records, numbered from 1.
type Log interface {
	// Append adds recs after the record numbered after, all or none, and returns the
	// number of the last. It returns ErrConflict, and adds nothing, unless after is the
	// number of the last record that was ever appended (0: none was), or Any. Without
	// recs it writes nothing, and returns the number of the last record that was ever
	// appended, 0 if none was.
	Append(ctx context.Context, after uint64, recs ...[]byte) (seq uint64, err error)
	// Since yields the records after seq, oldest first, up to the end as it is
	// when reading begins. A damaged record is yielded with its number and
	// ErrDamaged, and the next ones follow. The caller may write to the Store
	// meanwhile, and what it appends is not yielded.
	Since(ctx context.Context, seq uint64) iter.Seq2[Record, error]
	// Trim removes the records up to and including seq. Numbers are not used again.
	Trim(ctx context.Context, seq uint64) error
}

// LastNumber returns the number of the last record that was ever appended to l, also if
// it was trimmed, and 0 if none was. Whoever reads l, to append to what was read, asks
// before: what others append meanwhile is then read, or a conflict.
func LastNumber(ctx context.Context, l Log) (uint64, error) { return l.Append(ctx, Any) }

// A Record is one entry of a Log.
type Record struct {
	Seq  uint64
	Body []byte
}

// A Queue hands each piece of work to one worker, at least once.
type Queue interface {
	// Push adds work. Work whose id was pushed in the last 48 hours is dropped,
	// even if it is done already.
	Push(ctx context.Context, id string, body []byte) error
	// Pull waits for the oldest work that nobody holds, or for ctx to end.
	// Work is held until Done or Later is called or the process ends.
	Pull(ctx context.Context) (Item, error)
	// Len counts the work that is not done, held or not.
	Len(ctx context.Context) (int, error)
}

// An Item is a piece of work in the hands of one worker.
type Item struct {
	ID    string
	Body  []byte
	Again bool // it was in the queue when the Store was opened: a worker may have begun it before

	// Done removes the work. It is safe to call twice.
	Done func(context.Context) error
	// Later returns the work to the queue, to be pulled again after d, or after a
	// restart, whichever is first. Other work does not wait for it. It works once
	// for each Item.
	Later func(d time.Duration)
}
