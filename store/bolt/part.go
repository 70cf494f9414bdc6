package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"parley/store"
	"parley/store/bolt/checksum"
	"parley/store/bolt/layer"
)

// A part is a bucket in one of the top buckets of the file. It is created when
// something of it is moved to the file. Every value in it begins with a checksum over its place,
// its key and itself.
type part struct {
	store *Store
	top   string
	name  string
	place uint32 // the checksum of top and name
	// prefix begins the keys of the part in a layer.
	prefix string
}

func (s *Store) part(top, name string) part {
	p := newPart(top, name)
	p.store = s
	return p
}

// newPart returns a part that belongs to no Store yet.
func newPart(top, name string) part {
	return part{
		top:    top,
		name:   name,
		place:  checksum.Place([]byte(top), encodeKey(name)),
		prefix: layer.JoinKey(top, name),
	}
}

func (p part) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", p.top, p.name, err)
}

// bucket returns the part's bucket in the file, nil if the file does not have it.
func (p part) bucket(file *bbolt.Tx) *bbolt.Bucket {
	top := file.Bucket([]byte(p.top))
	if top == nil {
		return nil
	}
	return top.Bucket(encodeKey(p.name))
}

// exists reports whether the part has a sequence.
func (p part) exists(t *txn) bool {
	_, known := t.lookup(p.prefix)
	return known || p.bucket(t.file) != nil
}

// sequence returns the number that was given last, according to setSequence. It is not
// certain if it comes from the file, where it has no checksum.
func (p part) sequence(t *txn) (n uint64, certain bool) {
	if v, known := t.lookup(p.prefix); known {
		n, _ = decodeNumber(v)
		return n, true
	}
	if in := p.bucket(t.file); in != nil {
		n = in.Sequence()
	}
	return n, false
}

// setSequence sets the number that was given last. It fails if the file cannot take the
// name of the part.
func (p part) setSequence(t *txn, n uint64) error {
	if len(p.name) >= bbolt.MaxKeySize {
		return berrors.ErrKeyTooLarge
	}
	t.set(p.prefix, encodeNumber(n))
	return nil
}

// lastNumber returns the number given last in a part whose keys are numbers. Numbers that
// are there count more than a sequence without a checksum.
func (p part) lastNumber(t *txn) uint64 {
	n, certain := p.sequence(t)
	if certain {
		return n
	}
	c := p.cursor(t)
	for k, _ := c.seek(encodeNumber(n + 1)); len(k) == 8; k, _ = c.next(k) {
		n, _ = decodeNumber(k)
	}
	return n
}

var errChecksum = fmt.Errorf("%w: wrong checksum", store.ErrDamaged)

// stored returns the value of k with its checksum, nil if there is no k.
func (p part) stored(t *txn, k []byte) []byte {
	if v, known := t.lookup(p.prefix + string(k)); known {
		return v
	}
	if in := p.bucket(t.file); in != nil {
		return in.Get(k)
	}
	return nil
}

// get returns the value of k, ErrNotFound or errChecksum. The value belongs to t.
func (p part) get(t *txn, k []byte) ([]byte, error) {
	stored := p.stored(t, k)
	if stored == nil {
		return nil, store.ErrNotFound
	}
	v, ok := checksum.Strip(p.place, k, stored)
	if !ok {
		return nil, errChecksum
	}
	return v, nil
}

// put sets k to the concatenation of val. It fails if the file cannot take that.
func (p part) put(t *txn, k []byte, val ...[]byte) error {
	stored := checksum.Add(p.place, k, val...)
	switch {
	case len(p.name) >= bbolt.MaxKeySize, len(k) > bbolt.MaxKeySize:
		return berrors.ErrKeyTooLarge
	case int64(len(stored)) > bbolt.MaxValueSize:
		return berrors.ErrValueTooLarge
	}
	p.stored(t, k) // meets a fault in the page that a checkpoint will change
	t.set(p.prefix+string(k), stored)
	return nil
}

// delete removes k. It returns errUnchanged if there is no k.
func (p part) delete(t *txn, k []byte) error {
	if p.stored(t, k) == nil {
		return errUnchanged
	}
	t.set(p.prefix+string(k), nil)
	return nil
}

// A read transaction visits at most this many entries and about this many bytes (P20).
const (
	pageLen  = 256
	pageSize = 1 << 20
)

// scan visits the entries from key from on, in order, until visit returns false. If
// they are many it stops earlier, and returns the key to continue at.
func (p part) scan(t *txn, from []byte, visit func(k, v []byte) bool) (next []byte) {
	c := p.cursor(t)
	n := 0
	size := 0
	for k, v := c.seek(from); k != nil; k, v = c.next(k) {
		if n == pageLen || size > pageSize {
			return bytes.Clone(k)
		}
		if !visit(k, v) {
			return nil
		}
		n++
		size += len(k) + len(v)
	}
	return nil
}

// describeEntry names an entry for people.
func describeEntry(top, name, k []byte) string {
	text := fmt.Sprintf("%s %q", top, bytes.TrimPrefix(name, []byte{'='}))
	if k == nil {
		return text
	}
	if len(k) == 8 && hasNumbers(string(top)) {
		n, _ := decodeNumber(k)
		return fmt.Sprintf("%s number %d", text, n)
	}
	return fmt.Sprintf("%s key %q", text, bytes.TrimPrefix(k, []byte{'='}))
}

// encodeNumber returns n as a key, or part of a value: the order of bytes is the
// order of numbers.
func encodeNumber(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// decodeNumber returns the number at the beginning of v.
func decodeNumber(v []byte) (n uint64, rest []byte) {
	return binary.BigEndian.Uint64(v), v[8:]
}

// encodeKey returns a name or key of a caller as a key of bbolt, which may not be empty.
func encodeKey(s string) []byte { return append([]byte{'='}, s...) }

func decodeKey(k []byte) string { return string(k[1:]) }
