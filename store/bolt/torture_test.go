package bolt

import (
	"context"
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

	"go.etcd.io/bbolt"

	"parley/store"
)

// torture returns short, or long if PARLEY_TORTURE asks for the tests that take
// their time (make torture).
func torture(short, long int) int {
	if os.Getenv("PARLEY_TORTURE") != "" {
		return long
	}
	return short
}

// A writeCall is one write to the file of a Store.
type writeCall struct {
	at   int64
	data []byte
	size int64 // of the file at that time
}

// isHead reports whether w writes a meta page, which bbolt does after all other pages of
// a commit are synced, and syncs before the commit ends.
func (w writeCall) isHead() bool { return w.at < 2*int64(os.Getpagesize()) }

// A disk is between a Store and its file. It records the writes, and fails when it is
// told to.
type disk struct {
	mu     sync.Mutex
	calls  []writeCall
	failAt int // the number of the call that fails, from 1; 0: none
	with   error
	short  bool // half of it is written
}

// between puts d between s, which must not be in use yet, and its file. It uses a hook of
// bbolt that is meant for bbolt's own tests.
func (d *disk) between(s *Store) {
	field := reflect.ValueOf(s.db).Elem().FieldByName("ops").FieldByName("writeAt")
	hook := (*func([]byte, int64) (int, error))(unsafe.Pointer(field.UnsafeAddr()))
	write := *hook
	*hook = func(b []byte, at int64) (int, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		info, err := os.Stat(s.path)
		if err != nil {
			return 0, err
		}
		d.calls = append(d.calls, writeCall{at, slices.Clone(b), info.Size()})
		if d.failAt != len(d.calls) {
			return write(b, at)
		}
		n := 0
		if d.short {
			n, _ = write(b[:len(b)/2], at)
		}
		return n, d.with
	}
}

func (d *disk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.calls)
}

// A change was acknowledged after that many writes.
type change struct {
	n     int
	calls int
}

const tortureLogs = 5

func tortureBody(n int) string { return fmt.Sprintf("body %d %s", n, strings.Repeat("x", n*37%3000)) }

// makeChanges makes n changes of each kind and returns those that were acknowledged.
func makeChanges(ctx context.Context, s *Store, d *disk, first, n int) (done []change) {
	for i := first; i < first+n; i++ {
		_, err := s.Log(fmt.Sprint("log", i%tortureLogs)).Append(ctx, []byte(tortureBody(i)))
		_, err2 := s.Bucket("b").Put(ctx, fmt.Sprint("key", i), []byte(tortureBody(i)), store.Any)
		err3 := s.Queue("q").Push(ctx, fmt.Sprint("id", i), []byte(tortureBody(i)))
		if errors.Join(err, err2, err3) == nil {
			done = append(done, change{i, d.count()})
		}
	}
	return done
}

// missing returns which of the acknowledged changes s lacks.
func missing(ctx context.Context, s *Store, done []change) (lost []string) {
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
	dir := t.TempDir()
	s, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	d.between(s)
	done := makeChanges(ctx, s, d, 0, torture(25, 300))
	mark, err := os.ReadFile(markOf(s.path))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	closedMark, err := os.ReadFile(markOf(s.path))
	if err != nil {
		t.Fatal(err)
	}
	for i := range torture(60, 20_000) {
		cut := random.IntN(len(d.calls) + 1)
		m := mark
		if cut == len(d.calls) && random.IntN(2) == 0 {
			m = closedMark // which is written once all is synced
		}
		image := filepath.Join(t.TempDir(), fmt.Sprint(i))
		acknowledged, err := crashImage(image, base, d.calls, cut, m, random, done)
		if err != nil {
			t.Fatal(err)
		}
		opened, err := Open(ctx, Config{Dir: image})
		if err != nil {
			t.Fatalf("seed %d, image %d, cut at write %d of %d: %v", seed, i, cut, len(d.calls), err)
		}
		if lost := missing(ctx, opened, acknowledged); len(lost) > 0 {
			t.Errorf("seed %d, image %d, cut at write %d of %d: lost %v", seed, i, cut, len(d.calls), lost)
		}
		if _, err := opened.Log("log0").Append(ctx, []byte("more")); err != nil {
			t.Errorf("seed %d, image %d: append: %v", seed, i, err)
		}
		if err := errors.Join(opened.Close(), os.RemoveAll(image)); err != nil {
			t.Fatal(err)
		}
	}
}

// crashImage writes to dir what a power cut after the first cut calls leaves, and returns
// the changes that were acknowledged by then.
func crashImage(dir string, base []byte, calls []writeCall, cut int, mark []byte, random *rand.Rand, done []change) (acknowledged []change, err error) {
	synced := cut // of what comes later, anything may be missing
	for synced > 0 && synced < len(calls) && !calls[synced-1].isHead() && !calls[synced].isHead() {
		synced--
	}
	if synced > 0 && calls[synced-1].isHead() && synced == cut {
		synced-- // its own sync may be under way
	}
	for _, d := range done {
		if d.calls <= synced {
			acknowledged = append(acknowledged, d)
		}
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "parley.db")
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(base)
	for _, c := range calls[:synced] {
		_, e := f.WriteAt(c.data, c.at)
		err = errors.Join(err, e)
	}
	for _, i := range random.Perm(cut - synced) {
		err = errors.Join(err, writeTorn(f, calls[synced+i], random))
	}
	if cut > 0 {
		err = errors.Join(err, f.Truncate(max(calls[cut-1].size, int64(len(base)))))
	}
	return acknowledged, errors.Join(err, f.Close(), os.WriteFile(markOf(path), mark, 0o600))
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
	n := torture(2, 30)
	for _, name := range slices.Sorted(maps.Keys(failures)) {
		for at := 1; ; at++ {
			how, dir := failures[name], t.TempDir()
			d := &disk{failAt: at, with: how.with, short: how.short}
			stopped := false
			s, err := Open(ctx, Config{Dir: dir, Stopped: func(error) { stopped = true }})
			if err != nil {
				t.Fatal(err)
			}
			d.between(s)
			done := makeChanges(ctx, s, d, 0, n)
			over := d.count() < at
			if full := errors.Is(how.with, syscall.ENOSPC); full && !stopped && !over {
				more := makeChanges(ctx, s, d, n, n)
				if len(more) < n {
					t.Errorf("%s at write %d: it did not get over it: %d of %d", name, at, len(more), n)
				}
				done = append(done, more...)
			} else if !full && !stopped && !over {
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
			if err := s.db.View(func(tx *bbolt.Tx) error {
				damaged, err := findDamaged(tx)
				if len(damaged) > 0 {
					err = fmt.Errorf("damaged: %q", damaged)
				}
				return err
			}); err != nil {
				t.Errorf("%s at write %d: %v", name, at, err)
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
	ctx, dir := t.Context(), t.TempDir()
	s, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	d := &disk{}
	d.between(s)
	var marks [][]byte
	note := func() {
		mark, err := os.ReadFile(markOf(s.path))
		if err != nil {
			t.Fatal(err)
		}
		marks = append(marks, mark)
	}
	note()
	done := makeChanges(ctx, s, d, 0, 5)
	if err := s.mark(nil, false); err != nil {
		t.Fatal(err)
	}
	note()
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	note()
	whole, err := os.ReadFile(s.path)
	if err != nil {
		t.Fatal(err)
	}
	whole = whole[:min(len(whole), 1<<20)]
	for n, mark := range marks {
		for size := 0; size <= len(mark); size += torture(101, 3) {
			image := t.TempDir()
			path := filepath.Join(image, "parley.db")
			torn := slices.Concat(mark[:size], make([]byte, len(mark)-size))
			if size%2 == 1 {
				torn = mark[:size]
			}
			if err := errors.Join(os.WriteFile(path, whole, 0o600), os.WriteFile(markOf(path), torn, 0o600)); err != nil {
				t.Fatal(err)
			}
			opened, err := Open(ctx, Config{Dir: image})
			if err != nil {
				t.Fatalf("mark %d, %d bytes of it: %v", n, size, err)
			}
			if lost := missing(ctx, opened, done); len(lost) > 0 {
				t.Errorf("mark %d, %d bytes of it: lost %v", n, size, lost)
			}
			if err := errors.Join(opened.Close(), os.RemoveAll(image)); err != nil {
				t.Fatal(err)
			}
		}
	}
}
