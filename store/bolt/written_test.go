package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt/mark"
	"parley/store/bolt/pages"
	"parley/store/bolt/refusal"
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
	err := os.CopyFS(LogOf(filepath.Join(to, fileName)), os.DirFS(LogOf(filepath.Join(dir, fileName))))
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // there may be no log
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
		var damage *refusal.DamagedError
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

// closedStore returns the folder of a Store of many pages that was closed.
func closedStore(t *testing.T) (dir string) {
	t.Helper()
	s := storeOfManyPages(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return filepath.Dir(s.db.path)
}

// P27: a start after a kill is quick if the start before it changed nothing, and after those that
// follow, too. The first change after that has its note in the log.
func TestKilledBeforeFirstChange(t *testing.T) {
	dir := closedStore(t)
	for i := range maxUnreadStarts + 1 {
		var p countingProbe
		s := mustOpen(t, Config{Dir: dir, Probe: p.probe})
		if p.calls > 0 {
			t.Errorf("start %d: the whole file was read", i)
		}
		if val, _, err := s.Bucket("b").Get(t.Context(), "old100"); err != nil || string(val) != textOf(1000) {
			t.Errorf("start %d: %.20q, %v", i, val, err)
		}
		if i == maxUnreadStarts {
			putText(t, s, "k", "v")
		}
		dir = afterKill(t, dir)
	}
	var p countingProbe
	s := mustOpen(t, Config{Dir: dir, Probe: p.probe})
	if p.calls != 1 { // as there were so many unclean ends
		t.Errorf("%d probes", p.calls)
	}
	if val, _, err := s.Bucket("b").Get(t.Context(), "k"); err != nil || string(val) != "v" {
		t.Errorf("%.20q, %v", val, err)
	}
	dir = afterKill(t, dir)
	p = countingProbe{}
	mustOpen(t, Config{Dir: dir, Probe: p.probe})
	if p.calls > 0 {
		t.Error("the whole file was read again")
	}
}

// P18, P27: any damage to what was written before a clean end is noticed after a start and a kill.
func TestDamageBeforeFirstChange(t *testing.T) {
	dir := closedStore(t)
	path := filepath.Join(dir, fileName)
	written, _ := writtenLast(t, path)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range written { // before the start, where no reader meets it
		to := afterKill(t, dir)
		file := filepath.Join(to, fileName)
		flipByte(t, file, int64(page)*4096+4095, 1)
		if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
			t.Fatal(err)
		}
		var p countingProbe
		mustOpen(t, Config{Dir: to, Probe: p.probe})
		if p.calls > 0 {
			t.Errorf("page %d: the end was not clean", page)
		}
		mustOpen(t, Config{Dir: afterKill(t, to), Probe: p.probe})
		if p.calls != 1 {
			t.Errorf("page %d: %d probes", page, p.calls)
		}
	}
	mustOpen(t, Config{Dir: dir})
	for _, page := range written {
		for _, bits := range []byte{1, 0xff} {
			to := afterKill(t, dir)
			flipByte(t, filepath.Join(to, fileName), int64(page)*4096+40, bits)
			var p countingProbe
			again, err := Open(t.Context(), Config{Dir: to, Probe: p.probe})
			if err == nil {
				again.Close()
			}
			if p.calls != 1 {
				t.Errorf("page %d: %d probes, %v", page, p.calls, err)
			}
		}
	}
}

// P18: who changes a file after it was closed may have changed any page of it: all of it is read,
// and the note of its last commit says nothing.
func TestChangedWhileClosed(t *testing.T) {
	dir := closedStore(t)
	later := time.Now().Add(time.Hour)
	if err := os.Chtimes(filepath.Join(dir, fileName), later, later); err != nil {
		t.Fatal(err)
	}
	var p countingProbe
	mustOpen(t, Config{Dir: dir, Probe: p.probe})
	if p.calls != 1 {
		t.Errorf("%d probes", p.calls)
	}
}

// P18, P27: an earlier note in the mark does not stand for a later one in the log.
func TestNoteOfMarkIsEarlier(t *testing.T) {
	s := storeOfManyPages(t)
	dir := filepath.Dir(s.db.path)
	if err := s.submit(t.Context(), &op{alone: func() error { return s.writer.mark(nil, true) }}); err != nil {
		t.Fatal(err)
	}
	earlier, err := os.ReadFile(mark.Path(s.db.path))
	if err != nil {
		t.Fatal(err)
	}
	former, err := os.ReadFile(s.db.path)
	if err != nil {
		t.Fatal(err)
	}
	putText(t, s, "old100", textOf(1003))
	flush(t, s)
	written, _ := writtenLast(t, s.db.path)
	for _, page := range written { // a disk that has lost a write that it had acknowledged
		to := afterKill(t, dir)
		f, err := os.OpenFile(filepath.Join(to, fileName), os.O_RDWR, 0)
		if err != nil {
			t.Fatal(err)
		}
		at := int64(page) * 4096
		old := make([]byte, 4096)
		copy(old, former[min(at, int64(len(former))):])
		now := make([]byte, 4096)
		if _, err := f.ReadAt(now, at); err != nil {
			t.Fatal(err)
		}
		lost := !bytes.Equal(now, old) // some pages are written as they were
		_, err1 := f.WriteAt(old, at)
		if err := errors.Join(err1, f.Close(), os.WriteFile(mark.Path(filepath.Join(to, fileName)), earlier, 0o600)); err != nil {
			t.Fatal(err)
		}
		var p countingProbe
		again, err := Open(t.Context(), Config{Dir: to, Probe: p.probe})
		if err == nil {
			again.Close()
		}
		if lost && p.calls != 1 {
			t.Errorf("page %d: %d probes, %v", page, p.calls, err)
		}
	}
}

// P27: a kill at any step of a compaction, and after it, costs no reading of the whole file, and
// what was written last is checked.
func TestKilledAroundCompaction(t *testing.T) {
	dir := storetest.TempDir(t)
	var mu sync.Mutex
	images := map[string]string{}
	take := func(at string) {
		mu.Lock()
		defer mu.Unlock()
		images[at] = afterKill(t, dir)
	}
	var compacting atomic.Bool
	s := mustOpen(t, Config{Dir: dir, step: func(step wal.Step) error {
		if compacting.Load() {
			take(step.Call)
		}
		return nil
	}})
	for i := range 200 {
		putText(t, s, fmt.Sprintf("old%03d", i), textOf(i))
	}
	flush(t, s)
	compacting.Store(true)
	if err := s.Compact(t.Context(), 1<<30); err != nil {
		t.Fatal(err)
	}
	compacting.Store(false)
	take("done")
	if err := s.Verify(t.Context(), 1<<30, func(where string) { t.Error(where) }); err != nil {
		t.Fatal(err)
	}
	if err := s.submit(t.Context(), &op{alone: func() error { return s.writer.mark(nil, true) }}); err != nil {
		t.Fatal(err)
	}
	take("a later mark")
	putText(t, s, "k", "v")
	take("a change")
	mu.Lock()
	defer mu.Unlock()
	for at, image := range images {
		var p countingProbe
		s := mustOpen(t, Config{Dir: image, Probe: p.probe})
		if p.calls > 0 {
			t.Errorf("killed at %q, the whole file was read", at)
		}
		for i := range 200 {
			val, _, err := s.Bucket("b").Get(t.Context(), fmt.Sprintf("old%03d", i))
			if err != nil || string(val) != textOf(i) {
				t.Fatalf("killed at %q: value %d is %.20q, %v", at, i, val, err)
			}
		}
	}
	for _, want := range []string{"compact: rename", "compact: sync folder", "compact: mark", "compact: finish", "remove"} {
		if images[want] == "" {
			t.Errorf("there was no step %q", want)
		}
	}
	image := images["done"]
	written, _ := writtenLast(t, filepath.Join(image, fileName))
	for _, page := range written {
		to := afterKill(t, image)
		flipByte(t, filepath.Join(to, fileName), int64(page)*4096+40, 0xff)
		var p countingProbe
		again, err := Open(t.Context(), Config{Dir: to, Probe: p.probe})
		if err == nil {
			again.Close()
		}
		if p.calls != 1 {
			t.Errorf("page %d: %d probes, %v", page, p.calls, err)
		}
	}
}

// A note in the log that makes no sense only costs time.
func TestWrongNotes(t *testing.T) {
	for _, note := range [][]byte{
		{0}, {0, 0x80}, {0, 1, 2, 3}, {0, 7, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1},
		pages.Note{Tx: 1 << 30}.Encode(),
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
	for range 2 { // after one checkpoint the mark has the note of the commit before it
		putText(t, s, "k", "v")
		full = true
		flush(t, s)
		full = false
	}
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
