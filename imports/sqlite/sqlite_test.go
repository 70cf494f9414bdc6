package sqlite

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"strings"
	"testing"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func open(t *testing.T, db, wal []byte) *File {
	t.Helper()
	f, err := Open(bytes.NewReader(db), int64(len(db)), wal)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func rows(t *testing.T, f *File, table string) (all []Row) {
	t.Helper()
	err := f.Each(table, func(r Row) error {
		all = append(all, r)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestRows(t *testing.T) {
	f := open(t, read(t, "small.sqlite"), nil)
	want := []Row{
		{"id": int64(7), "title": "a", "body": "short", "n": int64(-5), "x": 1.5, "raw": []byte{0, 255}, "PRIMARY_NOTE": nil},
		{"id": int64(9), "title": "b", "body": strings.Repeat("long ", 2000), "n": int64(70000000000), "x": nil, "raw": nil,
			"PRIMARY_NOTE": "x"},
	}
	if got := rows(t, f, "notes"); !reflect.DeepEqual(got, want) {
		t.Errorf("notes: %.300v", got)
	}
	many := rows(t, f, "many")
	if len(many) != 500 {
		t.Fatalf("many: %d rows", len(many))
	}
	for i, r := range many {
		if r.Text("k") != fmt.Sprint("k", i) || r.Text("v") != fmt.Sprint("value ", i) {
			t.Errorf("row %d: %v", i, r)
		}
	}
	for _, table := range []string{"bare", "none"} {
		if err := f.Each(table, func(Row) error { return nil }); !errors.Is(err, ErrDamaged) || f.Has(table) {
			t.Errorf("%s: %v", table, err)
		}
	}
}

// TestLog checks that committed pages of the write-ahead log count, and others do not.
func TestLog(t *testing.T) {
	db, wal := read(t, "wal.sqlite"), read(t, "wal.sqlite-wal")
	texts := func(wal []byte) (all []string) {
		for _, r := range rows(t, open(t, db, wal), "t") {
			all = append(all, r.Text("a"))
		}
		return all
	}
	cut := wal[:len(wal)-1]
	torn := bytes.Clone(wal)
	torn[len(torn)-1] ^= 1
	open := bytes.Clone(wal) // its last transaction is not committed
	binary.BigEndian.PutUint32(open[len(open)-512-frameHead+4:], 0)
	for _, c := range []struct {
		wal  []byte
		want string
	}{
		{nil, "[in the file]"},
		{wal, "[changed in the log in the log]"},
		{cut, "[in the file in the log]"},
		{torn, "[in the file in the log]"},
		{open, "[in the file in the log]"},
		{[]byte("no log"), "[in the file]"},
	} {
		if got := fmt.Sprint(texts(c.wal)); got != c.want {
			t.Errorf("log of %d bytes: %s, want %s", len(c.wal), got, c.want)
		}
	}
}

// TestDamage checks that a damaged file is an error, or read in part: it never hangs or panics.
func TestDamage(t *testing.T) {
	whole := read(t, "small.sqlite")
	for seed := range uint64(3000) {
		db := bytes.Clone(whole)
		random := rand.New(rand.NewPCG(seed, 0))
		for range 1 + random.IntN(20) {
			db[16+random.IntN(len(db)-16)] = byte(random.Uint32())
		}
		db = db[:len(db)-random.IntN(len(db)/2)]
		f, err := Open(bytes.NewReader(db), int64(len(db)), nil)
		if err != nil {
			continue
		}
		for _, table := range []string{"notes", "many"} {
			if err := f.Each(table, func(Row) error { return nil }); err != nil && !errors.Is(err, ErrDamaged) {
				t.Fatalf("seed %d: %v", seed, err)
			}
		}
	}
}

// TestOnce checks that a table whose pages refer to each other ends after each of them was read once: a page that leads
// back to itself in each of its cells would otherwise be visited a million times, and its rows told as often.
func TestOnce(t *testing.T) {
	db := read(t, "small.sqlite")
	var leaf uint32
	pages := len(db) / 512
	for n := 2; n <= pages; n++ {
		if db[(n-1)*512] == leafPage {
			leaf = uint32(n)
		}
	}
	changed := 0
	for n := 2; n <= pages; n++ {
		p := db[(n-1)*512 : n*512]
		if p[0] != interiorPage {
			continue
		}
		for i := range int(binary.BigEndian.Uint16(p[3:])) { // each leads to the same leaf
			binary.BigEndian.PutUint32(p[binary.BigEndian.Uint16(p[12+2*i:]):], leaf)
			changed++
		}
		binary.BigEndian.PutUint32(p[8:], leaf)
	}
	if changed < 2 {
		t.Fatalf("%d references are changed", changed)
	}
	counted := &counter{ReaderAt: bytes.NewReader(db), pages: map[int64]int{}}
	f, err := Open(counted, int64(len(db)), nil)
	if err != nil {
		t.Fatal(err)
	}
	rows := map[any]int{}
	err = f.Each("many", func(r Row) error {
		rows[r["k"]]++
		return nil
	})
	if !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
	for at, n := range counted.pages {
		if n > 2 { // once to find the table, and once in it
			t.Errorf("the page at %d was read %d times", at, n)
		}
	}
	for id, n := range rows {
		if n > 1 {
			t.Errorf("row %v was told %d times", id, n)
		}
	}
}

// A counter counts how often each place is read.
type counter struct {
	io.ReaderAt
	pages map[int64]int
}

func (c *counter) ReadAt(p []byte, at int64) (int, error) {
	c.pages[at]++
	return c.ReaderAt.ReadAt(p, at)
}

// TestCircle checks that pages that refer to themselves are an error.
func TestCircle(t *testing.T) {
	db := read(t, "small.sqlite")
	page := db[512*1:]
	for number := 2; len(page) >= 512; number++ {
		if page[0] == interiorPage {
			binary.BigEndian.PutUint32(page[8:], uint32(number))
		}
		page = page[512:]
	}
	if err := open(t, db, nil).Each("many", func(Row) error { return nil }); !errors.Is(err, ErrDamaged) {
		t.Error(err)
	}
}
