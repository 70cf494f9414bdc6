package bolt

import (
	"bytes"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync/atomic"

	"go.etcd.io/bbolt"

	"parley/store/bolt/handle"
	"parley/store/bolt/layer"
)

// A database is the file of a Store, and over it what the log has and the file has not.
type database struct {
	file   atomic.Pointer[handle.File]
	path   string
	layers atomic.Pointer[layers]
}

func newDatabase(db *bbolt.DB, path string) *database {
	d := &database{path: path}
	d.file.Store(handle.New(db))
	return d
}

// bolt returns the file for a caller that knows that it is not closed meanwhile.
func (d *database) bolt() *bbolt.DB { return d.file.Load().DB }

// A txn is the Store at one moment: the file, and over it what only the log has. The
// writer makes changes in it, which only it sees until they are published.
type txn struct {
	file    *bbolt.Tx      // only reads
	from    *handle.File   // that file is of
	fresh   *layer.Layer   // what is not in the file
	moving  *layer.Layer   // what a checkpoint is moving to the file, under fresh
	changes []layer.Change // that were made in this txn, in order
}

// layers is what the log has and the file has not.
type layers struct {
	fresh  *layer.Layer
	moving *layer.Layer
	// base is the transaction of the file from which on these layers complete it.
	base int
}

// begin begins a txn, which the caller ends with end.
func (d *database) begin() (*txn, error) {
	for {
		from := d.file.Load()
		file, ok, err := from.Begin()
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // another file has taken its place
		}
		// Only now: a checkpoint that file has is in these layers, too, or they say
		// that they need it.
		l := d.layers.Load()
		if file.ID() >= l.base && from == d.file.Load() {
			return &txn{file: file, from: from, fresh: l.fresh, moving: l.moving}, nil
		}
		if err := from.End(file); err != nil {
			return nil, err
		}
	}
}

// end ends a txn. What was read from the file must not be used any more.
func (t *txn) end() { _ = t.from.End(t.file) } // which has nothing to undo

// attempt makes the changes of do, all of them or, with an error, none. The error is
// errUnreadable if do met a page that cannot be read.
func (t *txn) attempt(do func(*txn) error) (err error) {
	before := *t
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: %v", errUnreadable, r)
		}
		if err != nil {
			*t = before
		}
	}()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	return do(t)
}

// lookup returns what the layers say of key: known is false if nothing, and val is nil if
// it is deleted.
func (t *txn) lookup(key string) (val []byte, known bool) {
	for _, l := range []*layer.Layer{t.fresh, t.moving} {
		if e := l.Find(key); e != nil {
			return e.Val, true
		}
	}
	return nil, false
}

// set sets key to val, or deletes it if that is nil.
func (t *txn) set(key string, val []byte) {
	t.fresh = t.fresh.With(key, val)
	t.changes = append(t.changes, layer.Change{Key: key, Val: val})
}

// A cursor visits the entries of a part in the order of their keys.
type cursor struct {
	txn    *txn
	prefix string
	file   *bbolt.Cursor // nil: the file does not have the part
	// The entry of file that comes next:
	fileKey, fileVal []byte
	above            *layer.Layer // the entry of the layers that comes next, nil if there is none
}

// cursor returns a cursor over the entries of p. Its seek comes first.
func (p part) cursor(t *txn) *cursor {
	c := &cursor{txn: t, prefix: p.prefix}
	if in := p.bucket(t.file); in != nil {
		c.file = in.Cursor()
	}
	return c
}

// seek returns the first entry from k on, with nil as the key if there is none.
func (c *cursor) seek(k []byte) (key, val []byte) {
	if c.file != nil {
		c.fileKey, c.fileVal = c.file.Seek(k)
	}
	if len(k) == 0 {
		k = []byte{0} // no key is less, but the sequence is
	}
	c.above = c.ceiling(c.prefix + string(k))
	return c.least()
}

// next returns the entry after the one with key k, which was returned last.
func (c *cursor) next(k []byte) (key, val []byte) {
	c.pass(k)
	return c.least()
}

// least returns the entry that comes next. An entry of the layers hides that of the file.
func (c *cursor) least() (key, val []byte) {
	for {
		if c.above == nil {
			return c.fileKey, c.fileVal
		}
		k := c.above.Key[len(c.prefix):]
		if c.fileKey != nil && string(c.fileKey) < k {
			return c.fileKey, c.fileVal
		}
		if c.above.Val != nil {
			return []byte(k), c.above.Val
		}
		c.pass([]byte(k)) // it is deleted
	}
}

// pass moves on behind k, which is that of an entry that comes next.
func (c *cursor) pass(k []byte) {
	if c.fileKey != nil && bytes.Equal(c.fileKey, k) {
		c.fileKey, c.fileVal = c.file.Next()
	}
	if c.above != nil && c.above.Key[len(c.prefix):] == string(k) {
		c.above = c.ceiling(c.above.Key + "\x00")
	}
}

// ceiling returns the first entry of the part in the layers from key on, nil if there is
// none.
func (c *cursor) ceiling(key string) *layer.Layer {
	fresh := c.own(c.txn.fresh.Ceiling(key))
	moving := c.own(c.txn.moving.Ceiling(key))
	if fresh == nil || moving != nil && moving.Key < fresh.Key {
		return moving
	}
	return fresh
}

// own returns e if it belongs to the part.
func (c *cursor) own(e *layer.Layer) *layer.Layer {
	if e == nil || !strings.HasPrefix(e.Key, c.prefix) {
		return nil
	}
	return e
}

// parts returns the names of the parts in a top bucket, in order.
func (t *txn) parts(top string) (names []string) {
	if all := t.file.Bucket([]byte(top)); all != nil {
		_ = all.ForEachBucket(func(k []byte) error {
			names = append(names, decodeKey(k))
			return nil
		})
	}
	for _, l := range []*layer.Layer{t.fresh, t.moving} {
		for e := l.Ceiling(top + "\x00"); e != nil; {
			in, name, _, _ := layer.SplitKey(e.Key)
			if in != top {
				break
			}
			names = append(names, name)
			e = l.Ceiling(layer.JoinKey(in, name) + "\xff\xff")
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// putInFile makes a change of a layer in the file.
func putInFile(tx *bbolt.Tx, c layer.Change) error {
	top, name, k, err := layer.SplitKey(c.Key)
	if err != nil {
		return err
	}
	all := tx.Bucket([]byte(top))
	if c.Val == nil {
		if all == nil {
			return nil
		}
		if in := all.Bucket(encodeKey(name)); in != nil {
			return in.Delete([]byte(k))
		}
		return nil
	}
	if all == nil {
		if all, err = tx.CreateBucket([]byte(top)); err != nil {
			return err
		}
	}
	in, err := all.CreateBucketIfNotExists(encodeKey(name))
	if err != nil {
		return err
	}
	if k == "" && len(c.Val) == 8 {
		n, _ := decodeNumber(c.Val)
		return in.SetSequence(n)
	}
	if isLog(top) {
		in.FillPercent = fillPercent
	}
	return in.Put([]byte(k), c.Val)
}
