package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"parley/store"
	"parley/store/bolt/pages"
	"parley/store/bolt/wal"
	"parley/store/storetest"
)

// afterKill copies a Store that is open as a kill would leave it.
func afterKill(t *testing.T, dir string) string {
	t.Helper()
	to := storetest.TempDir(t)
	for _, name := range []string{fileName, fileName + ".mark"} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(to, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(LogOf(filepath.Join(to, fileName)), os.DirFS(LogOf(filepath.Join(dir, fileName)))); err != nil {
		t.Fatal(err)
	}
	return to
}

// A countingProbe is a Config.Probe that counts.
type countingProbe struct {
	calls   int
	damaged []string
	err     error
}

func (p *countingProbe) probe(ctx context.Context, path string) ([]string, error) {
	p.calls++
	p.damaged, p.err = Probe(ctx, path)
	return p.damaged, p.err
}

func mustOpen(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func putText(t *testing.T, s *Store, key, text string) {
	t.Helper()
	if _, err := s.Bucket("b").Put(t.Context(), key, []byte(text), store.Any); err != nil {
		t.Fatal(err)
	}
}

func flush(t *testing.T, s *Store) {
	t.Helper()
	if err := s.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// storeOfManyPages returns a Store of 200 values, each in a page of its own, of which the
// last checkpoint has changed a few.
func storeOfManyPages(t *testing.T) *Store {
	t.Helper()
	s := mustOpen(t, Config{Dir: storetest.TempDir(t)})
	for i := range 200 {
		putText(t, s, fmt.Sprintf("old%03d", i), textOf(i))
	}
	flush(t, s)
	putText(t, s, "old100", textOf(1000))
	flush(t, s)
	return s
}

func textOf(i int) string { return fmt.Sprintf("text %d.%s", i, bytes.Repeat([]byte("x"), 3000)) }

// writtenLast returns the pages that the last transaction has written, and all that are used.
func writtenLast(t *testing.T, path string) (written, used []uint64) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	last, former, err := pages.Last(f)
	if err != nil {
		t.Fatal(err)
	}
	set, err := last.Written(former)
	if err != nil {
		t.Fatal(err)
	}
	free, err := last.Free()
	if err != nil {
		t.Fatal(err)
	}
	for id := uint64(2); id < uint64(last.Size())/4096; id++ {
		if set.Has(id) {
			written = append(written, id)
		}
		if !free.Has(id) {
			used = append(used, id)
		}
	}
	return written, used
}

// flipBit flips a random bit of a page.
func flipBit(t *testing.T, path string, page uint64, random *rand.Rand) {
	t.Helper()
	flipByte(t, path, int64(page)*4096+random.Int64N(4096), 1<<random.IntN(8))
}

// flipByte flips these bits of the byte at that offset.
func flipByte(t *testing.T, path string, at int64, bits byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := []byte{0}
	if _, err := f.ReadAt(b, at); err != nil {
		t.Fatal(err)
	}
	b[0] ^= bits
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// P27: after a kill, Open reads what the last checkpoint has written, and nothing else.
func TestReadsWrittenLast(t *testing.T) {
	s := storeOfManyPages(t)
	written, used := writtenLast(t, s.db.path)
	if len(written) > 12 || len(used) < 200 {
		t.Fatalf("the last transaction wrote %d of %d pages", len(written), len(used))
	}
	for i := range 3 { // the log goes on behind the note
		if err := s.Bucket("b").Delete(t.Context(), fmt.Sprintf("old%03d", i)); err != nil {
			t.Fatal(err)
		}
	}
	dir := afterKill(t, filepath.Dir(s.db.path))
	var p countingProbe
	again := mustOpen(t, Config{Dir: dir, Probe: p.probe})
	if p.calls > 0 {
		t.Error("the whole file was read")
	}
	val, _, err := again.Bucket("b").Get(t.Context(), "old100")
	if err != nil || string(val) != textOf(1000) {
		t.Errorf("got %.20q, %v", val, err)
	}
}

// P18, P27: any damage to what the last checkpoint has written is noticed before the Store is used.
func TestDamageWrittenLast(t *testing.T) {
	s := storeOfManyPages(t)
	dir := filepath.Dir(s.db.path)
	written, _ := writtenLast(t, s.db.path)
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	for _, page := range slices.Concat(written, written, written) {
		to := afterKill(t, dir)
		flipBit(t, filepath.Join(to, fileName), page, random)
		var p countingProbe
		again, err := Open(t.Context(), Config{Dir: to, Probe: p.probe})
		if err == nil {
			again.Close()
		}
		var damage *DamagedError
		told := errors.As(err, &damage) && !damage.InLog || len(p.damaged) > 0
		if p.calls != 1 || !told {
			t.Errorf("seed %d, page %d: %d probes, damaged %q, %v", seed, page, p.calls, p.damaged, err)
		}
	}
}

// P27: a kill between a checkpoint and its note in the log needs no reading of the whole file
// either, if what the checkpoint has written is sound.
func TestKilledBeforeNote(t *testing.T) {
	s := storeOfManyPages(t)
	dir := filepath.Dir(s.db.path)
	putText(t, s, "old050", textOf(1001))
	putText(t, s, "old051", textOf(1002))
	err := s.submit(t.Context(), &op{alone: func() error { // the commit of a checkpoint, and nothing after it
		w := s.writer
		w.wal.Cut()
		return w.db.move(w.db.layers.Load().fresh, w.wal.Last()).err
	}})
	if err != nil {
		t.Fatal(err)
	}
	written, _ := writtenLast(t, s.db.path)
	var p countingProbe
	again := mustOpen(t, Config{Dir: afterKill(t, dir), Probe: p.probe})
	if p.calls > 0 {
		t.Error("the whole file was read")
	}
	if val, _, err := again.Bucket("b").Get(t.Context(), "old051"); err != nil || string(val) != textOf(1002) {
		t.Errorf("got %.20q, %v", val, err)
	}
	for _, page := range written {
		to := afterKill(t, dir)
		flipByte(t, filepath.Join(to, fileName), int64(page)*4096, 0xff)
		var p countingProbe
		again, err := Open(t.Context(), Config{Dir: to, Probe: p.probe})
		if err == nil {
			again.Close()
		}
		if p.calls != 1 || err == nil && len(p.damaged) == 0 {
			t.Errorf("page %d: %d probes, damaged %q, %v", page, p.calls, p.damaged, err)
		}
	}
}

// P18: something that nobody has read since several unclean ends may be what ends the process:
// then all of the file is read first.
func TestUncleanEndsInARow(t *testing.T) {
	s := storeOfManyPages(t)
	dir := filepath.Dir(s.db.path)
	start := func(want int) *Store {
		t.Helper()
		dir = afterKill(t, dir)
		var p countingProbe
		s := mustOpen(t, Config{Dir: dir, Probe: p.probe})
		if p.calls != want {
			t.Errorf("%d probes, want %d", p.calls, want)
		}
		return s
	}
	for range maxUnreadStarts {
		start(0)
	}
	start(1)
	start(0)
	s = start(0)
	if err := s.Verify(t.Context(), 1<<30, func(where string) { t.Error(where) }); err != nil {
		t.Fatal(err)
	}
	for range maxUnreadStarts {
		start(0)
	}
	start(1)
}

// Each kind of change of the file that a Store makes while it is in use has its note.
func TestNotesFollow(t *testing.T) {
	s := mustOpen(t, Config{Dir: storetest.TempDir(t)})
	dir := filepath.Dir(s.db.path)
	text := ""
	check := func(after string) {
		t.Helper()
		var p countingProbe
		again := mustOpen(t, Config{Dir: afterKill(t, dir), Probe: p.probe})
		if p.calls > 0 {
			t.Errorf("after %s the whole file is read", after)
		}
		if val, _, err := again.Bucket("b").Get(t.Context(), "k"); err != nil || string(val) != text {
			t.Errorf("after %s: %q, %v", after, val, err)
		}
	}
	put := func(val string) {
		t.Helper()
		putText(t, s, "k", val)
		text = val
	}
	put("v")
	check("the first change")
	flush(t, s)
	check("a checkpoint")
	if err := s.Backup(t.Context(), filepath.Join(storetest.TempDir(t), "copy")); err != nil {
		t.Fatal(err)
	}
	check("a backup")
	put("v2")
	check("a change after that")
	if err := s.Compact(t.Context(), 1<<30); err != nil {
		t.Fatal(err)
	}
	put("v3")
	check("a compaction and a change")
	if err := s.Renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	put("v4")
	check("a renewal and a change")
}

// A note in the log that makes no sense only costs time.
func TestWrongNotes(t *testing.T) {
	for _, note := range [][]byte{
		{0}, {0, 0x80}, {0, 1, 2, 3}, {0, 7, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1},
		pages.Note{Tx: 1 << 40}.Encode(),
	} {
		s := storeOfManyPages(t)
		dir := filepath.Dir(s.db.path)
		if err := s.submit(t.Context(), &op{alone: func() error { return s.writer.wal.Append(note) }}); err != nil {
			t.Fatal(err)
		}
		var p countingProbe
		again := mustOpen(t, Config{Dir: afterKill(t, dir), Probe: p.probe})
		if p.calls != 1 {
			t.Errorf("note %v: %d probes", note, p.calls)
		}
		if val, _, err := again.Bucket("b").Get(t.Context(), "old100"); err != nil || string(val) != textOf(1000) {
			t.Errorf("note %v: %.20q, %v", note, val, err)
		}
	}
}

// A full disk may keep a note out of the log: then the whole file is read after a kill.
func TestNoRoomForNote(t *testing.T) {
	full := false
	s := mustOpen(t, Config{Dir: storetest.TempDir(t), step: func(s wal.Step) error {
		if full && s.Call == "write" {
			return syscall.ENOSPC
		}
		return nil
	}})
	dir := filepath.Dir(s.db.path)
	putText(t, s, "k", "v")
	full = true
	flush(t, s)
	full = false
	var p countingProbe
	again := mustOpen(t, Config{Dir: afterKill(t, dir), Probe: p.probe})
	if p.calls != 1 {
		t.Errorf("%d probes", p.calls)
	}
	if val, _, err := again.Bucket("b").Get(t.Context(), "k"); err != nil || string(val) != "v" {
		t.Errorf("got %.20q, %v", val, err)
	}
	putText(t, s, "k", "v2")
}

// P18, P21, P27: damage to what was written long ago does not keep a Store from being used after a
// kill. No value is read wrong, and what cannot be read is found in the background.
func TestDamageWrittenLongAgo(t *testing.T) {
	s := storeOfManyPages(t)
	dir := filepath.Dir(s.db.path)
	written, used := writtenLast(t, s.db.path)
	used = slices.DeleteFunc(used, func(page uint64) bool { return slices.Contains(written, page) })
	random := rand.New(rand.NewPCG(1, 1)) // bbolt has a few faults that no process survives
	found := 0
	for range 60 {
		to := afterKill(t, dir)
		page := used[random.IntN(len(used))]
		flipBit(t, filepath.Join(to, fileName), page, random)
		var p countingProbe
		again := mustOpen(t, Config{Dir: to, Probe: p.probe})
		var places []string
		if err := again.Verify(t.Context(), 1<<30, func(where string) { places = append(places, where) }); err != nil {
			t.Fatal(err)
		}
		found += len(places)
		lost := 0
		for i := range 200 {
			val, _, err := again.Bucket("b").Get(t.Context(), fmt.Sprintf("old%03d", i))
			switch {
			case err != nil:
				lost++
			case i != 100 && string(val) != textOf(i):
				t.Errorf("page %d: value %d is %.20q", page, i, val)
			}
		}
		if p.calls > 0 || lost > 0 && len(places) == 0 {
			t.Errorf("page %d: %d probes, %d values are lost, found %q", page, p.calls, lost, places)
		}
		again.Close()
	}
	if found < 30 {
		t.Errorf("found %d", found)
	}
}
