// Package pages reads a bbolt file page by page and believes nothing that the pages say:
// bbolt itself maps the file, and a wrong page can end its process.
//
// # Format
//
// Numbers have the order of bytes of the machine. Pages 0 and 1 are the heads of the last
// two commits: each says where the root of its tree and its free list are. A commit never
// changes a page that the one before it uses. It writes into pages that were free then, or
// behind the last one, then the head in the place of the older one.
//
//	page      8 bytes number, 2 bytes kind, 2 bytes count, 4 bytes further pages it consists of
//	head      4 bytes magic, 4 bytes version, 4 bytes size of a page, 4 bytes flags, the root
//	          as a bucket, 8 bytes page of the free list, 8 bytes number of all pages,
//	          8 bytes number of the commit, 8 bytes FNV-1a of all that
//	branch    of each child: 4 bytes position, 4 bytes length of the key, 8 bytes page; the keys
//	leaf      of each entry: 4 bytes flags, 4 bytes position, 4 and 4 bytes length of the
//	          key and the value; the keys and values
//	free list the numbers of the free pages; 65535 of them or more come after their count
//	bucket    the value of an entry with flag 1: 8 bytes page of its root, 8 bytes sequence;
//	          without a root, a leaf page follows
//
// Positions count from the element that has them, and what they point to is in order and
// without gaps.
package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"hash/fnv"
	"io"
)

var order = binary.NativeEndian

const (
	kindBranch   = 0x01
	kindLeaf     = 0x02
	kindFreelist = 0x10

	headerLen  = 16
	elementLen = 16
	bucketLen  = 16

	magic      = 0xED0CDAED
	version    = 2
	noFreelist = ^uint64(0)
	bucketFlag = 0x01
	// longList is the count of a free list whose length is before its first element.
	longList = 0xFFFF
)

// A Commit is a bbolt file as one of its last two commits left it.
type Commit struct {
	Tx int // the number of the transaction

	file     io.ReaderAt
	pageSize int
	root     uint64
	freelist uint64
	end      uint64 // the number of all pages
}

// Last returns the last commit of a file. Former is the one before it, nil if its head
// cannot be read.
func Last(file io.ReaderAt) (last, former *Commit, err error) {
	pageSize, err := findPageSize(file)
	if err != nil {
		return nil, nil, err
	}
	last, err = readHead(file, 0, pageSize)
	former, formerErr := readHead(file, int64(pageSize), pageSize)
	switch {
	case err != nil && formerErr != nil:
		return nil, nil, fmt.Errorf("no head can be read: %w", err)
	case err != nil:
		return former, nil, nil
	case formerErr != nil:
		return last, nil, nil
	case former.Tx > last.Tx:
		last, former = former, last
	}
	return last, former, nil
}

// ErrPassed says that a commit is not one of the last two any more.
var ErrPassed = errors.New("others came in between")

// Find returns the commit of transaction tx of a file, or ErrPassed.
func Find(file io.ReaderAt, tx int) (*Commit, error) {
	last, former, err := Last(file)
	switch {
	case err != nil:
		return nil, err
	case last.Tx == tx:
		return last, nil
	case former != nil && former.Tx == tx:
		return former, nil
	}
	return nil, ErrPassed
}

// minPage and maxPage bound the size of a page, which is a power of 2.
const (
	minPage = 1 << 10 // bytes
	maxPage = 1 << 24 // bytes
)

// findPageSize returns the size of pages, which is in each head; the second head is where
// the second page begins.
func findPageSize(file io.ReaderAt) (size int, err error) {
	c, err := readHead(file, 0, 0)
	if err == nil {
		return c.pageSize, nil
	}
	for at := minPage; at <= maxPage; at *= 2 {
		c, atErr := readHead(file, int64(at), 0)
		if atErr == nil && c.pageSize == at {
			return at, nil
		}
	}
	return 0, err
}

const headLen = 64 // bytes, behind the header of the page

// readHead reads the head at that offset. pageSize is 0 if it is not known.
func readHead(file io.ReaderAt, at int64, pageSize int) (*Commit, error) {
	var b [headLen]byte
	if _, err := file.ReadAt(b[:], at+headerLen); err != nil {
		return nil, err
	}
	if order.Uint32(b[0:]) != magic || order.Uint32(b[4:]) != version {
		return nil, errors.New("not the head of a store")
	}
	sum := fnv.New64a()
	_, _ = sum.Write(b[:headLen-8])
	if sum.Sum64() != order.Uint64(b[headLen-8:]) {
		return nil, errors.New("wrong checksum of the head")
	}
	c := &Commit{
		file:     file,
		pageSize: int(order.Uint32(b[8:])),
		root:     order.Uint64(b[16:]),
		freelist: order.Uint64(b[32:]),
		end:      order.Uint64(b[40:]),
		Tx:       int(order.Uint64(b[48:])),
	}
	if c.pageSize < minPage || c.pageSize > maxPage || pageSize != 0 && c.pageSize != pageSize {
		return nil, errors.New("the head has a wrong page size")
	}
	return c, nil
}

// Size returns the size of the part of the file that the commit uses, in bytes.
func (c *Commit) Size() int64 { return int64(c.end) * int64(c.pageSize) }

// A Set is a set of pages.
type Set struct {
	bits []uint64
	len  int
}

func newSet(end uint64) *Set { return &Set{bits: make([]uint64, end/64+1)} }

// Has reports whether page id is in s.
func (s *Set) Has(id uint64) bool {
	i := id / 64
	return i < uint64(len(s.bits)) && s.bits[i]&(1<<(id%64)) != 0
}

// Len returns the number of pages in s.
func (s *Set) Len() int { return s.len }

// add adds page id, which is below the end that s was made with. It returns false if s
// has it already.
func (s *Set) add(id uint64) bool {
	if s.Has(id) {
		return false
	}
	s.bits[id/64] |= 1 << (id % 64)
	s.len++
	return true
}

// ErrNoFreelist says that a commit has not written its free list.
var ErrNoFreelist = errors.New("the file has no free list")

// Free returns the free pages.
func (c *Commit) Free() (*Set, error) {
	if c.freelist == noFreelist {
		return nil, ErrNoFreelist
	}
	p, err := c.readPage(c.freelist, nil)
	if err != nil {
		return nil, fmt.Errorf("free list: %w", err)
	}
	if p.kind != kindFreelist {
		return nil, p.wrong("is no free list")
	}
	ids := p.data[headerLen:]
	n := uint64(p.count)
	if n == longList {
		n = order.Uint64(ids)
		ids = ids[8:]
	}
	if n > uint64(len(ids)/8) {
		return nil, p.wrong("is too short for the free list")
	}
	free := newSet(c.end)
	var last uint64 = 1
	for i := range n {
		id := order.Uint64(ids[i*8:])
		if id <= last || id >= c.end {
			return nil, p.wrong("has a wrong free page")
		}
		free.add(id)
		last = id
	}
	return free, nil
}

// Written returns the pages that c has written, besides its head. former is the commit
// before it, of which no page may have been written again.
func (c *Commit) Written(former *Commit) (*Set, error) {
	if former == nil || former.Tx != c.Tx-1 {
		return nil, errors.New("the head of the commit before the last one is missing")
	}
	before, err := former.Free()
	if err != nil {
		return nil, err
	}
	free, err := c.Free()
	if err != nil {
		return nil, err
	}
	written := newSet(c.end)
	for id := uint64(2); id < c.end; id++ {
		if (id >= former.end || before.Has(id)) && !free.Has(id) {
			written.add(id)
		}
	}
	return written, nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// maxRead bounds the bytes that are read at once.
const maxRead = 256 << 10 // bytes

// Checksum returns the CRC-32C of all pages of s, in order.
func (c *Commit) Checksum(s *Set) (sum uint32, err error) {
	buf := make([]byte, max(maxRead, c.pageSize))
	for first, n := range s.Runs() {
		at := int64(first) * int64(c.pageSize)
		for left := int64(n) * int64(c.pageSize); left > 0; {
			b := buf[:min(left, int64(len(buf)))]
			if _, err := c.file.ReadAt(b, at); err != nil {
				return 0, err
			}
			sum = crc32.Update(sum, castagnoli, b)
			at += int64(len(b))
			left -= int64(len(b))
		}
	}
	return sum, nil
}

// Runs yields the pages of s in order: the first of each group without gaps, and how many
// they are.
func (s *Set) Runs() func(yield func(first, n uint64) bool) {
	return func(yield func(first, n uint64) bool) {
		end := uint64(len(s.bits)) * 64
		for id := uint64(0); id < end; id++ {
			if s.bits[id/64] == 0 {
				id |= 63
				continue
			}
			first := id
			for id < end && s.Has(id) {
				id++
			}
			if id > first && !yield(first, id-first) {
				return
			}
		}
	}
}

// AppendTo appends s to b, in a form that [Commit.ParseSet] reads.
func (s *Set) AppendTo(b []byte) []byte {
	var last uint64
	for first, n := range s.Runs() {
		b = binary.AppendUvarint(b, first-last)
		b = binary.AppendUvarint(b, n)
		last = first + n
	}
	return b
}

// ParseSet returns the set of pages of c that AppendTo has written to b.
func (c *Commit) ParseSet(b []byte) (*Set, error) {
	s := newSet(c.end)
	var id uint64
	for len(b) > 0 {
		gap, size := binary.Uvarint(b)
		n, more := binary.Uvarint(b[max(size, 0):])
		if size <= 0 || more <= 0 || gap > c.end || n > c.end || id+gap+n > c.end {
			return nil, errors.New("no set of pages")
		}
		b = b[size+more:]
		id += gap
		for range n {
			s.add(id)
			id++
		}
	}
	return s, nil
}
