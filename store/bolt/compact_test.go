package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"parley/store"
	"parley/store/bolt/wal"
	"parley/store/storetest"
)

const fullSpeed = 1 << 30 // bytes a second

// contents returns all entries and sequences of the file, but what it says about itself.
func contents(t *testing.T, s *Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := s.db.bolt().View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(top []byte, parts *bbolt.Bucket) error {
			return parts.ForEachBucket(func(name []byte) error {
				in := parts.Bucket(name)
				if string(top) == "store" {
					return nil
				}
				all[fmt.Sprintf("%s %s", top, name)] = fmt.Sprint(in.Sequence())
				return in.ForEach(func(k, v []byte) error {
					all[fmt.Sprintf("%s %s %x", top, name, k)] = string(v)
					return nil
				})
			})
		})
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// usedOf returns the bytes of the file, without those that are reserved.
func usedOf(t *testing.T, s *Store) (size int64) {
	t.Helper()
	if err := s.db.bolt().View(func(tx *bbolt.Tx) error {
		size = tx.Size()
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return size
}

// fillAndDelete fills stores with the same n entries of each kind, and deletes most of them.
// What is left of 160 takes some slices to copy.
func fillAndDelete(ctx context.Context, t *testing.T, n int, stores ...*Store) {
	t.Helper()
	for _, s := range stores {
		s.SetNow(func() time.Time { return time.Unix(0, 0) }) // it is in the IDs that were seen
		for i := range n {
			log := s.Log(fmt.Sprint("log", i%4))
			_, err := log.Append(ctx, store.Any, bytes.Repeat(fmt.Appendf(nil, "%3d", i), 20_000))
			_, err2 := s.Bucket("b").Put(ctx, fmt.Sprint("key", i), bytes.Repeat(fmt.Appendf(nil, "%3d", i), 20_000), store.Any)
			_, err3 := s.Bucket(fmt.Sprint("small", i)).Put(ctx, "k", []byte("value"), store.Any)
			err4 := s.Queue("q").Push(ctx, fmt.Sprint("id", i), make([]byte, 1000))
			if err := errors.Join(err, err2, err3, err4); err != nil {
				t.Fatal(err)
			}
		}
		for l := range 4 {
			if err := s.Log(fmt.Sprint("log", l)).Trim(ctx, uint64(n/8)); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n * 3 / 4 {
			if err := s.Bucket("b").Delete(ctx, fmt.Sprint("key", i)); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Flush(ctx); err != nil {
			t.Fatal(err)
		}
	}
}

// changeSome changes entries everywhere in the order of the keys.
func changeSome(ctx context.Context, n int, s *Store) error {
	val := fmt.Appendf(nil, "changed %d", n)
	_, err := s.Log("log0").Append(ctx, store.Any, val, val)
	_, err2 := s.Log(fmt.Sprint("a log ", n)).Append(ctx, store.Any, val)
	_, err3 := s.Bucket("b").Put(ctx, fmt.Sprint("key", 120+n), val, store.Any)
	_, err4 := s.Bucket(fmt.Sprint("zone ", n)).Put(ctx, "k", val, store.Any)
	err5 := s.Bucket("b").Delete(ctx, fmt.Sprint("key", 159-n))
	err6 := s.Log("log3").Trim(ctx, uint64(20+n))
	err7 := s.Queue("q").Push(ctx, fmt.Sprint("late", n), val)
	return errors.Join(err, err2, err3, err4, err5, err6, err7)
}

// A compacted store has the same entries as one that was changed in the same way, between
// the slices too, and its file is smaller.
func TestCompact(t *testing.T) {
	ctx := t.Context()
	other, err := Open(ctx, Config{Dir: storetest.TempDir(t)})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	var s *Store
	n := 0
	step := func(step wal.Step) error {
		if step.Call != "compact: slice" && step.Call != "compact: sync" {
			return nil
		}
		n++
		err := errors.Join(changeSome(ctx, n, s), changeSome(ctx, n, other))
		if n%2 == 1 {
			err = errors.Join(err, s.BeginCheckpoint(ctx))
		}
		return err
	}
	dir := storetest.TempDir(t)
	if s, err = Open(ctx, Config{Dir: dir, step: step}); err != nil {
		t.Fatal(err)
	}
	fillAndDelete(ctx, t, 160, s, other)
	path := filepath.Join(dir, fileName)
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	const group = 54321
	isRoot := os.Chown(path, os.Getuid(), group) == nil
	large := make([]byte, 3<<20) // more than a slice
	if err := errors.Join(s.Queue("large").Push(ctx, "id", large), other.Queue("large").Push(ctx, "id", large)); err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	before := usedOf(t, s)
	if err := s.Compact(ctx, fullSpeed); err != nil {
		t.Fatal(err)
	}
	if n < 4 {
		t.Errorf("%d slices", n)
	}
	if after := usedOf(t, s); after > before*2/3 {
		t.Errorf("the file had %d bytes, and has %d", before, after)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o640 || isRoot && info.Sys().(*syscall.Stat_t).Gid != group {
		t.Errorf("the new file is %v, %v", info, err)
	}
	if err := errors.Join(changeSome(ctx, 30, s), changeSome(ctx, 30, other), s.Close(), other.Flush(ctx)); err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 3 { // and the lock and the mark
		t.Errorf("files after a clean end: %q", left)
	}
	probe := func(context.Context, string) ([]string, error) { return nil, errors.New("not closed cleanly") }
	if s, err = Open(ctx, Config{Dir: dir, Probe: probe}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if got, want := contents(t, s), contents(t, other); !maps.Equal(got, want) {
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%s: %.20q, want %.20q", k, got[k], v)
			}
		}
		t.Errorf("%d entries, want %d", len(got), len(want))
	}
}

// A transaction that began before the new file was there goes on in the former one, which
// is closed after it. One that is a link stays one.
func TestCompactWhileRead(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s, err := Open(ctx, Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	elsewhere := filepath.Join(storetest.TempDir(t), "real.db")
	path := filepath.Join(dir, fileName)
	data, err := os.ReadFile(path)
	if err := errors.Join(err, os.WriteFile(elsewhere, data, 0o600), os.Remove(path), os.Symlink(elsewhere, path)); err != nil {
		t.Fatal(err)
	}
	if s, err = Open(ctx, Config{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillAndDelete(ctx, t, 160, s)
	earlier, err := s.db.begin()
	if err != nil {
		t.Fatal(err)
	}
	former := s.db.file.Load()
	if err := s.Compact(ctx, fullSpeed); err != nil {
		t.Fatal(err)
	}
	if err := s.Bucket("b").Delete(ctx, "key150"); err != nil {
		t.Fatal(err)
	}
	if v, err := s.part("bucket", "b").get(earlier, encodeKey("key150")); err != nil || !strings.HasSuffix(string(v), "150150") {
		t.Errorf("the earlier transaction reads %.30q, %v", v, err)
	}
	select {
	case <-former.Closed():
		t.Error("the former file was closed before that")
	default:
	}
	earlier.end()
	<-former.Closed()
	if info, err := os.Lstat(path); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
}

// isOfCompaction reports whether step is one of a compaction, when no other changes are made.
func isOfCompaction(step wal.Step) bool {
	return strings.HasPrefix(step.Call, "compact: ") || step.Call == "remove" || step.Call == "sync folder"
}

// A process that is killed at any step of a compaction leaves one whole store, with all
// that was acknowledged, and the next start removes the draft.
func TestCompactKilled(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	var s *Store
	var done []accepted
	n := 0
	d := &disk{dir: dir}
	var observe atomic.Bool // the writer may come by for a checkpoint at any time
	check := func(step wal.Step) error {
		if !observe.Load() || !isOfCompaction(step) {
			return nil
		}
		if step.Call == "compact: slice" {
			observe.Store(false)
			done = append(done, makeChanges(ctx, s, d, 5*len(done), 1)...) // without a checkpoint
			observe.Store(true)
		}
		n++
		image := storetest.TempDir(t)
		if err := storetest.CopyDir(image, dir); err != nil {
			return err
		}
		opened, err := Open(ctx, Config{Dir: image})
		if err != nil {
			t.Errorf("%s: %v", step.Call, err)
			return nil
		}
		if lost := missing(ctx, opened, done); len(lost) > 0 {
			t.Errorf("%s: lost %v", step.Call, lost)
		}
		if _, err := opened.Log("log0").Append(ctx, store.Any, []byte("more")); err != nil {
			t.Errorf("%s: append: %v", step.Call, err)
		}
		if drafts, _ := filepath.Glob(filepath.Join(image, "*.compact")); len(drafts) > 0 {
			t.Errorf("%s: left %q", step.Call, drafts)
		}
		return errors.Join(opened.Close(), CheckLatest(filepath.Join(image, fileName)), os.RemoveAll(image))
	}
	s, err := Open(ctx, Config{Dir: dir, step: check})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillAndDelete(ctx, t, 160, s)
	done = makeChanges(ctx, s, d, 0, 7)
	observe.Store(true)
	if err := s.Compact(ctx, fullSpeed); err != nil {
		t.Fatal(err)
	}
	observe.Store(false)
	if n < 12 {
		t.Errorf("%d steps", n)
	}
}

// A compaction whose step fails leaves no draft, and the store is what it was. Only after
// the exchange of the files may it have to stop.
func TestCompactFails(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for at := 1; ; at++ {
			if !failCompaction(t, at, cause) {
				break
			}
		}
	}
}

// failCompaction makes that step of a compaction fail, if there are so many.
func failCompaction(t *testing.T, at int, cause error) (failed bool) {
	t.Helper()
	ctx, dir := t.Context(), storetest.TempDir(t)
	steps := 0
	call := ""
	observe := false
	step := func(step wal.Step) error {
		if !observe || !isOfCompaction(step) {
			return nil
		}
		steps++
		if steps != at {
			return nil
		}
		call = step.Call
		return cause
	}
	stopped := false
	s, err := Open(ctx, Config{Dir: dir, step: step, Stopped: func(error) { stopped = true }})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	fillAndDelete(ctx, t, 8, s)
	d := &disk{dir: dir}
	done := makeChanges(ctx, s, d, 0, 7)
	observe = true
	err = s.Compact(ctx, fullSpeed)
	observe = false
	if steps < at {
		return false
	}
	needless := call == "sync folder" && errors.Is(cause, syscall.ENOSPC) // for the note of a checkpoint
	if !needless && (err == nil) != (call == "compact: mark") {
		t.Errorf("%s: Compact = %v", call, err)
	}
	if strings.HasPrefix(call, "compact: ") && stopped != (call == "compact: sync folder") {
		t.Errorf("%s: stopped is %v", call, stopped)
	}
	if drafts, _ := filepath.Glob(filepath.Join(dir, "*.compact")); len(drafts) > 0 {
		t.Errorf("%s: left %q", call, drafts)
	}
	if more := makeChanges(ctx, s, d, 100, 7); !stopped {
		done = append(done, more...)
		if len(more) != 7 {
			t.Errorf("%s: it did not go on", call)
		}
	}
	if err := s.Close(); err != nil {
		t.Errorf("%s: %v", call, err)
	}
	if s, err = Open(ctx, Config{Dir: dir}); err != nil {
		t.Fatalf("%s: %v", call, err)
	}
	defer s.Close()
	if lost := missing(ctx, s, done); len(lost) > 0 {
		t.Errorf("%s: lost %v", call, lost)
	}
	return true
}

// Only one compaction is made at a time, and Close ends it.
func TestCompactEnds(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	var s *Store
	begun := false
	closed := make(chan error, 1)
	step := func(step wal.Step) error {
		if step.Call != "compact: slice" || begun {
			return nil
		}
		begun = true
		if err := s.Compact(ctx, fullSpeed); !errors.Is(err, errCompacting) {
			t.Errorf("another compaction: %v", err)
		}
		go func() { closed <- s.Close() }()
		for !s.isClosed() {
			runtime.Gosched()
		}
		return nil
	}
	s, err := Open(ctx, Config{Dir: dir, step: step})
	if err != nil {
		t.Fatal(err)
	}
	fillAndDelete(ctx, t, 160, s)
	if err := s.Compact(ctx, fullSpeed); !errors.Is(err, store.ErrClosed) {
		t.Errorf("Compact = %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if drafts, _ := filepath.Glob(filepath.Join(dir, "*.compact")); len(drafts) > 0 {
		t.Errorf("left %q", drafts)
	}
	if err := CheckLatest(filepath.Join(dir, fileName)); err != nil {
		t.Error(err)
	}
}
