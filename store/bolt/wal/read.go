package wal

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

const (
	magic      = "parleyw1"
	headLen    = 32 // bytes
	recordHead = 16 // bytes
	alignment  = 8  // bytes
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func segmentName(first uint64) string { return fmt.Sprintf("%016x", first) }

func appendHeader(b []byte, lineage, first uint64) []byte {
	start := len(b)
	b = append(b, magic...)
	b = binary.BigEndian.AppendUint64(b, lineage)
	b = binary.BigEndian.AppendUint64(b, first)
	b = binary.BigEndian.AppendUint32(b, crc32.Checksum(b[start:], castagnoli))
	return append(b, 0, 0, 0, 0)
}

func parseHeader(data []byte) (lineage, first uint64, ok bool) {
	if len(data) < headLen || string(data[:8]) != magic ||
		binary.BigEndian.Uint32(data[24:]) != crc32.Checksum(data[:24], castagnoli) {
		return 0, 0, false
	}
	return binary.BigEndian.Uint64(data[8:]), binary.BigEndian.Uint64(data[16:]), true
}

// appendRecord appends record seq to b, whose length is a multiple of the alignment.
func appendRecord(b []byte, seq uint64, payload []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.BigEndian.AppendUint32(b, uint32(len(payload)))
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, payload...)
	binary.BigEndian.PutUint32(b[start:], crc32.Checksum(b[start+4:], castagnoli))
	for len(b)%alignment != 0 {
		b = append(b, 0)
	}
	return b
}

// parseRecord returns the payload of record seq, with which data begins, and the size of
// the record. It is not ok if there is no such record.
func parseRecord(data []byte, seq uint64) (payload []byte, size int, ok bool) {
	if len(data) < recordHead || binary.BigEndian.Uint64(data[8:]) != seq {
		return nil, 0, false
	}
	n := uint64(binary.BigEndian.Uint32(data[4:]))
	if n > uint64(len(data)-recordHead) {
		return nil, 0, false
	}
	end := recordHead + int(n)
	if binary.BigEndian.Uint32(data) != crc32.Checksum(data[4:end], castagnoli) {
		return nil, 0, false
	}
	size = min((end+alignment-1)/alignment*alignment, len(data))
	return data[recordHead:end], size, true
}

// laterRecord returns the number of a record after seq somewhere in data, 0 if there is
// none.
func laterRecord(data []byte, seq uint64) uint64 {
	for at := 0; at+recordHead <= len(data); at += alignment {
		n := binary.BigEndian.Uint64(data[at+8:])
		if n <= seq || n-seq > uint64(len(data)/recordHead) {
			continue
		}
		if _, _, ok := parseRecord(data[at:], n); ok {
			return n
		}
	}
	return 0
}

// A stored segment was found in the folder of a log.
type stored struct {
	path    string
	lineage uint64
	first   uint64
	last    uint64 // first - 1 if it has no records
	end     int64
	data    []byte
}

// parseSegment returns what is in the segment with that data, whose name says that it
// begins with record named. A segment without a header was not complete at a crash and
// has no records.
func parseSegment(path string, named uint64, data []byte) (stored, error) {
	s := stored{path: path, first: named, last: named - 1, end: headLen, data: data}
	var ok bool
	s.lineage, s.first, ok = parseHeader(data)
	if !ok {
		s.first = named
		if n := laterRecord(data[min(headLen, len(data)):], named-1); n > 0 {
			return s, &DamagedError{path, fmt.Sprintf("its header is wrong, but record %d follows", n)}
		}
		return s, nil
	}
	s.last = s.first - 1
	for {
		_, size, ok := parseRecord(data[s.end:], s.last+1)
		if !ok {
			break
		}
		s.end += int64(size)
		s.last++
	}
	if n := laterRecord(data[s.end:], s.last+1); n > 0 {
		return s, &DamagedError{path, fmt.Sprintf("record %d is wrong, but record %d follows", s.last+1, n)}
	}
	return s, nil
}

// each calls visit with the records of s.
func (s stored) each(visit func(seq uint64, payload []byte) error) error {
	at := headLen
	for seq := s.first; seq <= s.last; seq++ {
		payload, size, _ := parseRecord(s.data[at:], seq)
		if err := visit(seq, payload); err != nil {
			return err
		}
		at += size
	}
	return nil
}

// Read calls visit with all records that can be read of the log in the folder dir, if it
// is of that lineage, in order, those that were moved included. It reads nothing behind
// them, and says nothing of damage. A payload is valid until visit returns.
func Read(dir string, lineage uint64, visit func(payload []byte)) error {
	segments, err := list(dir)
	if err != nil {
		return fmt.Errorf("read log: %w", err)
	}
	for _, first := range segments {
		if err := readSegment(filepath.Join(dir, segmentName(first)), lineage, visit); err != nil {
			return fmt.Errorf("read log: %w", err)
		}
	}
	return nil
}

// readSegment calls visit with the records of one segment.
func readSegment(path string, lineage uint64, visit func(payload []byte)) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	r := bufio.NewReader(f)
	head := make([]byte, headLen)
	if _, err := io.ReadFull(r, head); err != nil {
		return nil // it was not complete at a crash
	}
	its, seq, ok := parseHeader(head)
	if !ok || its != lineage {
		return nil
	}
	var data []byte
	for ; ; seq++ {
		head, err := r.Peek(recordHead)
		if err != nil || binary.BigEndian.Uint64(head[8:]) != seq {
			return nil
		}
		size := (recordHead + int64(binary.BigEndian.Uint32(head[4:])) + alignment - 1) / alignment * alignment
		if size > info.Size() {
			return nil
		}
		data = slices.Grow(data[:0], int(size))[:size]
		n, _ := io.ReadFull(r, data) // the last one may lack its padding
		payload, _, ok := parseRecord(data[:n], seq)
		if !ok {
			return nil
		}
		visit(payload)
	}
}

// list returns the numbers of the segments in the folder dir, in order.
func list(dir string) (segments []uint64, err error) {
	entries, err := os.ReadDir(dir) // in order of names
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, e := range entries {
		first, err := strconv.ParseUint(e.Name(), 16, 64)
		if err != nil || first == 0 || e.Name() != segmentName(first) { // the spare one
			continue
		}
		segments = append(segments, first)
	}
	return segments, err
}
