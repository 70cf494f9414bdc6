package pages

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
)

// A Note says what one commit has written into its file, besides its head.
type Note struct {
	Tx    int // 0: there is none
	sum   uint32
	pages []byte // see Set.AppendTo
}

// noteMark begins a Note, so that it can be told from other records of a log.
const noteMark = 0

// Encode returns n as a record.
func (n Note) Encode() []byte {
	b := binary.AppendUvarint([]byte{noteMark}, uint64(n.Tx))
	b = binary.BigEndian.AppendUint32(b, n.sum)
	return append(b, n.pages...)
}

const sumLen = 4 // bytes

// ParseNote returns the Note in a record, if it is one: such a record begins with a zero. It
// shares the memory of record.
func ParseNote(record []byte) (n Note, ok bool) {
	if len(record) == 0 || record[0] != noteMark {
		return n, false
	}
	tx, size := binary.Uvarint(record[1:])
	rest := record[min(1+max(size, 0), len(record)):]
	if size <= 0 || len(rest) < sumLen {
		return n, true // of a commit that does not exist
	}
	return Note{Tx: int(tx), sum: binary.BigEndian.Uint32(rest), pages: rest[sumLen:]}, true
}

// NoteOf returns the note of the last commit of the file at path, tx, before there is
// another. It is empty if that cannot be read.
func NoteOf(path string, tx int) Note {
	f, err := os.Open(path)
	if err != nil {
		return Note{}
	}
	defer f.Close()
	last, former, err := Last(f)
	if err != nil || last.Tx != tx {
		return Note{}
	}
	written, err := last.Written(former)
	if err != nil { // there is none of the first commit after one without a free list, for example
		return Note{}
	}
	sum, err := last.Checksum(written)
	if err != nil {
		return Note{}
	}
	return Note{Tx: tx, sum: sum, pages: written.AppendTo(nil)}
}

// ErrNotWritten says that what the last commit has written is not in the file.
var ErrNotWritten = errors.New("what was written last is not there")

// CheckFile returns nil if what the last commit of the file at path has written is there, as
// one of notes says. Otherwise the error is that of the last note.
func CheckFile(path string, notes []Note, value func(names [][]byte, key, val []byte) error) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, n := range notes {
		err = CheckLast(f, n, value)
		if err != nil {
			continue
		}
		return nil
	}
	return err
}

// CheckLast returns nil if what the last commit has written is in the file, as the note of
// this commit or the one before it says. In the second case, value checks the values.
func CheckLast(f *os.File, note Note, value func(names [][]byte, key, val []byte) error) error {
	last, former, err := Last(f)
	if err != nil {
		return err
	}
	if err := last.CheckSize(f); err != nil {
		return err
	}
	if _, err := last.Free(); err != nil { // which bbolt believes
		return err
	}
	switch {
	case note.Tx == last.Tx:
		return note.check(last)
	case note.Tx == last.Tx-1 && former != nil:
		// The process ended after a commit, and before its note. If all that the commit before
		// it wrote is still there, no later one has begun.
		if note.check(former) != nil {
			return errors.New("there may have been two commits since the last note")
		}
		written, err := last.Written(former)
		if err != nil {
			return err
		}
		return last.Read(Walk{Only: written, Value: value})
	}
	return fmt.Errorf("commit %d has a note, and the last one is %d", note.Tx, last.Tx)
}

// check returns an error unless all that n tells of is in the file as it was written.
func (n Note) check(c *Commit) error {
	written, err := c.ParseSet(n.pages)
	if err != nil {
		return err
	}
	sum, err := c.Checksum(written)
	if err != nil {
		return err
	}
	if sum != n.sum {
		return fmt.Errorf("%w: commit %d", ErrNotWritten, n.Tx)
	}
	return nil
}

// CheckSize returns an error if a file lacks pages of c.
func (c *Commit) CheckSize(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if info.Size() < c.Size() {
		return fmt.Errorf("it is cut off at %d of %d bytes", info.Size(), c.Size())
	}
	return nil
}
