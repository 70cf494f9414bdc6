// Package compact copies a bbolt file into another one, without its free pages, in short
// transactions between which the file is changed. Changes of what is copied already are
// made in the copy, too.
package compact

import (
	"cmp"
	"errors"
	"strings"
	"sync"

	"go.etcd.io/bbolt"

	"parley/store/bolt/layer"
)

// sliceSize and sliceLen bound what is copied in one transaction. A checkpoint waits for
// it.
const (
	sliceSize = 2 << 20 // bytes
	sliceLen  = 8192    // entries
)

// ErrEnded says that the copy was abandoned.
var ErrEnded = errors.New("the compaction has ended")

// Config has the files and what is known of their layout: top buckets with a bucket for each part.
type Config struct {
	// View runs do in a transaction of the file that only reads.
	View func(do func(*bbolt.Tx) error) error
	// Update runs do in a transaction of the copy.
	Update func(do func(*bbolt.Tx) error) error
	// Put makes a change of a layer in the copy.
	Put func(*bbolt.Tx, layer.Change) error
	// Split returns where the key of a layer is in the file; k is empty for the sequence of
	// a part.
	Split func(key string) (top, name, k string, err error)
	// FillPercent is how full pages get.
	FillPercent float64
}

// A Copy is a copy that is being made. Its methods may be called concurrently.
type Copy struct {
	cfg Config

	mu       sync.Mutex // guards what follows, and keeps slices and checkpoints apart
	next     position   // all before it is copied
	complete bool       // all is copied
	err      error      // why it cannot go on
}

// New returns a Copy that has nothing yet.
func New(cfg Config) *Copy { return &Copy{cfg: cfg} }

// A position is one in the order in which the file is copied: that of an entry, or, with
// an empty key, of the sequence of a part.
type position struct{ top, name, key string }

func (p position) compare(q position) int {
	return cmp.Or(strings.Compare(p.top, q.top), strings.Compare(p.name, q.name), strings.Compare(p.key, q.key))
}

// after returns the least string that is greater than s.
func after(s []byte) string { return string(s) + "\x00" }

// CopySlice copies what comes next, and returns its size in bytes and whether that was
// all.
func (c *Copy) CopySlice() (size int, complete bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, false, c.err
	}
	s := slice{at: c.next, fillPercent: c.cfg.FillPercent}
	if err := c.cfg.View(func(from *bbolt.Tx) error {
		s.from = from
		return c.cfg.Update(s.copy)
	}); err != nil {
		return 0, false, err
	}
	c.next = s.at
	c.complete = s.complete
	return s.size, s.complete, nil
}

// Follow makes a checkpoint of changes with move, and makes them in the copy, too, as far
// as that goes. If move returns an error, the copy cannot be completed.
func (c *Copy) Follow(changes *layer.Layer, move func() error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := move(); c.err != nil || err != nil {
		c.err = cmp.Or(c.err, err)
		return
	}
	c.err = c.cfg.Update(func(to *bbolt.Tx) error { return c.putCopied(to, changes) })
}

// putCopied makes those changes in the copy whose place is copied. The others will be
// copied from the file.
func (c *Copy) putCopied(to *bbolt.Tx, changes *layer.Layer) error {
	for key, val := range changes.All() {
		var p position
		var err error
		if p.top, p.name, p.key, err = c.cfg.Split(key); err != nil {
			return err
		}
		if !c.complete && p.compare(c.next) >= 0 {
			continue
		}
		if err := c.cfg.Put(to, layer.Change{Key: key, Val: val}); err != nil {
			return err
		}
	}
	return nil
}

// Err returns why the copy cannot be completed.
func (c *Copy) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

// End ends the copy. When it returns, nothing is written to it any more.
func (c *Copy) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = cmp.Or(c.err, ErrEnded)
}

// A slice is what is copied in one transaction.
type slice struct {
	from        *bbolt.Tx
	to          *bbolt.Tx
	fillPercent float64
	at          position // where it goes on
	size        int      // bytes, about
	entries     int
	complete    bool // there is nothing more
}

func (s *slice) isFull() bool { return s.size >= sliceSize || s.entries >= sliceLen }

func (s *slice) add(k, v []byte) {
	s.entries++
	s.size += len(k) + len(v)
}

// copy copies from s.at on, until the slice is full.
func (s *slice) copy(to *bbolt.Tx) error {
	s.to = to
	tops := s.from.Cursor()
	for top, _ := tops.Seek([]byte(s.at.top)); top != nil; top, _ = tops.Next() {
		if string(top) != s.at.top {
			s.at = position{top: string(top)}
		}
		if complete, err := s.copyTop(); err != nil || !complete {
			return err
		}
		s.at = position{top: after(top)}
	}
	s.complete = true
	return nil
}

// copyTop copies the rest of the parts in the top bucket that s.at is in, and reports
// whether that was all.
func (s *slice) copyTop() (complete bool, err error) {
	from := s.from.Bucket([]byte(s.at.top))
	to, err := s.to.CreateBucketIfNotExists([]byte(s.at.top))
	if err != nil {
		return false, err
	}
	names := from.Cursor()
	for name, _ := names.Seek([]byte(s.at.name)); name != nil; name, _ = names.Next() {
		if string(name) != s.at.name {
			s.at.name = string(name)
			s.at.key = ""
		}
		if s.isFull() {
			return false, nil
		}
		s.add(name, nil)
		if complete, err := s.copyPart(from.Bucket(name), to); err != nil || !complete {
			return false, err
		}
		s.at.name = after(name)
		s.at.key = ""
	}
	return true, nil
}

// copyPart copies the rest of a part into the top bucket to, and reports whether that was
// all.
func (s *slice) copyPart(from, to *bbolt.Bucket) (complete bool, err error) {
	in, err := to.CreateBucketIfNotExists([]byte(s.at.name))
	if err != nil {
		return false, err
	}
	if s.at.key == "" {
		if err := in.SetSequence(from.Sequence()); err != nil {
			return false, err
		}
	}
	in.FillPercent = s.fillPercent
	entries := from.Cursor()
	for k, v := entries.Seek([]byte(s.at.key)); k != nil; k, v = entries.Next() {
		if s.isFull() {
			s.at.key = string(k)
			return false, nil
		}
		if err := in.Put(k, v); err != nil {
			return false, err
		}
		s.add(k, v)
	}
	return true, nil
}
