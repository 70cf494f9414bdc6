package pages

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// A page is one page as it was read, with those that it continues in.
type page struct {
	id    uint64 // 0: it is inside of another page
	kind  uint16
	count int
	data  []byte // with the header
}

func (p page) wrong(what string) error { return fmt.Errorf("page %d %s", p.id, what) }

// parsePage reads the header of a page. id is what it must say that it is.
func parsePage(data []byte, id uint64) (p page, overflow uint64, err error) {
	if len(data) < headerLen {
		return p, 0, errors.New("a page inside of another one is cut off")
	}
	p = page{
		id:    id,
		kind:  order.Uint16(data[8:]),
		count: int(order.Uint16(data[10:])),
		data:  data,
	}
	if order.Uint64(data) != id {
		return p, 0, p.wrong("says that it is another one")
	}
	return p, uint64(order.Uint32(data[12:])), nil
}

// readPage reads page id into buf, which may grow.
func (c *Commit) readPage(id uint64, buf []byte) (page, error) {
	if id < 2 || id >= c.end {
		return page{id: id}, fmt.Errorf("page %d does not exist", id)
	}
	at := int64(id) * int64(c.pageSize)
	buf = slices.Grow(buf[:0], c.pageSize)[:c.pageSize]
	if _, err := c.file.ReadAt(buf, at); err != nil {
		return page{id: id}, fmt.Errorf("page %d: %w", id, err)
	}
	p, overflow, err := parsePage(buf, id)
	if err != nil || overflow == 0 {
		return p, err
	}
	if overflow >= c.end-id {
		return p, p.wrong("goes on behind the end")
	}
	if err := c.checkOverflow(p, overflow); err != nil {
		return p, err
	}
	size := int(overflow+1) * c.pageSize
	buf = slices.Grow(buf, size-len(buf))[:size]
	if _, err := c.file.ReadAt(buf[c.pageSize:], at+int64(c.pageSize)); err != nil {
		return p, fmt.Errorf("page %d: %w", id, err)
	}
	p.data = buf
	return p, nil
}

// checkOverflow returns an error if p is much longer than its elements say: a wrong length
// must not cost all the memory of the machine. It knows no more than the first page.
func (c *Commit) checkOverflow(p page, overflow uint64) error {
	claimed := overflow * uint64(c.pageSize)
	if claimed <= maxRead {
		return nil
	}
	if p.kind == kindFreelist {
		if claimed > c.end*8+maxRead {
			return p.wrong("is too long")
		}
		return nil
	}
	table := make([]byte, headerLen+p.count*elementLen)
	if _, err := c.file.ReadAt(table, int64(p.id)*int64(c.pageSize)); err != nil {
		return fmt.Errorf("page %d: %w", p.id, err)
	}
	end := uint64(len(table))
	for i := range p.count {
		_, keyLen, valLen := p.lengths(table[headerLen+i*elementLen:])
		end += keyLen + valLen
	}
	if claimed > end {
		return p.wrong("is too long")
	}
	return nil
}

// An element is a child of a branch page or an entry of a leaf page.
type element struct {
	key    []byte
	child  uint64 // of a branch page
	val    []byte // of a leaf page
	bucket bool   // val is a bucket
}

// lengths returns what an element of p says about the place of its key and value.
func (p page) lengths(e []byte) (pos, keyLen, valLen uint64) {
	if p.kind == kindBranch {
		return uint64(order.Uint32(e)), uint64(order.Uint32(e[4:])), 0
	}
	return uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[8:])), uint64(order.Uint32(e[12:]))
}

// elements appends the elements of p to all[:0]. They must fill it without gaps.
func (p page) elements(all []element) ([]element, error) {
	if p.kind != kindBranch && p.kind != kindLeaf {
		return nil, p.wrong("is of a wrong kind")
	}
	at := headerLen + p.count*elementLen // of what comes next
	if at > len(p.data) {
		return nil, p.wrong("has too many elements")
	}
	all = slices.Grow(all[:0], p.count)[:p.count]
	for i := range all {
		start := headerLen + i*elementLen
		e := p.data[start:at]
		pos, keyLen, valLen := p.lengths(e)
		left := uint64(len(p.data) - at)
		if uint64(start)+pos != uint64(at) || keyLen == 0 || keyLen > left || valLen > left-keyLen {
			return nil, p.wrong("has an element in a wrong place")
		}
		key := p.data[at : at+int(keyLen)]
		at += int(keyLen)
		all[i].key = key
		if p.kind == kindBranch {
			all[i].child = order.Uint64(e[8:])
			continue
		}
		flags := order.Uint32(e)
		if flags > bucketFlag {
			return nil, p.wrong("has an element with wrong flags")
		}
		all[i].bucket = flags == bucketFlag
		all[i].val = p.data[at : at+int(valLen)]
		at += int(valLen)
	}
	return all, nil
}

// maxDepth bounds the pages from the root down to a leaf, through all buckets.
const maxDepth = 64

// A Walk reads the tree of a commit.
type Walk struct {
	// Only, if it is not nil, has the pages to be read: what is under another page is
	// left out.
	Only *Set
	// From, if it is not nil, is where to begin: at what comes first of the entry with these
	// names and this key, and all that follow it.
	From [][]byte
	// Enter is asked whether a bucket, given by the names of its parents and its own, is
	// to be read; nil: all of them.
	Enter func(names [][]byte) bool
	// Page, if it is not nil, is called with each page before its entries: with the names of
	// the bucket that it belongs to, valid until it returns, and its size in bytes.
	Page func(names [][]byte, size int)
	// Value is called with each entry that is no bucket. Names, key and value are valid
	// until it returns, which ends the walk if that is an error.
	Value func(names [][]byte, key, val []byte) error
	// Damaged, if it is not nil, is called with the names of the bucket that a page belongs
	// to which is wrong, and the walk goes on behind what is under that page.
	Damaged func(names [][]byte, err error)
}

// A level is the memory for the page at that depth of the tree.
type level struct {
	data     []byte
	elements []element
}

// A walker walks through one commit.
type walker struct {
	Walk
	commit *Commit
	seen   *Set
	free   *Set // nil: not known
	names  [][]byte
	levels [maxDepth + 1]level
}

// Read walks through the tree of c. The error says what is wrong with its structure. Without
// From, Enter and Damaged, each page, or each of Only, must be in the tree or free.
func (c *Commit) Read(w Walk) error {
	r := walker{Walk: w, commit: c, seen: newSet(c.end)}
	isWhole := w.From == nil && w.Enter == nil && w.Damaged == nil
	if isWhole {
		var err error
		if r.free, err = c.Free(); err != nil && !errors.Is(err, ErrNoFreelist) {
			return err
		}
	}
	if err := r.page(c.root, nil, nil, 0); err != nil || r.free == nil {
		return err
	}
	return r.checkAll()
}

// checkAll returns an error if a page was not seen that should have been.
func (r *walker) checkAll() error {
	list, err := r.commit.readPage(r.commit.freelist, nil)
	if err != nil {
		return err
	}
	if err := r.mark(list); err != nil {
		return err
	}
	for id := uint64(2); id < r.commit.end; id++ {
		if r.seen.Has(id) || r.free.Has(id) || r.Only != nil && !r.Only.Has(id) {
			continue
		}
		return fmt.Errorf("page %d is neither used nor free", id)
	}
	return nil
}

// mark notes that p is used.
func (r *walker) mark(p page) error {
	for i := range uint64(len(p.data) / r.commit.pageSize) {
		if r.free != nil && r.free.Has(p.id+i) {
			return p.wrong("is used and free")
		}
		if !r.seen.add(p.id + i) {
			return p.wrong("is used twice")
		}
	}
	return nil
}

// page reads page id and what is under it, whose keys must be at least first and below
// end, unless these are nil.
func (r *walker) page(id uint64, first, end []byte, depth int) error {
	if r.Only != nil && !r.Only.Has(id) {
		return nil
	}
	if depth == maxDepth {
		return r.damaged(fmt.Errorf("page %d is too deep in the tree", id))
	}
	p, err := r.commit.readPage(id, r.levels[depth].data)
	if err != nil {
		return r.damaged(err)
	}
	r.levels[depth].data = p.data
	if err := r.mark(p); err != nil {
		return r.damaged(err)
	}
	if r.Page != nil {
		r.Page(r.names, len(p.data))
	}
	return r.visit(p, first, end, depth)
}

// damaged reports that a page is wrong, or returns the error.
func (r *walker) damaged(err error) error {
	if r.Damaged == nil {
		return err
	}
	r.Damaged(r.names, err)
	return nil
}

// visit reads the elements of p.
func (r *walker) visit(p page, first, end []byte, depth int) error {
	all, err := p.elements(r.levels[depth].elements)
	if err != nil {
		return r.damaged(err)
	}
	r.levels[depth].elements = all
	if err := p.checkOrder(all, first, end); err != nil {
		return r.damaged(err)
	}
	for i, e := range all {
		next := end
		if i+1 < len(all) {
			next = all[i+1].key
		}
		if r.isBefore(p, e.key, next) {
			continue
		}
		switch {
		case p.kind == kindBranch:
			err = r.page(e.child, e.key, next, depth+1)
		case e.bucket:
			err = r.bucket(p, e, depth+1)
		case r.Value != nil:
			err = r.Value(r.names, e.key, e.val)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkOrder returns an error if the keys of the elements of p are not in order, or not
// at least first and below end, unless these are nil.
func (p page) checkOrder(all []element, first, end []byte) error {
	for i, e := range all {
		switch {
		case first != nil && bytes.Compare(e.key, first) < 0,
			end != nil && bytes.Compare(e.key, end) >= 0,
			i > 0 && bytes.Compare(e.key, all[i-1].key) <= 0:
			return p.wrong("has a key in a wrong place")
		}
	}
	return nil
}

// isBefore reports whether all that is under an element of p is before From. next is the
// key after it, nil if there is none.
func (r *walker) isBefore(p page, key, next []byte) bool {
	if len(r.names) >= len(r.From) {
		return false
	}
	for i, name := range r.names {
		if !bytes.Equal(name, r.From[i]) { // it is behind, or would not have been entered
			return false
		}
	}
	from := r.From[len(r.names)]
	if p.kind == kindBranch {
		return next != nil && bytes.Compare(next, from) <= 0
	}
	return bytes.Compare(key, from) < 0
}

// bucket reads the bucket in the element e of p.
func (r *walker) bucket(p page, e element, depth int) error {
	if len(e.val) < bucketLen {
		return r.damaged(p.wrong("has a bucket that is cut off"))
	}
	r.names = append(r.names, e.key)
	defer func() { r.names = r.names[:len(r.names)-1] }()
	if r.Enter != nil && !r.Enter(r.names) {
		return nil
	}
	if root := order.Uint64(e.val); root != 0 {
		return r.page(root, nil, nil, depth)
	}
	inline, _, err := parsePage(e.val[bucketLen:], 0)
	if err != nil || inline.kind != kindLeaf {
		return r.damaged(p.wrong("has a bucket in a wrong form"))
	}
	return r.visit(inline, nil, nil, depth)
}
