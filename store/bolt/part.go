package bolt

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"parley/store"
)

// A part is a bucket in one of the top buckets of the file. It is made when
// something is put in it. Every value in it is sealed: it begins with a
// checksum over where it is, its key and itself.
type part struct {
	store *Store
	top   string
	name  string
	place uint32 // the checksum of top and name
}

func (s *Store) part(top, name string) part {
	return part{s, top, name, placeOf([]byte(top), label(name))}
}

func (p part) wrap(err error) error {
	if err != nil {
		err = fmt.Errorf("%s %q: %w", p.top, p.name, err)
	}
	return err
}

// in returns the part, or nil when it was never made.
func (p part) in(tx *bbolt.Tx) *bbolt.Bucket {
	if t := tx.Bucket([]byte(p.top)); t != nil {
		return t.Bucket(label(p.name))
	}
	return nil
}

func (p part) make(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if len(p.name) >= bbolt.MaxKeySize {
		return nil, berrors.ErrKeyTooLarge
	}
	t, err := tx.CreateBucketIfNotExists([]byte(p.top))
	if err != nil {
		return nil, err
	}
	return t.CreateBucketIfNotExists(label(p.name))
}

var errChecksum = fmt.Errorf("%w: wrong checksum", store.ErrDamaged)

// get returns the value of k, which belongs to tx, ErrNotFound or errChecksum.
func (p part) get(tx *bbolt.Tx, k []byte) ([]byte, error) {
	in := p.in(tx)
	if in == nil {
		return nil, store.ErrNotFound
	}
	sealed := in.Get(k)
	if sealed == nil {
		return nil, store.ErrNotFound
	}
	v, ok := unseal(p.place, k, sealed)
	if !ok {
		return nil, errChecksum
	}
	return v, nil
}

// put sets k to the parts of val, one after the other.
func (p part) put(tx *bbolt.Tx, k []byte, val ...[]byte) error {
	in, err := p.make(tx)
	if err != nil {
		return err
	}
	return in.Put(k, seal(p.place, k, val...))
}

// delete returns errSame when there is no k.
func (p part) delete(tx *bbolt.Tx, k []byte) error {
	in := p.in(tx)
	if in == nil || in.Get(k) == nil {
		return errSame
	}
	return in.Delete(k)
}

// A read transaction visits at most so many entries and about so many bytes (P20).
const (
	pageLen  = 256
	pageSize = 1 << 20
)

// scan visits the entries from key from on, in order, until visit says no. It
// stops before that when they are many, and returns where to go on.
func (p part) scan(tx *bbolt.Tx, from []byte, visit func(k, v []byte) bool) (next []byte) {
	in := p.in(tx)
	if in == nil {
		return nil
	}
	c, n, size := in.Cursor(), 0, 0
	for k, v := c.Seek(from); k != nil; k, v = c.Next() {
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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func placeOf(top, name []byte) uint32 {
	return crc32.Update(crc32.Checksum(top, castagnoli), castagnoli, name)
}

func sum(place uint32, k, v []byte) uint32 {
	return crc32.Update(crc32.Update(place, castagnoli, k), castagnoli, v)
}

func seal(place uint32, k []byte, val ...[]byte) []byte {
	v := make([]byte, 4)
	for _, part := range val {
		v = append(v, part...)
	}
	binary.BigEndian.PutUint32(v, sum(place, k, v[4:]))
	return v
}

// unseal returns what was sealed, still in v, and whether it is whole.
func unseal(place uint32, k, v []byte) ([]byte, bool) {
	if len(v) < 4 || binary.BigEndian.Uint32(v) != sum(place, k, v[4:]) {
		return nil, false
	}
	return v[4:], true
}

// describe names an entry for people.
func describe(top, name, k []byte) string {
	what := fmt.Sprintf("%s %q", top, bytes.TrimPrefix(name, []byte{'='}))
	switch {
	case k == nil:
		return what
	case len(k) == 8 && (string(top) == "log" || bytes.HasPrefix(top, []byte(laterPieces)) || string(top) == "queue" || string(top) == "damaged"):
		n, _ := split(k)
		return fmt.Sprintf("%s number %d", what, n)
	}
	return fmt.Sprintf("%s key %q", what, bytes.TrimPrefix(k, []byte{'='}))
}

// number is n as a key or part of a value: the order of bytes is the order of numbers.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// split reads the number at the head of v.
func split(v []byte) (n uint64, rest []byte) {
	return binary.BigEndian.Uint64(v), v[8:]
}

// label is a name or key from outside as a key of bbolt, which may not be empty.
func label(s string) []byte { return append([]byte{'='}, s...) }
