package sqlite

import "encoding/binary"

const walHead, frameHead = 32, 24 // bytes

// logged returns the pages of a write-ahead log that were committed, the latest of each
// number. What follows the first frame that is not sound was never committed.
func logged(wal []byte, pageSize int) map[uint32][]byte {
	pages := map[uint32][]byte{}
	if len(wal) < walHead || int(binary.BigEndian.Uint32(wal[8:])) != pageSize {
		return pages
	}
	var order binary.ByteOrder
	switch binary.BigEndian.Uint32(wal) {
	case 0x377f0682:
		order = binary.LittleEndian
	case 0x377f0683:
		order = binary.BigEndian
	default:
		return pages
	}
	sum := checksum{order: order}
	sum.add(wal[:24])
	if !sum.is(wal[24:]) {
		return pages
	}
	salts := string(wal[16:24])
	open := map[uint32][]byte{} // of the transaction that is being read
	for rest := wal[walHead:]; len(rest) >= frameHead+pageSize; rest = rest[frameHead+pageSize:] {
		head, page := rest[:frameHead], rest[frameHead:frameHead+pageSize]
		sum.add(head[:8])
		sum.add(page)
		if string(head[8:16]) != salts || !sum.is(head[16:]) {
			break
		}
		open[binary.BigEndian.Uint32(head)] = page
		if binary.BigEndian.Uint32(head[4:]) == 0 { // the transaction goes on
			continue
		}
		for n, p := range open {
			pages[n] = p
		}
		clear(open)
	}
	return pages
}

// A checksum is that of a log, from its beginning on.
type checksum struct {
	order  binary.ByteOrder
	s0, s1 uint32
}

func (c *checksum) add(b []byte) {
	for ; len(b) >= 8; b = b[8:] {
		c.s0 += c.order.Uint32(b) + c.s1
		c.s1 += c.order.Uint32(b[4:]) + c.s0
	}
}

func (c *checksum) is(b []byte) bool {
	return binary.BigEndian.Uint32(b) == c.s0 && binary.BigEndian.Uint32(b[4:]) == c.s1
}
