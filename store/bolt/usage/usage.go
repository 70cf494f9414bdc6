// Package usage measures what takes how much of a bbolt file. It reads the pages without
// believing them: bbolt goes through them without a bound, and one that is its own child
// would end the process.
package usage

import (
	"bytes"
	"context"
	"errors"
	"time"

	"parley/store/bolt/pages"
)

// stepSize is how much is read in one transaction, and then the rest of a bucket.
const stepSize = 4 << 20 // bytes

// errPause ends a step.
var errPause = errors.New("the rest is read later")

// Measure calls add with the size in the file of each bucket in the top buckets, and
// returns the size of the file without what is reserved at its end. It reads at most
// bytesPerSecond, in transactions that view runs: a large bucket takes one of its own.
// What is measured while it changes is not exact. If a page is wrong, Measure returns an
// error.
func Measure(
	ctx context.Context,
	view func(do func(*pages.Commit) error) error,
	bytesPerSecond int,
	add func(top, name []byte, bytes int64),
) (size int64, err error) {
	for from := [][]byte{}; from != nil; {
		s := step{from: from}
		if err := view(s.measure); err != nil {
			return 0, err
		}
		for _, b := range s.buckets {
			add(b.top, b.name, b.bytes)
		}
		from = s.next
		size = s.size
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Duration(s.read) * time.Second / time.Duration(bytesPerSecond)):
		}
	}
	return size, nil
}

// A step measures some buckets in one transaction.
type step struct {
	from    [][]byte // the names of the bucket at which it begins; none: the first one
	next    [][]byte // the same of the next step; nil: all was read
	size    int64    // of the file
	read    int64    // bytes
	buckets []bucket
}

// A bucket is one that was measured.
type bucket struct {
	top, name []byte
	bytes     int64
	inline    bool // it has no pages of its own
}

func (s *step) measure(c *pages.Commit) error {
	s.size = c.Size()
	err := c.Read(pages.Walk{From: s.from, Page: s.addPage, Value: s.addValue})
	if errors.Is(err, errPause) {
		return nil
	}
	return err
}

func (s *step) addPage(names [][]byte, size int) {
	s.read += int64(size)
	if len(names) == 2 {
		b := s.bucket(names)
		b.bytes += int64(size)
		b.inline = false
	}
}

func (s *step) addValue(names [][]byte, key, val []byte) error {
	if len(names) != 2 {
		return nil
	}
	b := s.bucket(names)
	if s.read > stepSize && len(s.buckets) > 1 {
		s.next = [][]byte{b.top, b.name}
		s.buckets = s.buckets[:len(s.buckets)-1]
		return errPause
	}
	if b.inline {
		b.bytes += int64(len(key) + len(val))
	}
	return nil
}

// bucket returns the bucket with those names, which is being read.
func (s *step) bucket(names [][]byte) *bucket {
	top, name := names[0], names[1]
	if n := len(s.buckets); n > 0 {
		last := &s.buckets[n-1]
		if bytes.Equal(last.top, top) && bytes.Equal(last.name, name) {
			return last
		}
	}
	s.buckets = append(s.buckets, bucket{
		top:    bytes.Clone(top),
		name:   bytes.Clone(name),
		bytes:  int64(len(name)),
		inline: true,
	})
	return &s.buckets[len(s.buckets)-1]
}
