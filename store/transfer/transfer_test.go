package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"parley/store"
	"parley/store/bolt"
	"parley/store/bolt/contents"
	"parley/store/nats"
	"parley/store/nats/natstest"
	"parley/store/storetest"
	"parley/store/transfer"
)

func openBolt(t testing.TB, dir string) store.Portable {
	t.Helper()
	s, err := bolt.Open(t.Context(), bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return contents.Of(s)
}

func openNATS(t testing.TB) store.Portable {
	t.Helper()
	server := natstest.Start(t, natstest.Listening(t))
	s, err := nats.Open(t.Context(), nats.Config{URL: server.ClientURL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Portable()
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// odd are names that have caused trouble, and one that is too long for a subject.
var odd = []string{"", "a", "a/b", "a.b", "*", ">", "~1", "..", "=", "ä", "a\x00b", "\xff\xfe", strings.Repeat("long/", 100)}

// large is larger than what NATS takes as one message.
var large = bytes.Repeat([]byte("0123456789abcdef"), 3<<16)

// fill adds something of everything, and returns how much.
func fill(t *testing.T, s store.Store) transfer.Report {
	t.Helper()
	ctx := t.Context()
	for _, name := range odd {
		for _, key := range odd {
			_, err := s.Bucket(name).Put(ctx, key, []byte("value of "+name+" "+key), 0)
			ok(t, err)
		}
		_, err := s.Log(name).Append(ctx, store.Any, []byte("first of "+name), nil, []byte("third"))
		ok(t, err)
		ok(t, s.Queue(name).Push(ctx, "id of "+name, []byte("work of "+name)))
	}
	_, err := s.Bucket("a").Put(ctx, "large", large, 0)
	ok(t, err)
	_, err = s.Bucket("a").Put(ctx, "deleted", large, 0)
	ok(t, err)
	ok(t, s.Bucket("a").Delete(ctx, "deleted"))
	many := make([][]byte, 600)
	for i := range many {
		many[i] = fmt.Appendf(nil, "record %d", i)
	}
	for _, name := range []string{"many", "trimmed", "empty"} {
		_, err = s.Log(name).Append(ctx, store.Any, many...)
		ok(t, err)
		_, err = s.Log(name).Append(ctx, store.Any, large)
		ok(t, err)
	}
	ok(t, s.Log("trimmed").Trim(ctx, 500))
	ok(t, s.Log("empty").Trim(ctx, 601))
	q := s.Queue("work")
	for i := range 4 {
		ok(t, q.Push(ctx, odd[len(odd)-1-i], fmt.Appendf(nil, "%d", i)))
	}
	ok(t, q.Push(ctx, "large", large))
	first, err := q.Pull(ctx)
	ok(t, err)
	ok(t, first.Done(ctx))
	n := len(odd)
	return transfer.Report{Values: n*n + 1, Records: 3*n + 601 + 101, Work: n + 4, Pushes: n + 5}
}

// check checks that s has what fill added.
func check(t *testing.T, s store.Store) {
	t.Helper()
	ctx := t.Context()
	sorted := slices.Sorted(slices.Values(odd))
	for _, name := range odd {
		if got := storetest.Keys(t, s.Bucket(name), ""); name != "a" && !slices.Equal(got, sorted) {
			t.Errorf("bucket %q has %q", name, got)
		}
		for _, key := range odd {
			if v, _, err := s.Bucket(name).Get(ctx, key); string(v) != "value of "+name+" "+key || err != nil {
				t.Errorf("value %q of %q is %q, %v", key, name, v, err)
			}
		}
		if got := storetest.Records(t, s.Log(name), 0); !slices.Equal(got, []string{"1:first of " + name, "2:", "3:third"}) {
			t.Errorf("log %q has %q", name, got)
		}
		item, err := s.Queue(name).Pull(ctx)
		ok(t, err)
		if item.ID != "id of "+name || string(item.Body) != "work of "+name {
			t.Errorf("queue %q has %q: %q", name, item.ID, item.Body)
		}
		ok(t, item.Done(ctx))
	}
	if v, _, err := s.Bucket("a").Get(ctx, "large"); !bytes.Equal(v, large) || err != nil {
		t.Errorf("the large value has %d bytes, %v", len(v), err)
	}
	if _, _, err := s.Bucket("a").Get(ctx, "deleted"); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("the deleted value: %v", err)
	}
	for name, count := range map[string]int{"many": 601, "trimmed": 101, "empty": 0} {
		got := storetest.Records(t, s.Log(name), 0)
		if len(got) != count || count > 1 && got[0] != fmt.Sprintf("%d:record %d", 602-count, 601-count) {
			t.Errorf("log %q has %d records, the first %.30q", name, len(got), got)
		}
		if seq, err := s.Log(name).Append(ctx, 601, []byte("next")); seq != 602 || err != nil {
			t.Errorf("log %q goes on with %d, %v", name, seq, err)
		}
	}
	q := s.Queue("work")
	for i := range 4 { // pushed already, also what is done
		ok(t, q.Push(ctx, odd[len(odd)-1-i], []byte("again")))
	}
	for _, want := range []string{"1", "2", "3", string(large)} {
		item, err := q.Pull(ctx)
		ok(t, err)
		if string(item.Body) != want {
			t.Errorf("pulled %.20q of %q, want %.20q", item.Body, item.ID, want)
		}
		ok(t, item.Done(ctx))
	}
	if n, err := q.Len(ctx); n != 0 || err != nil {
		t.Errorf("there is more work: %d, %v", n, err)
	}
}

// What was in a file is the same on servers of NATS, and back in a file.
func TestThereAndBack(t *testing.T) {
	a, b, c := openBolt(t, t.TempDir()), openNATS(t), openBolt(t, t.TempDir())
	want := fill(t, a)
	for _, way := range []struct{ from, to store.Portable }{{a, b}, {b, c}} {
		r, err := transfer.Copy(t.Context(), way.from, way.to)
		if fmt.Sprint(r) != fmt.Sprint(want) || err != nil {
			t.Errorf("copied %+v, %v, want %+v", r, err, want)
		}
	}
	check(t, b)
	check(t, c)
}

// A copy in a file has all after a restart, and its work may have been begun.
func TestCopyLasts(t *testing.T) {
	from := openNATS(t)
	fill(t, from)
	dir := t.TempDir()
	to := openBolt(t, dir)
	_, err := transfer.Copy(t.Context(), from, to)
	ok(t, err)
	ok(t, to.Close())
	again := openBolt(t, dir)
	item, err := again.Queue("a").Pull(t.Context())
	ok(t, err)
	if !item.Again {
		t.Error("work is taken for new")
	}
	item.Later(0)
	check(t, again)
}

// Nothing is copied into a Store in which there is something, be it the end of a log or an id.
func TestOccupied(t *testing.T) {
	for name, add := range map[string]func(context.Context, store.Store) error{
		"bucket": func(ctx context.Context, s store.Store) error {
			_, err := s.Bucket("b").Put(ctx, "k", nil, 0)
			return err
		},
		"end of log": func(ctx context.Context, s store.Store) error {
			_, err := s.Log("l").Append(ctx, 0, nil)
			return errors.Join(err, s.Log("l").Trim(ctx, 1))
		},
		"ids of queue": func(ctx context.Context, s store.Store) error {
			err := s.Queue("q").Push(ctx, "id", nil)
			if err != nil {
				return err
			}
			item, err := s.Queue("q").Pull(ctx)
			return errors.Join(err, item.Done(ctx))
		},
	} {
		for _, to := range []store.Portable{openBolt(t, t.TempDir()), openNATS(t)} {
			from := openBolt(t, t.TempDir())
			fill(t, from)
			ok(t, add(t.Context(), to))
			_, err := transfer.Copy(t.Context(), from, to)
			if err == nil || !strings.Contains(err.Error(), "the target is not empty: it has "+name) {
				t.Errorf("%s: %v", name, err)
			}
			if names, err := to.Names(t.Context()); len(names.Buckets)+len(names.Logs)+len(names.Queues) != 1 || err != nil {
				t.Errorf("%s: something was copied: %q, %v", name, names, err)
			}
		}
	}
}

// A faulty Store has values, pushes and work that are not what was written.
type faulty struct {
	store.Portable
	fault string
}

func (f faulty) Bucket(name string) store.Bucket {
	return faultyBucket{f.Portable.Bucket(name), f.fault}
}

type faultyBucket struct {
	store.Bucket
	fault string
}

func (b faultyBucket) Get(ctx context.Context, key string) ([]byte, uint64, error) {
	v, rev, err := b.Bucket.Get(ctx, key)
	if key == "a/b" {
		switch b.fault {
		case "another value":
			v = append(v, '!')
		case "damaged value":
			return nil, 0, fmt.Errorf("key %q: %w", key, store.ErrDamaged)
		}
	}
	return v, rev, err
}

func (b faultyBucket) Keys(ctx context.Context, prefix string) iter.Seq2[string, error] {
	if b.fault != "unreadable keys" {
		return b.Bucket.Keys(ctx, prefix)
	}
	return func(yield func(string, error) bool) { yield("", store.ErrDamaged) }
}

func (f faulty) Names(ctx context.Context) (store.Names, error) {
	if f.fault == "unreadable names" {
		return store.Names{}, store.ErrDamaged
	}
	return f.Portable.Names(ctx)
}

func (f faulty) Work(ctx context.Context, queue string) iter.Seq2[store.Item, error] {
	return func(yield func(store.Item, error) bool) {
		if f.fault == "unreadable work" {
			yield(store.Item{}, store.Terminal(store.ErrDamaged))
			return
		}
		for item, err := range f.Portable.Work(ctx, queue) {
			if !yield(item, err) {
				return
			}
		}
	}
}

func (f faulty) Log(name string) store.Log { return faultyLog{f.Portable.Log(name), f.fault} }

type faultyLog struct {
	store.Log
	fault string
}

func (l faultyLog) Since(ctx context.Context, seq uint64) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r, err := range l.Log.Since(ctx, seq) {
			switch {
			case r.Seq == 2 && l.fault == "damaged record":
				r.Body, err = nil, fmt.Errorf("record 2: %w", store.ErrDamaged)
			case r.Seq == 2 && l.fault == "unreadable records":
				yield(store.Record{}, store.ErrDamaged)
				return
			}
			if !yield(r, err) {
				return
			}
		}
	}
}

// What cannot be read any further is not taken for the end.
func TestUnreadable(t *testing.T) {
	from := openBolt(t, t.TempDir())
	fill(t, from)
	for _, what := range []string{"names", "keys", "records", "work"} {
		to := openBolt(t, t.TempDir())
		if r, err := transfer.Copy(t.Context(), faulty{from, "unreadable " + what}, to); err == nil {
			t.Errorf("%s: copied %+v", what, r)
		}
	}
}

func (f faulty) AddWork(ctx context.Context, queue, id string, body []byte) error {
	if f.fault == "lost work" && id == "large" {
		return nil
	}
	return f.Portable.AddWork(ctx, queue, id, body)
}

func (f faulty) Skip(ctx context.Context, log string, seq uint64) error {
	if f.fault == "lost end" && log == "empty" {
		return nil
	}
	return f.Portable.Skip(ctx, log, seq)
}

func (f faulty) Pushes(ctx context.Context, queue string) iter.Seq2[store.Push, error] {
	return func(yield func(store.Push, error) bool) {
		for p, err := range f.Portable.Pushes(ctx, queue) {
			switch {
			case f.fault == "old id" && p.ID == "large":
				p.Time = time.Now().Add(-store.IDRetention - time.Minute)
			case f.fault == "another time" && p.ID == "large":
				p.Time = p.Time.Add(-1)
			}
			if !yield(p, err) {
				return
			}
		}
	}
}

// What is not as it was written is found when it is read again.
func TestChecked(t *testing.T) {
	for fault, want := range map[string]string{
		"another value": `bucket "" is not what was written`,
		"another time":  `ids of queue "work" is not what was written`,
		"lost work":     `queue "work" has 3 entries, and 4 were written`,
		"lost end":      `end of log "empty" is missing, with 1 entries that were written`,
	} {
		from, to := openBolt(t, t.TempDir()), openBolt(t, t.TempDir())
		fill(t, from)
		_, err := transfer.Copy(t.Context(), from, faulty{to, fault})
		if err == nil || err.Error() != want {
			t.Errorf("%s: %v", fault, err)
		}
		if err := transfer.CheckState(t.Context(), to); !errors.Is(err, transfer.ErrIncomplete) {
			t.Errorf("%s: what is incomplete may be used: %v", fault, err)
		}
		if _, err := transfer.Copy(t.Context(), to, openBolt(t, t.TempDir())); !errors.Is(err, transfer.ErrIncomplete) {
			t.Errorf("%s: what is incomplete is copied: %v", fault, err)
		}
	}
}

// What is damaged is left out and told, and the rest is copied. Ids that count no more are left out.
func TestLeftOut(t *testing.T) {
	from := openBolt(t, t.TempDir())
	all := fill(t, from)
	to := openNATS(t)
	r, err := transfer.Copy(t.Context(), faulty{from, "damaged value"}, to)
	if err != nil || len(r.Damaged) != len(odd) || !strings.Contains(r.Damaged[0].Error(), "a/b") || r.Values != all.Values-len(odd) {
		t.Errorf("%+v, %v", r, err)
	}
	if _, _, err := to.Bucket("a").Get(t.Context(), "a/b"); !errors.Is(err, store.ErrNotFound) {
		t.Error(err)
	}
	r, err = transfer.Copy(t.Context(), faulty{from, "old id"}, openNATS(t))
	if err != nil || r.Pushes != all.Pushes-1 {
		t.Errorf("%+v, %v", r, err)
	}
}

// A damaged record keeps its place, with nothing in it: what comes after it has the numbers that it had.
func TestDamagedRecord(t *testing.T) {
	from, to := openBolt(t, t.TempDir()), openNATS(t)
	_, err := from.Log("l").Append(t.Context(), 0, []byte("1"), []byte("2"), []byte("3"))
	ok(t, err)
	r, err := transfer.Copy(t.Context(), faulty{from, "damaged record"}, to)
	if err != nil || len(r.Damaged) != 1 {
		t.Errorf("%+v, %v", r, err)
	}
	if got := storetest.Records(t, to.Log("l"), 0); strings.Join(got, " ") != "1:1 2: 3:3" {
		t.Errorf("the log has %q", got)
	}
}

// A log with a gap, also one as wide as damage to a file makes it, is copied with it and goes on where it was.
func TestGap(t *testing.T) {
	for _, end := range []uint64{3, 5, 1 << 40} {
		from, to, back := openBolt(t, t.TempDir()), openNATS(t), openBolt(t, t.TempDir())
		_, err := from.Log("l").Append(t.Context(), 0, []byte("1"), []byte("2"))
		ok(t, err)
		ok(t, from.Skip(t.Context(), "l", end))
		_, err = from.Log("l").Append(t.Context(), end, []byte("next"), []byte("last"))
		ok(t, err)
		for _, way := range []struct{ from, to store.Portable }{{from, to}, {to, back}} {
			_, err = transfer.Copy(t.Context(), way.from, way.to)
			ok(t, err)
			next, last := fmt.Sprintf("%d:next", end+1), fmt.Sprintf("%d:last", end+2)
			for seq, want := range map[uint64]string{
				0: "1:1 2:2 " + next + " " + last, 1: "2:2 " + next + " " + last, 2: next + " " + last,
				end - 1: next + " " + last, end: next + " " + last, end + 1: last, end + 2: "",
			} {
				if got := storetest.Records(t, way.to.Log("l"), seq); strings.Join(got, " ") != want {
					t.Errorf("after %d the log has %q, want %q", seq, got, want)
				}
			}
		}
		ok(t, to.Log("l").Trim(t.Context(), end))
		if got := storetest.Records(t, to.Log("l"), 0); len(got) != 2 {
			t.Errorf("after a trim the log has %q", got)
		}
	}
}

// What was left says so, and can be copied again.
func TestLeft(t *testing.T) {
	from := openNATS(t)
	fill(t, from)
	ok(t, transfer.Leave(t.Context(), from))
	if err := transfer.CheckState(t.Context(), from); !errors.Is(err, transfer.ErrLeft) {
		t.Error(err)
	}
	to := openBolt(t, t.TempDir())
	_, err := transfer.Copy(t.Context(), from, to)
	ok(t, err)
	if err := transfer.CheckState(t.Context(), to); err != nil {
		t.Error(err)
	}
	if _, err := transfer.Copy(t.Context(), to, from); !errors.Is(err, transfer.ErrLeft) {
		t.Error(err)
	}
	check(t, to)
}

// BenchmarkCopy copies 2,000 values, 2,000 records and 200 ids, and compares them.
func BenchmarkCopy(b *testing.B) {
	fill := func(s store.Store) {
		for i := range 2000 {
			_, err := s.Bucket("b").Put(b.Context(), fmt.Sprint("key ", i), bytes.Repeat([]byte("v"), 500), 0)
			ok(b, err)
			_, err = s.Log(fmt.Sprint(i%20)).Append(b.Context(), store.Any, bytes.Repeat([]byte("r"), 500))
			ok(b, err)
			if i%10 == 0 {
				ok(b, s.Queue("q").Push(b.Context(), fmt.Sprint(i), nil))
			}
		}
	}
	for name, open := range map[string]struct{ from, to func() store.Portable }{
		"to NATS":   {func() store.Portable { return openBolt(b, b.TempDir()) }, func() store.Portable { return openNATS(b) }},
		"from NATS": {func() store.Portable { return openNATS(b) }, func() store.Portable { return openBolt(b, b.TempDir()) }},
	} {
		b.Run(name, func(b *testing.B) {
			from := open.from()
			fill(from)
			for b.Loop() {
				b.StopTimer()
				to := open.to()
				b.StartTimer()
				_, err := transfer.Copy(store.Deferred(b.Context()), from, to)
				ok(b, err)
			}
		})
	}
}
