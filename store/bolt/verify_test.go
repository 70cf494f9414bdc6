package bolt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
	"parley/timetest"
)

// zeroPageOf overwrites the page in which the file contains text, and keeps the file's
// time.
func zeroPageOf(t *testing.T, dir, text string) {
	t.Helper()
	data, err := os.ReadFile(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for at := 0; ; at += 4096 { // copies of a page stay in the file until they are overwritten
		i := bytes.Index(data[at:], []byte(text))
		if i < 0 {
			break
		}
		found, at = true, (at+i)/4096*4096
		if err := overwrite(file(dir), int64(at), make([]byte, 4096)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chtimes(file(dir), info.ModTime(), info.ModTime()); err != nil || !found {
		t.Fatalf("%q found: %v, %v", text, found, err)
	}
}

// P21: records on a lost page are each yielded as damaged, those before and after it are
// unchanged, nothing else is affected, and the log goes on after them, even if its end
// was lost, and more than once.
func TestLostPageOfLog(t *testing.T) {
	ctx := t.Context()
	for _, victim := range []int{1, 60, 120} {
		dir := storetest.TempDir(t)
		s := open(t, dir)
		written := 0
		write := func(n int) {
			t.Helper()
			for range n {
				written++
				seq, err := s.Log("l").Append(ctx, store.Any, fmt.Appendf(nil, "record %d. %s", written, strings.Repeat("x", 200)))
				if err != nil || seq != uint64(written) {
					t.Fatalf("page of %d lost: append of record %d: %d, %v", victim, written, seq, err)
				}
			}
		}
		check := func(victims ...int) {
			t.Helper()
			for from := range uint64(written) {
				n, lost := int(from), []int(nil)
				for r, err := range s.Log("l").Since(ctx, from) {
					n++
					if int(r.Seq) != n {
						t.Fatalf("record %d comes as number %d", r.Seq, n)
					}
					switch {
					case errors.Is(err, store.ErrDamaged):
						lost = append(lost, n)
					case err != nil || !bytes.HasPrefix(r.Body, fmt.Appendf(nil, "record %d.", n)):
						t.Errorf("record %d is %.20q, %v", n, r.Body, err)
					}
				}
				if n != written || len(lost) > 40*len(victims) {
					t.Errorf("page of %d lost: %d records come, damaged are %v", victim, n, lost)
				}
				for _, v := range victims {
					if from < uint64(v) && !slices.Contains(lost, v) {
						t.Errorf("the page of %d is lost, but damaged are %v", v, lost)
					}
				}
			}
		}
		lose := func(victim int) {
			t.Helper()
			s.Close()
			zeroPageOf(t, dir, fmt.Sprintf("record %d.", victim))
			var err error
			if s, err = bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(err error) { t.Error(err) }}); err != nil {
				t.Fatal(err)
			}
		}
		write(120)
		lose(victim)
		check(victim)
		if _, err := s.Bucket("b").Put(ctx, "k", nil, 0); err != nil {
			t.Errorf("put elsewhere: %v", err)
		}
		write(1)
		if _, err := s.Bucket("b").Put(ctx, "k", nil, store.Any); err != nil {
			t.Errorf("put elsewhere after that: %v", err)
		}
		write(119)
		check(victim)
		lose(240)
		write(5)
		check(victim, 240)
		lose(245)
		write(5)
		s.Close()
		s = open(t, dir)
		check(victim, 240, 245)
		if err := s.Log("l").Trim(ctx, 1<<62); !errors.Is(err, store.ErrDamaged) {
			t.Errorf("trim: %v", err)
		}
		for r, err := range s.Log("l").Since(ctx, 0) {
			if err == nil && r.Seq > 245 {
				t.Errorf("record %d is still there", r.Seq)
			}
		}
		s.Close()
	}
}

// P21: it is unknown where a log ended of which nothing can be read. It goes on all the
// same, and logs that were not on the lost page are not affected.
func TestLostLog(t *testing.T) {
	ctx := t.Context()
	dir := storetest.TempDir(t)
	s := open(t, dir)
	for _, name := range []string{"a", "b"} { // both are so small that they lie in the page that lists the logs
		if _, err := s.Log(name).Append(ctx, store.Any, []byte("the first of "+name)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Bucket("k").Put(ctx, "k", []byte("v"), 0); err != nil {
		t.Fatal(err)
	}
	s.Close()
	zeroPageOf(t, dir, "the first of a")
	read := func(name string) (seqs []uint64, texts []string) {
		t.Helper()
		for r, err := range s.Log(name).Since(ctx, 0) {
			if err != nil && !errors.Is(err, store.ErrDamaged) {
				t.Fatal(err)
			}
			seqs, texts = append(seqs, r.Seq), append(texts, string(r.Body))
		}
		return seqs, texts
	}
	for range 2 {
		var err error
		if s, err = bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(err error) { t.Error(err) }}); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "new"} {
			before, _ := read(name)
			last, err := store.LastNumber(ctx, s.Log(name))
			if err != nil {
				t.Fatal(err)
			}
			for _, wrong := range []uint64{0, last - 1, last + 1} {
				if _, err := s.Log(name).Append(ctx, wrong, []byte("wrong")); !errors.Is(err, store.ErrConflict) {
					t.Errorf("append to %s after %d, which ends with %d: %v", name, wrong, last, err)
				}
			}
			seq, err := s.Log(name).Append(ctx, last, []byte("next"))
			if err != nil || seq <= slices.Max(before) {
				t.Fatalf("append to %s after %d: %d, %v", name, before, seq, err)
			}
			seqs, texts := read(name)
			if texts[0] != "" || texts[len(texts)-1] != "next" || seqs[len(seqs)-1] != seq || !slices.IsSorted(seqs) {
				t.Errorf("log %s: %d %q", name, seqs, texts)
			}
		}
		if v, _, err := s.Bucket("k").Get(ctx, "k"); err != nil || string(v) != "v" {
			t.Errorf("elsewhere: %q, %v", v, err)
		}
		s.Close()
	}
}

// P18: Verify finds damage from while the Store was closed, at the given pace, and nobody
// waits for it.
func TestVerifyFindsDamage(t *testing.T) {
	dir := storetest.TempDir(t)
	if err := fill(dir); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file(dir))
	if err != nil {
		t.Fatal(err)
	}
	spoil(t, dir, bodyOf(7, 7)) // a value, and a record of a log
	if err := os.Chtimes(file(dir), info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	zeroPageOf(t, dir, bodyOf(3, 12))
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir, Probe: func(context.Context, string) ([]string, error) {
		t.Error("it was probed")
		return nil, nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var found []string
	report := func(where string) {
		found = append(found, where)
		if _, err := s.Bucket("new").Put(t.Context(), where, nil, store.Any); err != nil {
			t.Error(err)
		}
	}
	if err := s.Verify(t.Context(), 100<<20, report); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`bucket "b" key "key7"`, `log "log7" number 8`, `log "log12"`} {
		if !slices.Contains(found, want) {
			t.Errorf("%s was not found: %q", want, found)
		}
	}
	if len(found) > 6 {
		t.Errorf("found: %q", found)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Verify(ended, 1, report); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify = %v", err)
	}
}

// Verify keeps to its rate.
func TestVerifyPace(t *testing.T) {
	dir := storetest.TempDir(t)
	timetest.Test(t, func(t *testing.T) {
		s := open(t, dir)
		if _, err := s.Log("l").Append(t.Context(), store.Any, make([]byte, 1<<20), make([]byte, 1<<20), make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if err := s.Verify(t.Context(), 1<<20, func(where string) { t.Error(where) }); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < 3*time.Second || took > 4*time.Second {
			t.Errorf("3 MiB at 1 MiB/s took %v", took)
		}
		s.Close()
	})
}
