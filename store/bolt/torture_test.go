package bolt

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"unsafe"

	"parley/store"
	"parley/store/bolt/mark"
	"parley/store/bolt/wal"
	"parley/store/storetest"
)

// torture returns short, or long if PARLEY_TORTURE asks for the tests that take
// their time (make torture).
func torture(short, long int) int {
	if os.Getenv("PARLEY_TORTURE") != "" {
		return long
	}
	return short
}

// A writeCall is one write to the file of a Store, or one step of its log.
type writeCall struct {
	at   int64
	data []byte
	size int64     // of the file at that time
	log  *wal.Step // nil: it is a write to the file
	mark []byte    // as it was at that time
}

// isHead reports whether w writes a meta page, which bbolt does after all other pages of
// a commit are synced, and syncs before the commit ends.
func (w writeCall) isHead() bool { return w.at < 2*int64(os.Getpagesize()) }

// knowsOf reports whether the mark at the time of w knows of the last of the calls, a head:
// it is written when that is synced.
func (w writeCall) knowsOf(calls []writeCall) bool {
	if len(calls) == 0 || !calls[len(calls)-1].isHead() {
		return false
	}
	var m mark.Mark
	_ = json.Unmarshal(w.mark, &m)
	const txAt = 64 // see package pages
	return binary.NativeEndian.Uint64(calls[len(calls)-1].data[txAt:]) <= uint64(m.Tx)
}

// isDrop reports whether w drops a segment of the log, after a checkpoint.
func (w writeCall) isDrop() bool {
	return w.log != nil && (w.log.Call == "remove" || filepath.Base(w.log.To) == "spare")
}

// A disk is between a Store and its files. It records the writes, and fails when it is
// told to.
type disk struct {
	mu     sync.Mutex
	dir    string
	calls  []writeCall
	failAt int // the number of the call that fails, from 1; 0: none
	with   error
	short  bool // half of it is written
}

// open opens the Store in d.dir behind d.
func (d *disk) open(ctx context.Context, cfg Config) (*Store, error) {
	cfg.Dir = d.dir
	cfg.step = d.step
	s, err := Open(ctx, cfg)
	if err == nil {
		d.between(s)
	}
	return s, err
}

// between puts d between s, which must not be in use yet, and its file. It uses a hook of
// bbolt that is meant for bbolt's own tests.
func (d *disk) between(s *Store) {
	field := reflect.ValueOf(s.db.bolt()).Elem().FieldByName("ops").FieldByName("writeAt")
	hook := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	write := *hook
	*hook = func(b []byte, at int64) (int, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		info, err := os.Stat(s.db.path)
		if err != nil {
			return 0, err
		}
		if !d.record(writeCall{at: at, data: slices.Clone(b), size: info.Size()}) {
			return write(b, at)
		}
		n := 0
		if d.short {
			n, _ = write(b[:len(b)/2], at)
		}
		return n, d.with
	}
}

// record records a call and reports whether it fails.
func (d *disk) record(c writeCall) bool {
	c.mark, _ = os.ReadFile(mark.Path(filepath.Join(d.dir, fileName)))
	d.calls = append(d.calls, c)
	return d.failAt == len(d.calls)
}

// step is a step of the log.
func (d *disk) step(step wal.Step) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	step.Data = slices.Clone(step.Data)
	if !d.record(writeCall{log: &step}) {
		return nil
	}
	if d.short && step.Call == "write" {
		f, err := os.OpenFile(step.Path, os.O_RDWR, 0)
		if err == nil {
			_, _ = f.WriteAt(step.Data[:len(step.Data)/2], step.At)
			f.Close()
		}
	}
	return fmt.Errorf("%s %s: %w", step.Call, step.Path, d.with)
}

// fail makes the next call fail.
func (d *disk) fail(with error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = len(d.calls) + 1
	d.with = with
}

// heal has no call fail any more.
func (d *disk) heal() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.failAt = 0
}

// hasFailedDrop reports whether the call that fails was made, and drops a segment: that is
// done later, and stops nothing.
func (d *disk) hasFailedDrop() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return 0 < d.failAt && d.failAt <= len(d.calls) && d.calls[d.failAt-1].isDrop()
}

func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

// An accepted change was acknowledged after that many writes.
type accepted struct {
	n     int
	calls int
}

const tortureLogs = 5

func tortureBody(n int) string { return fmt.Sprintf("body %d %s", n, strings.Repeat("x", n*37%3000)) }

// makeChanges makes n changes of each kind, each after a deferred one, and returns those
// that were acknowledged.
func makeChanges(ctx context.Context, s *Store, d *disk, first, n int) (done []accepted) {
	for i := first; i < first+n; i++ {
		_, err0 := s.Bucket("b").Put(store.Deferred(ctx), fmt.Sprint("deferred", i), []byte(tortureBody(i)), store.Any)
		_, err := s.Log(fmt.Sprint("log", i%tortureLogs)).Append(ctx, store.Any, []byte(tortureBody(i)))
		_, err2 := s.Bucket("b").Put(ctx, fmt.Sprint("key", i), []byte(tortureBody(i)), store.Any)
		err3 := s.Queue("q").Push(ctx, fmt.Sprint("id", i), []byte(tortureBody(i)))
		if errors.Join(err0, err, err2, err3) == nil {
			done = append(done, accepted{i, d.count()})
		}
		switch i % 5 {
		case 2: // a checkpoint while changes go on
			_ = s.BeginCheckpoint(ctx)
		case 4: // one that they wait for
			_ = s.Flush(ctx)
		}
	}
	return done
}

// missing returns which of the acknowledged changes s lacks.
func missing(ctx context.Context, s *Store, done []accepted) (lost []string) {
	there := map[string]bool{}
	for l := range tortureLogs {
		for r, err := range s.Log(fmt.Sprint("log", l)).Since(ctx, 0) {
			if err != nil {
				return []string{err.Error()}
			}
			there[string(r.Body)] = true
		}
	}
	q, ids := s.Queue("q"), map[string]bool{}
	n, err := q.Len(ctx)
	if err != nil {
		return []string{err.Error()}
	}
	for range n {
		item, err := q.Pull(ctx)
		if err != nil {
			return []string{err.Error()}
		}
		ids[item.ID] = true
	}
	for _, d := range done {
		val, _, err := s.Bucket("b").Get(ctx, fmt.Sprint("key", d.n))
		before, _, errBefore := s.Bucket("b").Get(ctx, fmt.Sprint("deferred", d.n))
		if errBefore != nil || string(before) != tortureBody(d.n) {
			lost = append(lost, fmt.Sprint("what was deferred before ", d.n))
		}
		if !there[tortureBody(d.n)] || err != nil || string(val) != tortureBody(d.n) || !ids[fmt.Sprint("id", d.n)] {
			lost = append(lost, fmt.Sprint(d.n))
		}
	}
	return lost
}

// TestCrashImagesTorture checks that after a power cut at any moment, whatever the disk
// did with the writes that were not synced yet (any of them, in any order, torn at the
// sectors), the Store opens and has everything that was acknowledged.
func TestCrashImagesTorture(t *testing.T) {
	ctx, seed := t.Context(), rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 1))
	d := &disk{dir: storetest.TempDir(t)}
	s, err := d.open(ctx, Config{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(s.db.path)
	if err != nil {
		t.Fatal(err)
	}
	done := makeChanges(ctx, s, d, 0, torture(25, 300))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closedMark, err := os.ReadFile(mark.Path(s.db.path))
	if err != nil {
		t.Fatal(err)
	}
	d.calls = append(d.calls, writeCall{log: &wal.Step{Call: "end"}, mark: closedMark})
	images := storetest.TempDir(t)
	for i := range torture(300, 20_000) {
		cut := random.IntN(len(d.calls))
		if i < len(d.calls) {
			cut = i
		}
		image := filepath.Join(images, fmt.Sprint(i))
		at := fmt.Sprintf("seed %d, image %d, cut at call %d of %d (%v)", seed, i, cut, len(d.calls), d.calls[cut].log)
		if err := d.crashImage(image, base, cut, random); err != nil {
			t.Fatal(err)
		}
		opened, err := Open(ctx, Config{Dir: image})
		if err != nil {
			t.Fatalf("%s: %v", at, err)
		}
		acknowledged := slices.DeleteFunc(slices.Clone(done), func(a accepted) bool { return a.calls > cut })
		if lost := missing(ctx, opened, acknowledged); len(lost) > 0 {
			t.Errorf("%s: lost %v", at, lost)
		}
		if _, err := opened.Log("log0").Append(ctx, store.Any, []byte("more")); err != nil {
			t.Errorf("%s: append: %v", at, err)
		}
		if err := errors.Join(opened.Close(), os.RemoveAll(image)); err != nil {
			t.Fatal(err)
		}
	}
}

// crashImage writes to dir what a power cut leaves when all calls before cut were made and
// that one was begun.
func (d *disk) crashImage(dir string, base []byte, cut int, random *rand.Rand) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	var calls []writeCall // to the file
	dropped := false
	for _, c := range d.calls[:cut] {
		if c.log == nil {
			calls = append(calls, c)
		}
		dropped = c.log != nil && (dropped || c.isDrop() || c.log.Call == "mkdir") // which follow a sync
	}
	path := filepath.Join(dir, fileName)
	if err := fileImage(path, base, calls, dropped || d.calls[cut].knowsOf(calls), random); err != nil {
		return err
	}
	if err := os.WriteFile(mark.Path(path), d.calls[cut].mark, 0o600); err != nil {
		return err
	}
	return d.logImage(path, cut, random)
}

// fileImage writes what the calls leave of the file, which is synced if the last of them
// are.
func fileImage(path string, base []byte, calls []writeCall, isSynced bool, random *rand.Rand) error {
	synced := len(calls) // of what comes later, anything may be missing
	for !isSynced && synced > 0 && (synced == len(calls) || !calls[synced-1].isHead() && !calls[synced].isHead()) {
		synced--
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(base)
	for _, c := range calls[:synced] {
		_, e := f.WriteAt(c.data, c.at)
		err = errors.Join(err, e)
	}
	for _, i := range random.Perm(len(calls) - synced) {
		err = errors.Join(err, writeTorn(f, calls[synced+i], random))
	}
	if len(calls) > 0 {
		err = errors.Join(err, f.Truncate(max(calls[len(calls)-1].size, int64(len(base)))))
	}
	return errors.Join(err, f.Close())
}

// A logFile is a file of the log that is being imagined.
type logFile struct {
	data   []byte
	writes []wal.Step // that are not synced
}

// write makes some of the writes that are not synced.
func (f *logFile) write(random *rand.Rand) []byte {
	for _, w := range f.writes {
		if w.Call == "truncate" {
			f.data = append(f.data, make([]byte, max(0, int(w.At)-len(f.data)))...)[:w.At]
			continue
		}
		f.data = append(f.data, make([]byte, max(0, int(w.At)+len(w.Data)-len(f.data)))...)
		_ = writeTorn(sliceWriter(f.data), writeCall{at: w.At, data: w.Data}, random)
	}
	return f.data
}

type sliceWriter []byte

// WriteAt implements [io.WriterAt].
func (w sliceWriter) WriteAt(b []byte, at int64) (int, error) { return copy(w[at:], b), nil }

// changesFolder reports whether a step changes what files a log has.
func changesFolder(s *wal.Step) bool {
	return slices.Contains([]string{"create", "rename", "remove"}, s.Call)
}

// logImage writes what the calls leave of the log of the file at path. Of the changes of
// the folder that are not synced, the last may be missing.
func (d *disk) logImage(path string, cut int, random *rand.Rand) error {
	synced := 0
	changes := 0
	for i, c := range d.calls[:cut] {
		switch {
		case c.log == nil:
		case c.log.Call == "sync folder":
			synced = i
			changes = 0
		case changesFolder(c.log):
			changes++
		}
	}
	kept := random.IntN(changes + 1) // of those that are not synced
	files := map[string]*logFile{}   // by the names that they have in the end
	names := map[string]*logFile{}   // by those that the store has given them
	unsynced := 0
	for i, c := range d.calls[:min(cut+1, len(d.calls))] {
		if c.log == nil || i == cut && c.log.Call != "write" {
			continue
		}
		if changesFolder(c.log) && i > synced {
			unsynced++
		}
		durable := i < synced || unsynced <= kept
		switch step := *c.log; step.Call {
		case "create":
			names[step.Path] = &logFile{}
			if durable {
				files[step.Path] = names[step.Path]
			}
		case "rename":
			names[step.To] = names[step.Path]
			delete(names, step.Path)
			if durable {
				delete(files, step.Path)
				files[step.To] = names[step.To]
			}
		case "remove":
			delete(names, step.Path)
			if durable {
				delete(files, step.Path)
			}
		case "write", "truncate":
			names[step.Path].writes = append(names[step.Path].writes, step)
		case "sync":
			f := names[step.Path]
			for _, w := range f.writes {
				if w.Call == "truncate" {
					f.data = append(f.data, make([]byte, max(0, int(w.At)-len(f.data)))...)[:w.At]
					continue
				}
				f.data = append(f.data, make([]byte, max(0, int(w.At)+len(w.Data)-len(f.data)))...)
				copy(f.data[w.At:], w.Data)
			}
			f.writes = nil
		}
	}
	if len(files) == 0 {
		return nil
	}
	if err := os.Mkdir(LogOf(path), 0o700); err != nil {
		return err
	}
	for name, f := range files {
		if err := os.WriteFile(filepath.Join(LogOf(path), filepath.Base(name)), f.write(random), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// writeTorn writes all of c, nothing of it, or some of its sectors.
func writeTorn(w io.WriterAt, c writeCall, random *rand.Rand) error {
	const sector = 512
	how := random.IntN(3)
	for at := 0; at < len(c.data); at += sector {
		if how == 0 || how == 1 && random.IntN(2) == 0 {
			continue
		}
		if _, err := w.WriteAt(c.data[at:min(at+sector, len(c.data))], c.at+int64(at)); err != nil {
			return err
		}
	}
	return nil
}

// TestFailedWritesTorture makes each write fail in turn, in each way. What was
// acknowledged before and after is there after the next start, a full disk needs no
// restart, and no refused change is there in part.
func TestFailedWritesTorture(t *testing.T) {
	ctx := t.Context()
	type failure struct {
		with  error
		short bool
	}
	failures := map[string]failure{
		"no space":       {with: syscall.ENOSPC},
		"half, no space": {with: syscall.ENOSPC, short: true},
		"bad disk":       {with: syscall.EIO},
		"half, bad disk": {with: syscall.EIO, short: true},
	}
	n := torture(3, 30)
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		for at := 1; ; at++ {
			how, dir := failures[name], storetest.TempDir(t)
			d := &disk{dir: dir, failAt: at, with: how.with, short: how.short}
			stopped := false
			s, err := d.open(ctx, Config{Stopped: func(error) { stopped = true }})
			if err != nil {
				t.Fatal(err)
			}
			done := makeChanges(ctx, s, d, 0, n)
			_ = s.Flush(ctx) // a checkpoint may still be going on, and fail
			over := d.count() < at
			if full := errors.Is(how.with, syscall.ENOSPC); full && !stopped && !over {
				more := makeChanges(ctx, s, d, n, n)
				if len(more) < n {
					t.Errorf("%s at write %d: it did not get over it: %d of %d", name, at, len(more), n)
				}
				done = append(done, more...)
			} else if !full && !stopped && !over && !d.hasFailedDrop() {
				t.Errorf("%s at write %d: it went on as if nothing was wrong", name, at)
			}
			if err := s.Close(); err != nil {
				t.Errorf("%s at write %d: close: %v", name, at, err)
			}
			if s, err = Open(ctx, Config{Dir: dir}); err != nil {
				t.Fatalf("%s at write %d: open: %v", name, at, err)
			}
			if lost := missing(ctx, s, done); len(lost) > 0 {
				t.Errorf("%s at write %d: lost %v", name, at, lost)
			}
			if damaged, _, err := readAll(ctx, s.db.path); err != nil || len(damaged) > 0 {
				t.Errorf("%s at write %d: damaged: %q, %v", name, at, damaged, err)
			}
			s.Close()
			if over {
				break
			}
		}
	}
}

// TestMarkImagesTorture checks that whatever a power cut leaves of the mark, the
// unchanged Store opens and has everything that was acknowledged.
func TestMarkImagesTorture(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{dir: dir}
	var images []string
	note := func() {
		image := storetest.TempDir(t)
		if err := storetest.CopyDir(image, dir); err != nil {
			t.Fatal(err)
		}
		images = append(images, image)
	}
	done := makeChanges(ctx, s, d, 0, 5)
	note()
	done = append(done, makeChanges(ctx, s, d, 5, 2)...)
	if err := s.writer.mark(nil, false); err != nil {
		t.Fatal(err)
	}
	note()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	note()
	for n, image := range images {
		text, err := os.ReadFile(mark.Path(filepath.Join(image, fileName)))
		if err != nil {
			t.Fatal(err)
		}
		for size := 0; size <= len(text); size += torture(101, 3) {
			copied := storetest.TempDir(t)
			path := filepath.Join(copied, fileName)
			torn := slices.Concat(text[:size], make([]byte, len(text)-size))
			if size%2 == 1 {
				torn = text[:size]
			}
			if err := errors.Join(storetest.CopyDir(copied, image), os.WriteFile(mark.Path(path), torn, 0o600)); err != nil {
				t.Fatal(err)
			}
			opened, err := Open(ctx, Config{Dir: copied})
			if err != nil {
				t.Fatalf("mark %d, %d bytes of it: %v", n, size, err)
			}
			had := done
			if n == 0 {
				had = done[:5]
			}
			if lost := missing(ctx, opened, had); len(lost) > 0 {
				t.Errorf("mark %d, %d bytes of it: lost %v", n, size, lost)
			}
			if err := errors.Join(opened.Close(), os.RemoveAll(copied)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
