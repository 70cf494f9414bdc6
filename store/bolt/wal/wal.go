// Package wal is an append-only log in a folder of segments: what a database writes
// first, so that one write and one sync make a group of its changes durable.
//
// # A message
//
// A message reaches the inbox. The database makes the change in memory and passes it to
// [Log.Append], which writes one record behind the last one and syncs the file. The
// blocks behind the last record are there already, full of zeros, so that the sync moves
// the record alone: no size, no allocation. Then the database tells its caller. The
// answer and its delivery are further records.
//
// Now and then the database moves what the records say to its own file: a checkpoint. It
// calls [Log.Cut], so that the next record begins a segment of its own, moves what it
// has, and calls [Log.Drop] with the number of the last record that it moved. The file of
// a dropped segment becomes the next segment: its blocks need no zeros.
//
// After a crash, [Open] passes the records that were not moved to the database again.
//
// # Format
//
// A segment is a file whose name is the number of its first record, in 16 hexadecimal
// digits. All numbers in it are big-endian.
//
//	header   8 bytes "parleyw1", 8 bytes lineage, 8 bytes number of the first record,
//	         4 bytes CRC-32C of these 24, 4 bytes zero
//	record   4 bytes CRC-32C of all that follows but the padding, 4 bytes length of the
//	         payload, 8 bytes number, the payload, zeros up to a multiple of 8 bytes
//
// The numbers of records are consecutive, over all segments. A record is followed by the
// next one, or by anything: zeros, a record that a crash has cut off, or what the file
// held when it was an earlier segment, whose records have lower numbers. A record that is
// wrong ends the log if no later one follows it; such a record was never acknowledged,
// because the next one is not written before it is. If a later one follows, the log is
// damaged.
//
// The file "spare" is a dropped segment that waits to be the next one.
package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"syscall"
)

// ErrNoSpace says that the disk is full and that nothing was written. The same call may
// succeed later.
var ErrNoSpace = errors.New("no space for the log")

// A DamagedError says that records are missing or wrong which were acknowledged. Nothing
// was changed.
type DamagedError struct {
	Path  string
	Cause string
}

// Error implements error.
func (e *DamagedError) Error() string { return fmt.Sprintf("%s is damaged: %s", e.Path, e.Cause) }

const (
	// zeroed is how far blocks are written ahead of the records. One sync in that many
	// bytes has to store the size of the file, too.
	zeroed = 256 << 10 // bytes
	block  = 4 << 10   // bytes
	// maxSpare bounds the spare file.
	maxSpare = 8 << 20 // bytes
	// maxBuffer bounds the memory that is kept between two records.
	maxBuffer = 1 << 20 // bytes
)

var zeros [block]byte // never written to

// A Log is a log that records can be appended to. Its methods may not be called
// concurrently.
type Log struct {
	dir     string
	lineage uint64
	next    uint64     // the number of the next record
	current *segment   // nil: the next record begins one
	older   []finished // oldest first
	spare   bool       // there is a spare file
	foreign bool       // another process left it: its records may have any number
	buf     []byte
	broken  error // why nothing can be appended any more
	ahead   int64 // zeroed; tests that read the log again and again set less

	// before is called with each change of the folder before it is made; if it returns
	// an error, the change is not made and fails with that. For tests; may be nil.
	before func(Step) error
}

// A Step is one change of the folder of a log: a call of the system.
type Step struct {
	Call string // "mkdir", "create", "write", "truncate", "sync", "rename", "remove", "sync folder"
	Path string
	To   string // of a rename
	Data []byte // of a write
	At   int64  // of a write, or the new size
}

// A segment is the one that records are appended to.
type segment struct {
	file *os.File
	path string // which is not that of the file, if it was the spare one
	end  int64  // of the last record
	size int64  // of the file
}

// A finished segment is not appended to any more.
type finished struct {
	path string
	last uint64 // the number of its last record
	end  int64
}

// Open returns the log in the folder dir, which belongs to a database of that lineage and
// need not exist. It calls replay with each record after number moved, in order, with a
// payload that is valid until replay returns; an error of replay is returned. The error
// is a [*DamagedError] if acknowledged records are missing or wrong, or belong to another
// database: replay got all records before these.
//
// Open changes nothing on disk. before is for tests and may be nil: see [Step].
func Open(
	dir string, lineage, moved uint64, replay func(seq uint64, payload []byte) error, before func(Step) error,
) (*Log, error) {
	segments, err := list(dir)
	if err != nil {
		return nil, fmt.Errorf("read log: %w", err)
	}
	l := &Log{dir: dir, lineage: lineage, next: moved + 1, ahead: zeroed, before: before}
	for _, first := range segments {
		path := filepath.Join(dir, segmentName(first))
		data, err := os.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read log: %w", err)
		}
		s, damage := parseSegment(path, first, data)
		if err := l.replay(s, replay); err != nil {
			return nil, err
		}
		if damage != nil {
			return nil, damage
		}
	}
	_, err = os.Stat(l.sparePath())
	l.spare = err == nil
	l.foreign = l.spare
	return l, nil
}

// replay passes the records of s that were not moved to visit.
func (l *Log) replay(s stored, visit func(seq uint64, payload []byte) error) error {
	if s.last >= s.first && s.lineage != l.lineage {
		return &DamagedError{s.path, "it belongs to another store"}
	}
	if s.last >= l.next && s.first > l.next {
		return &DamagedError{s.path, fmt.Sprintf("records %d to %d before it are missing", l.next, s.first-1)}
	}
	l.older = append(l.older, finished{path: s.path, last: s.last, end: s.end})
	return s.each(func(seq uint64, payload []byte) error {
		if seq < l.next {
			return nil
		}
		l.next = seq + 1
		return visit(seq, payload)
	})
}

func (l *Log) sparePath() string { return filepath.Join(l.dir, "spare") }

// Last returns the number of the last record, or of the last one that was moved.
func (l *Log) Last() uint64 { return l.next - 1 }

// Size returns the bytes of all records that were not dropped.
func (l *Log) Size() (size int64) {
	for _, s := range l.older {
		size += s.end
	}
	if l.current != nil {
		size += l.current.end
	}
	return size
}

// Exists reports whether there is a segment, or at least a spare one. As soon as there
// is, Drop leaves one of them.
func (l *Log) Exists() bool { return l.current != nil || len(l.older) > 0 || l.spare }

// Append appends a record with payload, and returns when it is on disk. If the error is
// ErrNoSpace, nothing was written. After any other error it is unknown whether the record
// is there, and nothing can be appended any more.
func (l *Log) Append(payload []byte) error {
	if l.broken != nil {
		return l.broken
	}
	if len(payload) > math.MaxInt32 {
		return errors.New("append to the log: the record is too long")
	}
	err := l.append(payload)
	if err != nil && !errors.Is(err, ErrNoSpace) {
		l.broken = fmt.Errorf("append to the log: %w", err)
		return l.broken
	}
	return err
}

func (l *Log) append(payload []byte) error {
	if l.current == nil {
		if err := l.Begin(); err != nil {
			return err
		}
	}
	l.buf = appendRecord(l.buf[:0], l.next, payload)
	err := l.write(l.buf)
	if cap(l.buf) > maxBuffer {
		l.buf = nil
	}
	if err != nil {
		return l.undo(err)
	}
	l.next++
	return nil
}

// write writes a record, with zeros behind it if the file has to grow, and syncs.
func (l *Log) write(record []byte) error {
	s := l.current
	end := s.end + int64(len(record))
	if err := l.writeAt(s.file, s.path, record, s.end); err != nil {
		return err
	}
	size := max(s.size, end)
	if end > s.size {
		var err error
		if size, err = l.writeZeros(end); err != nil {
			return err
		}
	}
	if err := l.sync(s.file, s.path); err != nil {
		return err
	}
	s.size = size
	s.end = end
	return nil
}

// writeZeros writes zeros from at on, and returns where they end. It may do without some
// of them on a full disk.
//
// It writes block by block. Linux caches a large write in one piece, and would count all
// of that as written again with each record in it.
func (l *Log) writeZeros(at int64) (end int64, err error) {
	last := (at/l.ahead + 1) * l.ahead
	for at < last {
		next := (at/block + 1) * block
		err := l.writeAt(l.current.file, l.current.path, zeros[:next-at], at)
		if isFull(err) {
			break
		}
		if err != nil {
			return at, err
		}
		at = next
	}
	return at, nil
}

// undo makes sure that a record that could not be written will never be read, and
// returns ErrNoSpace if it is certain that it will not.
func (l *Log) undo(cause error) error {
	if !isFull(cause) {
		return cause
	}
	if err := l.wipe(); err != nil {
		return errors.Join(cause, err)
	}
	return fmt.Errorf("%w: %w", ErrNoSpace, cause)
}

// wipe removes what is behind the last record. It writes nothing, because there may be a
// limit that forbids that.
func (l *Log) wipe() error {
	s := l.current
	if err := l.truncate(s.file, s.path, s.end); err != nil {
		return err
	}
	s.size = s.end
	return l.sync(s.file, s.path)
}

// Begin begins a segment with the next record, unless one has begun. When it returns, the
// segment is on disk. If the error is ErrNoSpace, nothing has changed.
func (l *Log) Begin() error {
	if l.current != nil {
		return nil
	}
	s, err := l.create()
	if isFull(err) {
		return fmt.Errorf("%w: %w", ErrNoSpace, err)
	}
	if err != nil {
		return fmt.Errorf("begin a segment: %w", err)
	}
	l.current = s
	return nil
}

func (l *Log) create() (*segment, error) {
	if err := l.makeDir(); err != nil {
		return nil, err
	}
	path := filepath.Join(l.dir, segmentName(l.next))
	draft := path
	flags := os.O_RDWR | os.O_CREATE | os.O_TRUNC
	if l.spare {
		draft = l.sparePath()
		flags = os.O_RDWR
	}
	f, err := l.open(draft, flags)
	if err != nil {
		return nil, err
	}
	s := &segment{file: f, path: path, end: headLen}
	// A crash, or the failure of an earlier call, may have left a segment of this name
	// without records.
	l.older = slices.DeleteFunc(l.older, func(o finished) bool { return o.path == path })
	if err := l.fill(s, draft); err != nil {
		f.Close()
		if draft == path || !l.spare { // it has its name
			l.older = append(l.older, finished{path: path, last: l.next - 1, end: headLen})
		}
		return nil, err
	}
	return s, nil
}

// fill writes the header of s, and makes it durable under the name path.
func (l *Log) fill(s *segment, draft string) error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	s.size = info.Size()
	if keep := l.usable(); s.size > keep {
		if err := l.truncate(s.file, draft, keep); err != nil {
			return err
		}
		s.size = keep
	}
	if err := l.writeAt(s.file, draft, appendHeader(nil, l.lineage, l.next), 0); err != nil {
		return err
	}
	s.size = max(s.size, headLen)
	if err := l.sync(s.file, draft); err != nil {
		return err
	}
	if draft != s.path {
		if err := l.rename(draft, s.path); err != nil {
			return err
		}
		l.spare = false
		l.foreign = false
	}
	return l.syncDir(l.dir)
}

// usable returns how much of the spare file may be used again, records and all.
func (l *Log) usable() int64 {
	if l.foreign {
		return 0
	}
	return maxSpare
}

func (l *Log) makeDir() error {
	if _, err := os.Stat(l.dir); err == nil {
		return nil
	}
	if err := l.mkdir(l.dir); err != nil {
		return err
	}
	return l.syncDir(filepath.Dir(l.dir))
}

// Cut ends the segment: the next record begins another one.
func (l *Log) Cut() {
	if l.current == nil {
		return
	}
	l.older = append(l.older, finished{path: l.current.path, last: l.next - 1, end: l.current.end})
	l.current.file.Close()
	l.current = nil
}

// Drop removes the segments whose records all have numbers up to moved. If it fails, they
// are removed by another call, or never read.
func (l *Log) Drop(moved uint64) error {
	var errs []error
	var kept []finished
	for _, s := range l.older {
		if s.last > moved {
			kept = append(kept, s)
			continue
		}
		if err := l.drop(s.path); err != nil {
			errs = append(errs, err)
			kept = append(kept, s)
		}
	}
	l.older = kept
	return errors.Join(errs...)
}

// drop removes a segment, or makes it the spare file.
func (l *Log) drop(path string) error {
	if l.spare {
		err := l.remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if err := l.rename(path, l.sparePath()); err != nil {
		return err
	}
	l.spare = true
	return nil
}

// SetLineage changes the lineage of a log that does not exist.
func (l *Log) SetLineage(lineage uint64) { l.lineage = lineage }

// Remove removes the log, of whose records those up to moved were moved and the others are
// not needed. When it returns nil, that is on disk, and the next record comes after moved.
func (l *Log) Remove(moved uint64) error {
	if !l.Exists() {
		return nil
	}
	l.Cut()
	paths := make([]string, 0, len(l.older)+2)
	for _, s := range l.older {
		paths = append(paths, s.path)
	}
	if l.spare {
		paths = append(paths, l.sparePath())
	}
	for _, path := range append(paths, l.dir) {
		if err := l.remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	l.older = nil
	l.spare = false
	if err := l.syncDir(filepath.Dir(l.dir)); err != nil {
		return err
	}
	l.next = moved + 1
	return nil
}

// isFull reports whether a write failed for lack of space.
func isFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
