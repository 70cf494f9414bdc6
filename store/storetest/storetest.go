// Package storetest checks that a Store keeps its promises, and wraps one to
// interrupt it.
package storetest

import (
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"parley/store"
	"parley/timetest"
)

// Run checks a driver. start is called with the test of each case and returns a function
// that opens its Store. The Store is empty at first. After Close and another open, a
// durable driver still has its data.
func Run(t *testing.T, durable bool, start func(*testing.T) (open func() store.Store)) {
	RunUntimed(t, durable, start)
	for _, c := range slices.Concat(timed, timedLocks) {
		t.Run(c.name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				s := start(t)()
				defer s.Close()
				c.run(t, s)
			})
		})
	}
}

// RunUntimed is Run without the cases in which time passes, for a Store that cannot be in
// a bubble of synctest.
func RunUntimed(t *testing.T, durable bool, start func(*testing.T) (open func() store.Store)) {
	for _, set := range [][]check{buckets, logs, queues, locks, stores} {
		for _, c := range set {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, start(t)())
			})
		}
	}
	if durable {
		for _, c := range slices.Concat(reopened, reopenedLocks) {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				c.run(t, start(t))
			})
		}
	}
}

// A check is one promise. It may leave its Store open.
type check struct {
	name string
	run  func(*testing.T, store.Store)
}

// names are names and keys that have caused trouble.
var names = []string{"", "a", "a/b", "/", "..", "a\x00b", "\xff\xfe", "=", "ä", strings.Repeat("long/", 200)}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		ok(t, err)
		return v
	}
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s = %v, want %v", what, got, want)
	}
}

func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s = %v, want %v", what, err, want)
	}
}

// Records returns the records of l after seq as "number:body".
func Records(t *testing.T, l store.Log, seq uint64) []string {
	t.Helper()
	var got []string
	for r, err := range l.Since(t.Context(), seq) {
		ok(t, err)
		got = append(got, fmt.Sprintf("%d:%s", r.Seq, r.Body))
	}
	return got
}

// Keys returns the keys of b that begin with prefix.
func Keys(t *testing.T, b store.Bucket, prefix string) []string {
	t.Helper()
	var got []string
	for k, err := range b.Keys(t.Context(), prefix) {
		ok(t, err)
		got = append(got, k)
	}
	return got
}

func wantList(t *testing.T, what string, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s = %q, want %q", what, got, want)
	}
}

// pull pulls work, which must be there.
func pull(t *testing.T, q store.Queue) store.Item {
	t.Helper()
	item, err := q.Pull(t.Context())
	ok(t, err)
	return item
}

// none checks that no work is free: what it pushes is the only free work.
func none(t *testing.T, q store.Queue) {
	t.Helper()
	id := rand.Text()
	ok(t, q.Push(t.Context(), id, nil))
	item := pull(t, q)
	want(t, "the only free work", item.ID, id)
	ok(t, item.Done(t.Context()))
}
