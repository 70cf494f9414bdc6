package bolt

import (
	"encoding/binary"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// seal returns the parts as one value, after a checksum over it and its key.
func seal(key []byte, parts ...[]byte) []byte {
	size := 4
	for _, p := range parts {
		size += len(p)
	}
	v := make([]byte, 4, size)
	for _, p := range parts {
		v = append(v, p...)
	}
	binary.BigEndian.PutUint32(v, sum(key, v[4:]))
	return v
}

// unseal returns what was sealed, still in v, and whether it is whole.
func unseal(key, v []byte) ([]byte, bool) {
	if len(v) < 4 || binary.BigEndian.Uint32(v) != sum(key, v[4:]) {
		return nil, false
	}
	return v[4:], true
}

func sum(key, v []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, v)
}

// number is n as a key or part of a value: the order of bytes is the order of numbers.
func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

// split reads the number at the head of v.
func split(v []byte) (n uint64, rest []byte) {
	return binary.BigEndian.Uint64(v), v[8:]
}

// label is a name or key from outside as a key of bbolt, which may not be empty.
func label(s string) []byte { return append([]byte{'='}, s...) }
