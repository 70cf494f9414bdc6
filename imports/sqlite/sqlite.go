// Package sqlite reads the tables of a SQLite database file that it does not trust, with
// what its write-ahead log holds, and never writes: neither to the file nor beside it.
package sqlite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
)

// ErrDamaged is what every error about the content of a file wraps.
var ErrDamaged = errors.New("not a readable SQLite database")

// Limits of what is read, so that a hostile file costs no more than a large one.
const (
	maxDepth   = 20       // levels of a tree
	maxPayload = 64 << 20 // bytes of one row
	maxColumns = 2000
)

// A File is an open database.
type File struct {
	db       io.ReaderAt
	pages    map[uint32][]byte // newer than those of db: from the write-ahead log
	pageSize int
	usable   int // bytes of a page without what is reserved at its end
	count    uint32
	visited  map[uint32]bool // pages of the table that is being read: each belongs to one place of it
}

// Open reads the head of the database db of size bytes, and its write-ahead log wal, which
// may be nil. Both must stay unchanged while the File is used.
func Open(db io.ReaderAt, size int64, wal []byte) (*File, error) {
	var head [100]byte
	if _, err := db.ReadAt(head[:], 0); err != nil {
		return nil, damaged("it is too short")
	}
	if string(head[:16]) != "SQLite format 3\x00" {
		return nil, damaged("its head is another")
	}
	f := &File{db: db, pageSize: int(binary.BigEndian.Uint16(head[16:]))}
	if f.pageSize == 1 {
		f.pageSize = 65536
	}
	f.usable = f.pageSize - int(head[20])
	if f.pageSize < 512 || f.pageSize&(f.pageSize-1) != 0 || f.usable < 480 {
		return nil, damaged("its pages have no possible size")
	}
	if encoding := binary.BigEndian.Uint32(head[56:]); encoding > 1 {
		return nil, damaged("its text is not UTF-8")
	}
	f.count = uint32(min(size/int64(f.pageSize), math.MaxUint32))
	f.pages = logged(wal, f.pageSize)
	for n := range f.pages {
		f.count = max(f.count, n)
	}
	return f, nil
}

func damaged(why string) error { return fmt.Errorf("%w: %s", ErrDamaged, why) }

// A Row has the values of one row by the names of their columns: int64, float64, string,
// []byte or nil.
type Row map[string]any

// Text returns a text of the row, "" if there is none.
func (r Row) Text(column string) string {
	s, _ := r[column].(string)
	return s
}

// Int returns a number of the row, 0 if there is none.
func (r Row) Int(column string) int64 {
	n, _ := r[column].(int64)
	return n
}

// Has reports whether there is a table of that name.
func (f *File) Has(table string) bool {
	_, _, err := f.find(table)
	return err == nil
}

// Each calls do with each row of table, in the order of their numbers, until it returns an error.
func (f *File) Each(table string, do func(Row) error) error {
	root, columns, err := f.find(table)
	if err != nil {
		return err
	}
	return f.walk(root, func(id int64, values []any) error {
		row := make(Row, len(columns))
		for i, c := range columns {
			if i < len(values) {
				row[c.name] = values[i]
			}
			if c.isID && row[c.name] == nil {
				row[c.name] = id
			}
		}
		return do(row)
	})
}

// find returns the root page and the columns of a table.
func (f *File) find(table string) (root uint32, columns []column, err error) {
	sql := ""
	err = f.walk(1, func(_ int64, v []any) error {
		if len(v) < 5 || v[0] != any("table") || v[1] != any(table) {
			return nil
		}
		n, _ := v[3].(int64)
		root = uint32(n)
		sql, _ = v[4].(string)
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	if root == 0 {
		return 0, nil, damaged("it has no table " + table)
	}
	if strings.Contains(strings.ToUpper(sql[strings.LastIndex(sql, ")")+1:]), "WITHOUT") {
		return 0, nil, damaged("the table " + table + " has no row numbers")
	}
	return root, columnsOf(sql), nil
}

// walk calls do with the number and the values of each row of the tree below the page root.
func (f *File) walk(root uint32, do func(int64, []any) error) error {
	f.visited = map[uint32]bool{}
	return f.descend(root, 0, do)
}

func (f *File) descend(number uint32, depth int, do func(int64, []any) error) error {
	if depth > maxDepth {
		return errCircle
	}
	p, err := f.visit(number)
	if err != nil {
		return err
	}
	head := 0
	if number == 1 {
		head = 100
	}
	kind := p[head]
	cells := int(binary.BigEndian.Uint16(p[head+3:]))
	pointers := head + 8
	if kind == interiorPage {
		pointers += 4
	}
	if kind != interiorPage && kind != leafPage || pointers+2*cells > f.usable {
		return damaged("a page is not of a table")
	}
	for i := range cells {
		at := int(binary.BigEndian.Uint16(p[pointers+2*i:]))
		if at+4 > f.usable {
			return damaged("a cell is outside its page")
		}
		if kind == interiorPage {
			err = f.descend(binary.BigEndian.Uint32(p[at:]), depth+1, do)
		} else {
			err = f.row(p[:f.usable], at, do)
		}
		if err != nil {
			return err
		}
	}
	if kind == leafPage {
		return nil
	}
	return f.descend(binary.BigEndian.Uint32(p[head+8:]), depth+1, do)
}

// Kinds of the pages of tables.
const interiorPage, leafPage = 5, 13

var errCircle = damaged("its pages refer to each other")

// visit returns the page of that number, once for each table that is read.
func (f *File) visit(number uint32) ([]byte, error) {
	if f.visited[number] {
		return nil, errCircle
	}
	f.visited[number] = true
	return f.page(number)
}

// page returns the page of that number.
func (f *File) page(number uint32) ([]byte, error) {
	if p := f.pages[number]; p != nil {
		return p, nil
	}
	if number == 0 || number > f.count {
		return nil, damaged("a page is missing")
	}
	p := make([]byte, f.pageSize)
	if _, err := f.db.ReadAt(p, int64(number-1)*int64(f.pageSize)); err != nil {
		return nil, fmt.Errorf("%w: page %d: %w", ErrDamaged, number, err)
	}
	return p, nil
}

// row reads the row at that place of a leaf p.
func (f *File) row(p []byte, at int, do func(int64, []any) error) error {
	size, at := varint(p, at)
	id, at := varint(p, at)
	if at < 0 || size < 0 || size > maxPayload {
		return damaged("a row is too large")
	}
	payload, err := f.payload(p, at, int(size))
	if err != nil {
		return err
	}
	values, err := record(payload)
	if err != nil {
		return err
	}
	return do(id, values)
}

// payload returns size bytes of a row that begin at p[at:] and go on in overflow pages.
func (f *File) payload(p []byte, at, size int) ([]byte, error) {
	local := size
	if most := f.usable - 35; size > most { // as the format has it
		least := (f.usable-12)*32/255 - 23
		local = least + (size-least)%(f.usable-4)
		if local > most {
			local = least
		}
	}
	if at+local > len(p) || local < size && at+local+4 > len(p) {
		return nil, damaged("a row is outside its page")
	}
	payload := append(make([]byte, 0, size), p[at:at+local]...)
	if local == size {
		return payload, nil
	}
	next := binary.BigEndian.Uint32(p[at+local:])
	for len(payload) < size {
		over, err := f.visit(next)
		if err != nil {
			return nil, err
		}
		next = binary.BigEndian.Uint32(over)
		payload = append(payload, over[4:4+min(f.usable-4, size-len(payload))]...)
	}
	return payload, nil
}

// record returns the values of a row.
func record(b []byte) ([]any, error) {
	size, at := varint(b, 0)
	if at < 0 || size < 1 || size > int64(len(b)) {
		return nil, damaged("a row has no head")
	}
	head, body := b[:size], b[size:]
	var values []any
	for at < len(head) {
		var kind int64
		kind, at = varint(head, at)
		if at < 0 || kind < 0 || len(values) == maxColumns {
			return nil, damaged("the head of a row is cut off")
		}
		n := valueSize(kind)
		if n > int64(len(body)) {
			return nil, damaged("a row is cut off")
		}
		values = append(values, value(kind, body[:n]))
		body = body[n:]
	}
	return values, nil
}

// valueSize returns the bytes of a value.
func valueSize(kind int64) int64 {
	switch kind {
	case 1, 2, 3, 4:
		return kind
	case 5:
		return 6
	case 6, 7:
		return 8
	case 0, 8, 9, 10, 11:
		return 0
	}
	return (kind - 12) / 2
}

func value(kind int64, b []byte) any {
	switch {
	case kind == 0 || kind == 10 || kind == 11:
		return nil
	case kind == 7:
		return math.Float64frombits(binary.BigEndian.Uint64(b))
	case kind == 8 || kind == 9:
		return kind - 8
	case kind < 7:
		n := int64(int8(b[0]))
		for _, c := range b[1:] {
			n = n<<8 | int64(c)
		}
		return n
	case kind%2 == 1:
		return strings.ToValidUTF8(string(b), "\uFFFD")
	}
	return append([]byte{}, b...)
}

// varint reads a number at b[at:], and returns where the next begins, -1 if it is cut off.
func varint(b []byte, at int) (n int64, next int) {
	if at < 0 {
		return 0, -1
	}
	for i := range 9 {
		if at+i >= len(b) {
			return 0, -1
		}
		c := b[at+i]
		if i == 8 {
			return n<<8 | int64(c), at + 9
		}
		n = n<<7 | int64(c&0x7f)
		if c < 0x80 {
			return n, at + i + 1
		}
	}
	return 0, -1
}
