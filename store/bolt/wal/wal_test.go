package wal

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"parley/store/storetest"
)

// contents opens the log in dir and returns its records after moved.
func contents(t *testing.T, dir string, moved uint64, before func(Step) error) (*Log, []string) {
	t.Helper()
	l, all, err := tryContents(dir, moved, before)
	if err != nil {
		t.Fatal(err)
	}
	return l, all
}

func tryContents(dir string, moved uint64, before func(Step) error) (l *Log, all []string, err error) {
	l, err = Open(dir, 7, moved, func(seq uint64, payload []byte) error {
		all = append(all, fmt.Sprintf("%d:%s", seq, payload))
		return nil
	}, before)
	if err == nil {
		err = endsWith(dir, all)
	}
	return l, all, err
}

// endsWith returns an error unless what Read reads ends with these records.
func endsWith(dir string, records []string) error {
	var read []string
	if err := Read(dir, 7, func(payload []byte) { read = append(read, string(payload)) }); err != nil {
		return err
	}
	if len(read) < len(records) {
		return fmt.Errorf("Read reads %d records of %d", len(read), len(records))
	}
	for i, payload := range read[len(read)-len(records):] {
		if !strings.HasSuffix(records[i], ":"+payload) {
			return fmt.Errorf("Read reads %.40q, want %.40q", payload, records[i])
		}
	}
	return nil
}

func wantRecords(t *testing.T, what string, got []string, first, last int) {
	t.Helper()
	var want []string
	for n := first; n <= last; n++ {
		want = append(want, record(n))
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d records, want %d to %d: %.60q", what, len(got), first, last, fmt.Sprint(got))
	}
}

// fewZeros is how far tests write ahead that read the log at each step.
const fewZeros = 4 * block

func payload(n int) string { return fmt.Sprintf("record %d %s", n, strings.Repeat("x", n*37%500)) }

func record(n int) string { return fmt.Sprintf("%d:%s", n, payload(n)) }

func appendAll(t *testing.T, l *Log, first, last int) {
	t.Helper()
	for n := first; n <= last; n++ {
		if err := l.Append([]byte(payload(n))); err != nil {
			t.Fatal(err)
		}
	}
}

// A log is read as it was written, over segments that are cut, dropped and used again.
func TestLog(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, _ := contents(t, dir, 0, nil)
	if l.Exists() || l.Last() != 0 || l.Size() != 0 {
		t.Errorf("a new log: %+v", l)
	}
	for round := range 6 {
		first := round*100 + 1
		appendAll(t, l, first, first+59)
		l.Cut()
		appendAll(t, l, first+60, first+99)
		_, got := contents(t, dir, uint64(first-1), nil)
		wantRecords(t, "two segments", got, first, first+99)
		if err := l.Drop(uint64(first + 59)); err != nil {
			t.Fatal(err)
		}
		_, got = contents(t, dir, uint64(first+59), nil)
		wantRecords(t, "one segment", got, first+60, first+99)
		l.Cut()
		if err := l.Drop(uint64(first + 99)); err != nil || l.Size() != 0 || !l.Exists() {
			t.Errorf("all dropped: %v, %d bytes", err, l.Size())
		}
		if files, _ := os.ReadDir(dir); len(files) != 1 {
			t.Errorf("%d files, want the spare one", len(files))
		}
		if round%2 == 1 { // after a crash
			l, got = contents(t, dir, uint64(first+99), nil)
			wantRecords(t, "nothing", got, 1, 0)
		}
	}
	appendAll(t, l, 601, 601)
	if err := l.Remove(l.Last()); err != nil || l.Exists() {
		t.Errorf("Remove: %v", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder is there: %v", err)
	}
}

// The blocks behind a record are there before it is written: the size of the file changes
// once in many records.
func TestBlocksAreThere(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	sizes := map[int64]bool{}
	writes, syncs := 0, 0
	l, _ := contents(t, dir, 0, func(s Step) error {
		switch s.Call {
		case "write":
			if len(bytes.Trim(s.Data, "\x00")) > 0 {
				writes++
			}
		case "sync":
			syncs++
		}
		return nil
	})
	for n := 1; n <= 200; n++ {
		appendAll(t, l, n, n)
		info, err := l.current.file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		sizes[info.Size()] = true
	}
	if len(sizes) != 1 || !sizes[zeroed] {
		t.Errorf("sizes %v", slices.Sorted(maps.Keys(sizes)))
	}
	if writes != 201 || syncs != 201 {
		t.Errorf("%d writes and %d syncs of 200 records and a header", writes, syncs)
	}
}

// oneSegment returns the bytes and the path of a segment with n records.
func oneSegment(t *testing.T, n int) (dir, path string, data []byte) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "log")
	l, _ := contents(t, dir, 0, nil)
	appendAll(t, l, 1, n)
	path = l.current.path
	l.Cut()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return dir, path, data
}

// A log that ends anywhere, as a crash leaves it, has the records before that, and goes
// on there.
func TestTornTail(t *testing.T) {
	dir, path, data := oneSegment(t, 20)
	end := len(bytes.TrimRight(data, "\x00"))
	for cut := end + 8; cut >= 0; cut -= 17 {
		for _, junk := range [][]byte{nil, make([]byte, 100), bytes.Repeat([]byte("junk"), 100)} {
			torn := append(bytes.Clone(data[:cut]), junk...)
			if err := os.WriteFile(path, torn, 0o600); err != nil {
				t.Fatal(err)
			}
			l, got := contents(t, dir, 0, nil)
			last := len(got)
			wantRecords(t, fmt.Sprintf("cut at %d", cut), got, 1, last)
			if cut >= end && last != 20 {
				t.Fatalf("cut at %d of %d: %d records", cut, end, last)
			}
			if (end+8-cut)%51 != 0 {
				continue
			}
			appendAll(t, l, last+1, last+2)
			_, got = contents(t, dir, 0, nil)
			wantRecords(t, fmt.Sprintf("appended after a cut at %d", cut), got, 1, last+2)
			l.Cut()
			if l.current == nil && last > 0 {
				_ = os.Remove(filepath.Join(dir, segmentName(uint64(last+1))))
			}
		}
	}
}

// A record that is wrong before another one is damage, as is a segment that is missing,
// or that belongs to another store.
func TestDamage(t *testing.T) {
	dir, path, data := oneSegment(t, 20)
	end := len(bytes.TrimRight(data, "\x00"))
	lastRecord := bytes.Index(data, []byte("record 20")) - recordHead
	refuse := func(what, want string) {
		t.Helper()
		var damage *DamagedError
		if _, got, err := tryContents(dir, 0, nil); !errors.As(err, &damage) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %d records, %v; want %s", what, len(got), err, want)
		}
	}
	for bit := headLen * 8; bit < end*8; bit += 41 { // each bit of a byte, and each byte of a head, of some record
		data[bit/8] ^= 1 << (bit % 8)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		data[bit/8] ^= 1 << (bit % 8)
		if bit/8 < lastRecord {
			_, got, err := tryContents(dir, 0, nil)
			if err == nil { // in the zeros between records
				wantRecords(t, fmt.Sprint("bit ", bit), got, 1, 20)
			}
			continue
		}
		_, got := contents(t, dir, 0, nil)
		if len(got) < 19 {
			t.Errorf("bit %d: %d records", bit, len(got))
		}
	}
	middle := bytes.Index(data, []byte("record 7 "))
	data[middle] ^= 1
	_ = os.WriteFile(path, data, 0o600)
	refuse("a bit in the middle", "record 7 is wrong, but record 8 follows")
	data[middle] ^= 1

	data[0] ^= 1
	_ = os.WriteFile(path, data, 0o600)
	refuse("a bit in the header", "its header is wrong, but record 1 follows")
	data[0] ^= 1
	_ = os.WriteFile(path, data, 0o600)

	l, _ := contents(t, dir, 0, nil)
	appendAll(t, l, 21, 30)
	l.Cut()
	appendAll(t, l, 31, 40)
	if err := os.Remove(filepath.Join(dir, segmentName(21))); err != nil {
		t.Fatal(err)
	}
	refuse("a segment is missing", "records 21 to 30 before it are missing")
	_, got := contents(t, dir, 30, nil)
	wantRecords(t, "it was moved", got, 31, 40)
	if _, err := Open(dir, 8, 30, nil, nil); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("another lineage: %v", err)
	}
	if _, err := Open(dir, 8, 40, nil, nil); err == nil || !strings.Contains(err.Error(), "another store") {
		t.Errorf("another lineage, with lower numbers: %v", err) // Drop would destroy it
	}
}

// Open passes the records before the damage, whatever is damaged.
func TestSoundRecords(t *testing.T) {
	dir, path, data := oneSegment(t, 20)
	l, _ := contents(t, dir, 0, nil)
	appendAll(t, l, 21, 30)
	l.Cut()
	appendAll(t, l, 31, 40)
	second := filepath.Join(dir, segmentName(21))
	text, err := os.ReadFile(second)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		spoil func()
		last  int
	}{
		{"a bit", func() { spoil(t, second, text, bytes.Index(text, []byte("record 25 "))) }, 24},
		{"a header", func() { spoil(t, second, text, 0) }, 20},
		{"a segment", func() { _ = os.Remove(second) }, 20},
		{"a lineage", func() { spoil(t, path, data, 8) }, 0},
	} {
		c.spoil()
		var damage *DamagedError
		_, got, err := tryContents(dir, 0, nil)
		if !errors.As(err, &damage) {
			t.Errorf("%s: %v", c.what, err)
		}
		wantRecords(t, c.what, got, 1, c.last)
	}
}

// spoil writes data to path with another bit at at.
func spoil(t *testing.T, path string, data []byte, at int) {
	t.Helper()
	data = slices.Clone(data)
	data[at] ^= 1
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// A file that is used again has older records behind the new ones, which nobody reads.
func TestUsedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, _ := contents(t, dir, 0, nil)
	appendAll(t, l, 1, 200)
	l.Cut()
	if err := l.Drop(200); err != nil {
		t.Fatal(err)
	}
	for n := 201; n < 400; n++ {
		appendAll(t, l, n, n)
		_, got := contents(t, dir, 200, nil)
		wantRecords(t, "used again", got, 201, n)
	}
	if info, _ := os.Stat(filepath.Join(dir, segmentName(201))); info == nil || info.Size() != zeroed {
		t.Errorf("the file was not used again: %v", info)
	}
}

// The spare file of another process may hold records of any number, if somebody has put an
// earlier state of the database beside it: none of them is ever read.
func TestSpareOfAnother(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	l, _ := contents(t, dir, 0, nil)
	for n := 1; n <= 40; n++ {
		if err := l.Append([]byte("the same length")); err != nil {
			t.Fatal(err)
		}
	}
	l.Cut()
	if err := l.Drop(40); err != nil {
		t.Fatal(err)
	}
	for _, moved := range []uint64{0, 20} {
		l, _ := contents(t, dir, moved, nil)
		if err := l.Append([]byte("the same length")); err != nil {
			t.Fatal(err)
		}
		l, got, err := tryContents(dir, moved, nil)
		if err != nil || len(got) != 1 {
			t.Errorf("after %d: %d records, %v; want 1", moved, len(got), err)
			continue
		}
		if err := l.Drop(l.Last()); err != nil {
			t.Fatal(err)
		}
	}
}

// A limit on the size of files fails every write, and allows them to become shorter.
func TestNoWrites(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "log")
	limited := false
	l, _ := contents(t, dir, 0, func(s Step) error {
		if limited && s.Call == "write" {
			return syscall.EFBIG
		}
		return nil
	})
	appendAll(t, l, 1, 5)
	limited = true
	for range 2 {
		if err := l.Append([]byte("six")); !errors.Is(err, ErrNoSpace) {
			t.Fatalf("Append = %v, want no space", err)
		}
		_, got := contents(t, dir, 0, nil)
		wantRecords(t, "limited", got, 1, 5)
	}
	limited = false
	appendAll(t, l, 6, 2000)
	_, got := contents(t, dir, 0, nil)
	wantRecords(t, "no limit any more", got, 1, 2000)
}

// Each call of the system fails in turn, in each way. What was appended stays, what failed
// is not there, and a full disk needs no restart.
func TestFailures(t *testing.T) {
	for _, with := range []error{syscall.ENOSPC, syscall.EIO} {
		for _, short := range []bool{false, true} {
			for failAt := 1; failsAt(t, with, short, failAt); failAt++ {
			}
		}
	}
}

func failsAt(t *testing.T, with error, short bool, failAt int) (reached bool) {
	t.Helper()
	at := fmt.Sprintf("%v at call %d, half of it made: %v", with, failAt, short)
	dir := filepath.Join(storetest.TempDir(t), "log")
	calls := 0
	l, _ := contents(t, dir, 0, func(s Step) error {
		if calls++; calls != failAt {
			return nil
		}
		at += ", " + s.Call
		if short && s.Call == "write" {
			f, err := os.OpenFile(s.Path, os.O_RDWR, 0)
			if err == nil {
				_, _ = f.WriteAt(s.Data[:len(s.Data)/2+1], s.At)
				f.Close()
			}
		}
		return with
	})
	l.ahead = fewZeros
	kept, moved := 0, 0
	for n := 1; n <= 30; n++ {
		err := l.Append([]byte(payload(kept + 1)))
		switch {
		case err == nil:
			kept++
		case errors.Is(err, ErrNoSpace) != errors.Is(with, syscall.ENOSPC):
			t.Errorf("%s: append: %v", at, err)
		}
		if err == nil && n%5 > 0 {
			continue
		}
		_, got := contents(t, dir, uint64(moved), nil)
		if len(got) > kept-moved && errors.Is(with, syscall.EIO) { // it is unknown whether it is there
			got = got[:kept-moved]
		}
		wantRecords(t, at, got, moved+1, kept)
		if n%10 == 0 {
			l.Cut()
			moved = kept
			_ = l.Drop(uint64(moved))
		}
	}
	if lost := 30 - kept; errors.Is(with, syscall.ENOSPC) && lost > 1 {
		t.Errorf("%s: %d appends failed", at, lost)
	}
	return calls >= failAt
}

// After a crash between any two calls of the system, all is there that was appended.
func TestCrashAtEachStep(t *testing.T) {
	dir := filepath.Join(storetest.TempDir(t), "log")
	kept, moved, steps := 0, 0, 0
	check := func(s Step) error {
		steps++
		image := filepath.Join(storetest.TempDir(t), "log")
		if _, err := os.Stat(dir); err == nil {
			if err := os.CopyFS(image, os.DirFS(dir)); err != nil {
				t.Fatal(err)
			}
		}
		what := fmt.Sprintf("before %s %s", s.Call, filepath.Base(s.Path))
		l, got := contents(t, image, uint64(moved), nil)
		l.ahead = fewZeros
		isBehind := s.Call == "sync" || len(bytes.Trim(s.Data, "\x00")) == 0
		if len(got) == kept-moved+1 && isBehind { // it was written, and nobody knows yet
			return nil
		}
		wantRecords(t, what, got, moved+1, kept)
		appendAll(t, l, kept+1, kept+3)
		_, got = contents(t, image, uint64(moved), nil)
		wantRecords(t, what+", and appended", got, moved+1, kept+3)
		return nil
	}
	l, _ := contents(t, dir, 0, check)
	l.ahead = fewZeros
	random := rand.New(rand.NewPCG(1, 1))
	for kept < 150 {
		appendAll(t, l, kept+1, kept+1)
		kept++
		if random.IntN(15) == 0 {
			l.Cut()
		}
		if random.IntN(20) == 0 {
			l.Cut()
			moved = kept
			if err := l.Drop(uint64(moved)); err != nil {
				t.Fatal(err)
			}
		}
	}
	moved = kept
	if err := l.Remove(l.Last()); err != nil {
		t.Fatal(err)
	}
	if steps < 300 {
		t.Errorf("%d steps", steps)
	}
}

// FuzzRead: whatever a segment holds, reading it neither panics nor takes records for
// others, and what is appended after that is read again.
func FuzzRead(f *testing.F) {
	var whole []byte
	whole = appendHeader(whole, 7, 1)
	for n := 1; n <= 5; n++ {
		whole = appendRecord(whole, uint64(n), []byte(payload(n)))
	}
	f.Add(whole, 0, byte(0))
	f.Add(append(whole, make([]byte, 100)...), 40, byte(1))
	f.Add(whole[:len(whole)-3], headLen+4, byte(0x80))
	f.Add([]byte{}, 0, byte(0))
	f.Fuzz(func(t *testing.T, data []byte, at int, flip byte) {
		data = bytes.Clone(data)
		if at >= 0 && at < len(data) {
			data[at] ^= flip
		}
		s, err := parseSegment("segment", 1, data)
		var damage *DamagedError
		if err != nil {
			if !errors.As(err, &damage) {
				t.Fatal(err)
			}
			return
		}
		if s.end > int64(max(len(data), headLen)) || s.last+1 < s.first {
			t.Fatalf("it ends at %d of %d, with record %d", s.end, len(data), s.last)
		}
		next := s.first
		err = s.each(func(seq uint64, _ []byte) error {
			if seq != next {
				return fmt.Errorf("record %d comes as %d", next, seq)
			}
			next++
			return nil
		})
		if err != nil || next != s.last+1 {
			t.Fatalf("up to %d of %d: %v", next, s.last, err)
		}
		if _, _, ok := parseHeader(data); !ok || s.end > int64(len(data)) || s.end%alignment > 0 || s.last > 1<<62 {
			return
		}
		more := appendRecord(bytes.Clone(data[:s.end]), s.last+1, []byte("more"))
		again, err := parseSegment("segment", 1, more)
		if err != nil || again.last != s.last+1 {
			t.Fatalf("appended: %v, %d records", err, again.last)
		}
	})
}
