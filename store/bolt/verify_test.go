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
	"testing/synctest"
	"time"

	"parley/store"
	"parley/store/bolt"
)

// zeroPageOf overwrites the page in which the file says text, and leaves its
// time as it was.
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

// P21: records on a page that is lost are each yielded as damaged, those before
// and behind it are as they were, and nothing else is affected.
func TestLostPageOfLog(t *testing.T) {
	ctx := t.Context()
	for _, victim := range []int{1, 60, 120} {
		dir := tempDir(t)
		s := open(t, dir)
		l := s.Log("l")
		for i := range 120 {
			if _, err := l.Append(ctx, fmt.Appendf(nil, "record %d. %s", i+1, strings.Repeat("x", 200))); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		zeroPageOf(t, dir, fmt.Sprintf("record %d.", victim))
		s, err := bolt.Open(ctx, bolt.Config{Dir: dir, Stopped: func(err error) { t.Error(err) }})
		if err != nil {
			t.Fatal(err)
		}
		var lost []int
		n := 0
		for r, err := range s.Log("l").Since(ctx, 0) {
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
		if n != 120 || !slices.Contains(lost, victim) || len(lost) > 40 {
			t.Errorf("page of %d lost: %d records come, damaged are %v", victim, n, lost)
		}
		if _, err := s.Bucket("b").Put(ctx, "k", nil, 0); err != nil {
			t.Errorf("put elsewhere: %v", err)
		}
		if _, err := s.Log("l").Append(ctx, []byte("more")); victim == 120 && !errors.Is(err, store.ErrDamaged) || victim != 120 && err != nil {
			t.Errorf("page of %d lost: append: %v", victim, err)
		}
		if _, err := s.Bucket("b").Put(ctx, "k", nil, store.Any); err != nil {
			t.Errorf("put elsewhere after that: %v", err)
		}
		s.Close()
	}
}

// P18: what was damaged while the Store was closed is found while it is used,
// at the pace that was asked for, and nobody waits for it.
func TestVerifyFindsDamage(t *testing.T) {
	dir := tempDir(t)
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

// Verify takes its time.
func TestVerifyPace(t *testing.T) {
	dir := tempDir(t)
	synctest.Test(t, func(t *testing.T) {
		s := open(t, dir)
		if _, err := s.Log("l").Append(t.Context(), make([]byte, 1<<20), make([]byte, 1<<20), make([]byte, 1<<20)); err != nil {
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
