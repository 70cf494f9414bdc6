package audit_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"parley/audit"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/store/storetest"
)

func chain(s store.Store) *audit.Chain { return audit.NewChain(s.Log("audit"), s.Bucket("audit")) }

func note(t *testing.T, c *audit.Chain, whats ...string) {
	t.Helper()
	for _, what := range whats {
		e := audit.Event{Time: time.Unix(1e9, 5).In(time.FixedZone("", 3600)), Kind: "tool", Who: "cli:ann", What: what}
		if err := c.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
}

// whats tells the last events, the newest last.
func whats(t *testing.T, c *audit.Chain, most int) (all []string) {
	t.Helper()
	events, err := c.Tail(t.Context(), most)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range slices.Backward(events) {
		all = append(all, e.What)
	}
	return all
}

// certain expects n records and nothing wrong.
func certain(t *testing.T, c *audit.Chain, n int) {
	t.Helper()
	if err := c.Verify(t.Context()); err != nil {
		t.Errorf("Verify = %v", err)
	}
	if got := whats(t, c, n+1); len(got) != n {
		t.Errorf("%d records: %q; want %d", len(got), got, n)
	}
}

// broken expects that the first wrong record is found, and told in these words.
func broken(t *testing.T, c *audit.Chain, words string) {
	t.Helper()
	if err := c.Verify(t.Context()); !errors.Is(err, audit.ErrBroken) || !strings.Contains(err.Error(), words) {
		t.Errorf("Verify = %v; want %q", err, words)
	}
}

func bodies(t *testing.T, l store.Log) (all [][]byte) {
	t.Helper()
	for r, err := range l.Since(t.Context(), 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r.Body)
	}
	return all
}

// forged returns a store that holds recs and the end that s has.
func forged(t *testing.T, s store.Store, recs [][]byte) store.Store {
	t.Helper()
	f := mem.New()
	for _, r := range recs {
		if _, err := f.Log("audit").Append(t.Context(), store.Any, r); err != nil {
			t.Fatal(err)
		}
	}
	for k, err := range s.Bucket("audit").Keys(t.Context(), "") {
		var val []byte
		if err == nil {
			val, _, err = s.Bucket("audit").Get(t.Context(), k)
		}
		if err == nil {
			_, err = f.Bucket("audit").Put(t.Context(), k, val, 0)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return f
}

// P28, R-S27: old records are removed, and the log says so: what is left is still
// certain, also if a crash comes between, and any record more that is missing at
// the beginning is found.
func TestChainTrim(t *testing.T) {
	s := mem.New()
	c := chain(s)
	trim := func(keep int) {
		t.Helper()
		pass := store.Trimming{Step: func(int) error { return nil }}
		if err := c.TrimTo(t.Context(), pass, keep); err != nil {
			t.Fatal(err)
		}
	}
	trim(5)
	note(t, c, "1", "2", "3", "4", "5")
	trim(5)
	certain(t, c, 5)
	before := bodies(t, s.Log("audit"))
	note(t, c, "6")
	trim(3)
	if got, want := whats(t, c, 9), []string{"4", "5", "6", "the entries up to number 3 were removed: 3 are kept"}; !slices.Equal(got, want) {
		t.Errorf("left are %q, want %q", got, want)
	}
	certain(t, c, 4)
	left := bodies(t, s.Log("audit"))
	certain(t, chain(forged(t, s, slices.Concat(before[:3], left))), 7) // as after a crash
	broken(t, chain(forged(t, s, left[1:])), "the entries before number 5 are missing")
	broken(t, chain(forged(t, s, slices.Concat(before[1:2], left))), "is in the place of")
	lying := slices.Clone(left)
	lying[3] = bytes.Replace(lying[3], []byte(`"n":3`), []byte(`"n":4`), 1)
	broken(t, chain(forged(t, s, lying)), "was changed")
	note(t, c, "8", "9")
	trim(2)
	certain(t, chain(s), 3)
}

// R-S27: the log goes on after a restart, and tells its last events.
func TestChain(t *testing.T) {
	dir := t.TempDir()
	open := func() store.Store {
		s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := open()
	c := chain(s)
	certain(t, c, 0)
	note(t, c, "one", "two <&>\xff", "three")
	certain(t, c, 3)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open()
	defer s.Close()
	c = chain(s)
	note(t, c, "four")
	certain(t, c, 4)
	if got := whats(t, c, 2); !slices.Equal(got, []string{"three", "four"}) {
		t.Errorf("the last two: %q", got)
	}
	if got := whats(t, c, 100); len(got) != 4 || got[1] != "two <&>\ufffd" {
		t.Errorf("all: %q", got)
	}
	if got := whats(t, c, 0); len(got) != 0 {
		t.Errorf("none: %q", got)
	}
	e, _ := c.Tail(t.Context(), 1)
	if want := (audit.Event{Time: time.Unix(1e9, 5).UTC(), Kind: "tool", Who: "cli:ann", What: "four"}); e[0] != want {
		t.Errorf("got %+v, want %+v", e[0], want)
	}
}

// A record has one form: who exports the log can compute the digests again.
func TestChainCanonical(t *testing.T) {
	s := mem.New()
	note(t, chain(s), "<one>", "two")
	for _, b := range bodies(t, s.Log("audit")) {
		var l struct {
			N    int    `json:"n"`
			Prev string `json:"prev"`
			audit.Event
		}
		if err := json.Unmarshal(b, &l); err != nil {
			t.Fatal(err)
		}
		if again, _ := json.Marshal(l); !bytes.Equal(again, b) {
			t.Errorf("%s became %s", b, again)
		}
	}
}

// R-S27: verify finds any edit, removal, insertion and change of order, and says where.
func TestChainVerify(t *testing.T) {
	s := mem.New()
	note(t, chain(s), "r1", "r2", "r3", "r4", "r5")
	replace := func(i int, old, new string) func([][]byte) [][]byte {
		return func(recs [][]byte) [][]byte {
			if !bytes.Contains(recs[i], []byte(old)) {
				t.Fatalf("no %q in %s", old, recs[i])
			}
			recs[i] = bytes.Replace(recs[i], []byte(old), []byte(new), 1)
			return recs
		}
	}
	remove := func(i, j int) func([][]byte) [][]byte {
		return func(recs [][]byte) [][]byte { return slices.Delete(recs, i, j) }
	}
	for _, c := range []struct {
		name  string
		forge func([][]byte) [][]byte
		words string
	}{
		{"the first edited", replace(0, "r1", "rX"), "record 1 was changed"},
		{"one edited", replace(2, "r3", "rX"), "record 3 was changed"},
		{"blank added", replace(2, "{", "{ "), "record 3 was changed"},
		{"who", replace(1, "ann", "bob"), "record 2 was changed"},
		{"time", replace(3, "2001", "2002"), "record 4 was changed"},
		{"the last edited", replace(4, "r5", "rX"), "record 5 was changed"},
		{"number edited", replace(2, `"n":3`, `"n":7`), "record 7 is in the place of 3"},
		{"not JSON", replace(2, "{", "!"), "record 3 is damaged"},
		{"the first removed", remove(0, 1), "the entries before number 2 are missing"},
		{"one removed", remove(2, 3), "record 4 is in the place of 3"},
		{"the last removed", remove(4, 5), "records 5 to 5 are missing"},
		{"three at the end removed", remove(2, 5), "records 3 to 5 are missing"},
		{"all removed", remove(0, 5), "records 1 to 5 are missing"},
		{"two swapped", func(r [][]byte) [][]byte { r[1], r[2] = r[2], r[1]; return r }, "record 3 is in the place of 2"},
		{"one twice", func(r [][]byte) [][]byte { return slices.Insert(r, 2, r[1]) }, "record 2 is in the place of 3"},
		{"the last twice", func(r [][]byte) [][]byte { return append(r, r[4]) }, "record 5 is in the place of 6"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := forged(t, s, c.forge(bodies(t, s.Log("audit"))))
			again := chain(f)
			broken(t, again, c.words)
			note(t, again, "later") // nobody is kept from going on, and what is broken stays so
			if err := again.Verify(t.Context()); !errors.Is(err, audit.ErrBroken) {
				t.Errorf("a later event covers it: %v", err)
			}
		})
	}
}

// R-S27: a record that fits is found all the same when no append announced it.
func TestChainVerifyFindsAddedAtTheEnd(t *testing.T) {
	s := mem.New()
	note(t, chain(s), "r1", "r2")
	longer := forged(t, s, bodies(t, s.Log("audit")))
	note(t, chain(longer), "r3")
	f := forged(t, s, bodies(t, longer.Log("audit")))
	broken(t, chain(f), "record 3 was added")
	c := chain(f)
	note(t, c, "mine")
	broken(t, c, "record 3 is in the place of 4")
}

// R-S27: the end cannot be lost or made up unnoticed.
func TestChainEnd(t *testing.T) {
	for name, spoil := range map[string]func(store.Bucket) error{
		"lost":    func(b store.Bucket) error { return b.Delete(t.Context(), "head") },
		"garbage": func(b store.Bucket) error { _, err := b.Put(t.Context(), "head", []byte("?"), store.Any); return err },
	} {
		t.Run(name, func(t *testing.T) {
			s := mem.New()
			note(t, chain(s), "r1", "r2")
			if err := spoil(s.Bucket("audit")); err != nil {
				t.Fatal(err)
			}
			c := chain(s)
			broken(t, c, "lost")
			note(t, c, "r3", "r4")
			broken(t, c, "what 3 says")
			if got := whats(t, c, 9); len(got) != 4 {
				t.Errorf("events: %q", got)
			}
		})
	}
}

// P21, R-S27: a record damaged on disk is found, and hides no other.
func TestChainDamage(t *testing.T) {
	s := mem.New()
	note(t, chain(s), "r1", "r2", "r3")
	c := audit.NewChain(rotten{s.Log("audit"), 2}, s.Bucket("audit"))
	broken(t, c, "record 2 is damaged")
	if got := whats(t, c, 9); !slices.Equal(got, []string{"r1", "r3"}) {
		t.Errorf("events: %q", got)
	}
}

// A rotten log has one record damaged.
type rotten struct {
	store.Log
	seq uint64
}

func (l rotten) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range l.Log.Since(ctx, seq) {
			if r.Seq == l.seq {
				r.Body, err = nil, fmt.Errorf("record %d: %w", r.Seq, store.ErrDamaged)
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// R-S27: whatever commit a crash comes before or after, it is no alarm, no
// event that was acknowledged is lost, and none is there twice.
func TestChainCrash(t *testing.T) {
	for at := 0; ; at++ {
		s, ops := mem.New(), 0
		die := func(string) {
			if ops++; ops == at+1 {
				panic("crash")
			}
		}
		var told []string
		crashed := func() (crashed bool) {
			defer func() { crashed = recover() != nil }()
			w := storetest.Watch(s, die, die)
			c := chain(w)
			for _, what := range []string{"r1", "r2"} {
				note(t, c, what)
				told = append(told, what)
			}
			return false
		}()
		if !crashed {
			if at != 12 {
				t.Errorf("%d points to crash at, want 12: three commits an event", at)
			}
			return
		}
		c := chain(s)
		got := whats(t, c, 9)
		certain(t, c, len(got))
		if len(got) > len(told)+1 || !slices.Equal(got[:len(told)], told) {
			t.Errorf("crash %d: %q, told %q", at, got, told)
		}
		note(t, c, "later")
		certain(t, c, len(got)+1)
	}
}

// P19: what the disk does not take is not in the way of what it takes later.
func TestChainFull(t *testing.T) {
	for at := range 3 {
		s := mem.New()
		f := &full{Store: s, fail: -1}
		c := chain(f)
		note(t, c, "r1")
		f.fail = at
		if err := c.Append(t.Context(), audit.Event{What: "lost?"}); !errors.Is(err, store.ErrFull) {
			t.Fatalf("Append = %v", err)
		}
		note(t, c, "r2")
		got := whats(t, c, 9)
		certain(t, c, len(got))
		if got[0] != "r1" || got[len(got)-1] != "r2" || len(got) > 3 {
			t.Errorf("full at %d: %q", at, got)
		}
	}
}

// A full store takes no commit after so many, once.
type full struct {
	store.Store
	fail int
}

func (f *full) hit() error {
	f.fail--
	if f.fail == -1 {
		return store.ErrFull
	}
	return nil
}

func (f *full) Bucket(name string) store.Bucket { return fullBucket{f.Store.Bucket(name), f} }
func (f *full) Log(name string) store.Log       { return fullLog{f.Store.Log(name), f} }

type fullBucket struct {
	store.Bucket
	f *full
}

func (b fullBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (uint64, error) {
	if err := b.f.hit(); err != nil {
		return 0, err
	}
	return b.Bucket.Put(ctx, key, val, rev)
}

type fullLog struct {
	store.Log
	f *full
}

func (l fullLog) Append(ctx context.Context, after uint64, recs ...[]byte) (uint64, error) {
	if len(recs) > 0 {
		if err := l.f.hit(); err != nil {
			return 0, err
		}
	}
	return l.Log.Append(ctx, after, recs...)
}

func TestChainConcurrent(t *testing.T) {
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c := chain(s)
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 10 {
				if err := c.Append(t.Context(), audit.Event{Kind: "tool", What: fmt.Sprint(i, j)}); err != nil {
					t.Error(err)
				}
				if err := c.Verify(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	certain(t, c, 80)
}
