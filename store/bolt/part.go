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

// A part is a bucket in one of the top buckets of the file. It is created when
// something is put in it. Every value in it begins with a checksum over its place,
// its key and itself.
type part struct {
	store *Store
	top   string
	name  string
	place uint32 // the checksum of top and name
}

func (s *Store) part(top, name string) part {
	return part{store: s, top: top, name: name, place: placeChecksum([]byte(top), encodeKey(name))}
}

func (p part) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s %q: %w", p.top, p.name, err)
}

// bucket returns the part's bucket, nil if it was never created.
func (p part) bucket(tx *bbolt.Tx) *bbolt.Bucket {
	top := tx.Bucket([]byte(p.top))
	if top == nil {
		return nil
	}
	return top.Bucket(encodeKey(p.name))
}

func (p part) createBucket(tx *bbolt.Tx) (*bbolt.Bucket, error) {
	if len(p.name) >= bbolt.MaxKeySize {
		return nil, berrors.ErrKeyTooLarge
	}
	top, err := tx.CreateBucketIfNotExists([]byte(p.top))
	if err != nil {
		return nil, err
	}
	return top.CreateBucketIfNotExists(encodeKey(p.name))
}

var errChecksum = fmt.Errorf("%w: wrong checksum", store.ErrDamaged)

// get returns the value of k, ErrNotFound or errChecksum. The value belongs to tx.
func (p part) get(tx *bbolt.Tx, k []byte) ([]byte, error) {
	in := p.bucket(tx)
	if in == nil {
		return nil, store.ErrNotFound
	}
	stored := in.Get(k)
	if stored == nil {
		return nil, store.ErrNotFound
	}
	v, ok := stripChecksum(p.place, k, stored)
	if !ok {
		return nil, errChecksum
	}
	return v, nil
}

// put sets k to the concatenation of val.
func (p part) put(tx *bbolt.Tx, k []byte, val ...[]byte) error {
	in, err := p.createBucket(tx)
	if err != nil {
		return err
	}
	return in.Put(k, addChecksum(p.place, k, val...))
}

// delete removes k. It returns errUnchanged if there is no k.
func (p part) delete(tx *bbolt.Tx, k []byte) error {
	in := p.bucket(tx)
	if in == nil || in.Get(k) == nil {
		return errUnchanged
	}
	return in.Delete(k)
}

// A read transaction visits at most this many entries and about this many bytes (P20).
const (
	pageLen  = 256
	pageSize = 1 << 20
)

// scan visits the entries from key from on, in order, until visit returns false. If
// they are many it stops earlier, and returns the key to continue at.
func (p part) scan(tx *bbolt.Tx, from []byte, visit func(k, v []byte) bool) (next []byte) {
	in := p.bucket(tx)
	if in == nil {
		return nil
	}
	c := in.Cursor()
	n := 0
	size := 0
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

const checksumLen = 4 // bytes

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func placeChecksum(top, name []byte) uint32 {
	return crc32.Update(crc32.Checksum(top, castagnoli), castagnoli, name)
}

func checksum(place uint32, k, v []byte) uint32 {
	return crc32.Update(crc32.Update(place, castagnoli, k), castagnoli, v)
}

// addChecksum returns the concatenation of val behind its checksum.
func addChecksum(place uint32, k []byte, val ...[]byte) []byte {
	v := make([]byte, checksumLen)
	for _, piece := range val {
		v = append(v, piece...)
	}
	binary.BigEndian.PutUint32(v, checksum(place, k, v[checksumLen:]))
	return v
}

// stripChecksum returns the value in v, without a copy. It is not ok if the
// checksum is wrong.
func stripChecksum(place uint32, k, v []byte) (val []byte, ok bool) {
	if len(v) < checksumLen || binary.BigEndian.Uint32(v) != checksum(place, k, v[checksumLen:]) {
		return nil, false
	}
	return v[checksumLen:], true
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
