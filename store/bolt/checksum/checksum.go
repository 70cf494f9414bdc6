// Package checksum binds the values of a store to their places: a value that stands
// elsewhere than it was put, or was changed, has a wrong checksum.
package checksum

import (
	"encoding/binary"
	"hash/crc32"
)

const size = 4 // bytes

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Place returns the checksum of a place: the bucket name in the top bucket top.
func Place(top, name []byte) uint32 {
	return crc32.Update(crc32.Checksum(top, castagnoli), castagnoli, name)
}

// of returns the checksum of the value v of the key k.
func of(place uint32, k, v []byte) uint32 {
	return crc32.Update(crc32.Update(place, castagnoli, k), castagnoli, v)
}

// Add returns the concatenation of val, the value of k, behind its checksum.
func Add(place uint32, k []byte, val ...[]byte) []byte {
	v := make([]byte, size)
	for _, piece := range val {
		v = append(v, piece...)
	}
	binary.BigEndian.PutUint32(v, of(place, k, v[size:]))
	return v
}

// Strip returns the value in v, without a copy. It is not ok if the checksum is wrong.
func Strip(place uint32, k, v []byte) (val []byte, ok bool) {
	if len(v) < size || binary.BigEndian.Uint32(v) != of(place, k, v[size:]) {
		return nil, false
	}
	return v[size:], true
}
