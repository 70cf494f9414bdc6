package sizes_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"parley/sizes"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
	"parley/store/storetest"
	"parley/texts"
)

func keeper(t *testing.T, s store.Store, dir string) sizes.Keeper {
	t.Helper()
	return sizes.Keeper{
		Store:     s,
		DataDir:   dir,
		Workspace: filepath.Join(dir, "workspace"),
		Room:      func(string, uint64) error { return nil },
		Log:       slog.New(slog.DiscardHandler),
	}
}

func write(t *testing.T, path string, size int) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, make([]byte, size), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// pass takes a sample and returns it.
func pass(t *testing.T, k sizes.Keeper, now time.Time) sizes.Sample {
	t.Helper()
	if err := k.Pass(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	all, err := sizes.Samples(t.Context(), k.Store)
	if err != nil || len(all) == 0 {
		t.Fatalf("samples: %v, %v", all, err)
	}
	return all[len(all)-1]
}

// What is stored is measured by part, in the store and in folders, and no link is followed.
func TestMeasure(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for i := range 50 {
		if _, err := s.Log(store.LogSession(fmt.Sprint("s", i), "")).Append(ctx, store.Any, make([]byte, 10_000)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Bucket(store.BucketPrompts).Put(ctx, "k", make([]byte, 100_000), store.Any); err != nil {
		t.Fatal(err)
	}
	if err := s.Verify(ctx, 1<<40, func(string) {}); err != nil { // after a checkpoint
		t.Fatal(err)
	}
	k := keeper(t, s, dir)
	elsewhere := filepath.Join(t.TempDir(), "large")
	write(t, elsewhere, 1<<20)
	write(t, filepath.Join(k.Workspace, "inbox", "2026-11-23", "a.txt"), 5000)
	write(t, filepath.Join(dir, "backups", "parley-1.db"), 40_000)
	if err := os.Symlink(elsewhere, filepath.Join(k.Workspace, "inbox", "link")); err != nil {
		t.Fatal(err)
	}
	told := map[string]int64{}
	k.Measured = func(part string, n int64) { told[part] = n }
	got := pass(t, k, time.Now())
	for part, least := range map[string]int64{"conversations": 500_000, "prompts": 100_000, "inbox files": 8192, "backups": 40_960} {
		if n := got.Bytes[part]; n < least || n > least*2 || told[part] != n {
			t.Errorf("%s takes %d, told %d, want about %d", part, n, told[part], least)
		}
	}
}

// At most one sample is taken a day, and a month is kept.
func TestSeries(t *testing.T) {
	k := keeper(t, mem.New(), t.TempDir())
	now := time.Now()
	for range 40 {
		pass(t, k, now)
		pass(t, k, now.Add(time.Hour))
		now = now.Add(24 * time.Hour)
	}
	all, err := sizes.Samples(t.Context(), k.Store)
	if err != nil || len(all) != 31 {
		t.Fatalf("%d samples, %v", len(all), err)
	}
	if got := all[30].Time.Sub(all[29].Time); got != 24*time.Hour {
		t.Errorf("the last came after %s", got)
	}
}

// A store of which half is free is compacted, unless there is no space for that.
func TestPassCompacts(t *testing.T) {
	ctx, dir := t.Context(), storetest.TempDir(t)
	s, err := bolt.Open(ctx, bolt.Config{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l := s.Log(store.LogAudit)
	for range 12 {
		if _, err := l.Append(ctx, store.Any, bytes.Repeat([]byte("x"), 4<<20)); err != nil {
			t.Fatal(err)
		}
	}
	verify := func() {
		t.Helper()
		if err := s.Verify(ctx, 1<<40, func(string) {}); err != nil { // after a checkpoint
			t.Fatal(err)
		}
	}
	verify()
	if err := l.Trim(ctx, 10); err != nil {
		t.Fatal(err)
	}
	verify()
	k := keeper(t, s, dir)
	asked := uint64(0)
	k.Room = func(_ string, n uint64) error {
		asked = n
		return store.ErrFull
	}
	now := time.Now()
	if free := pass(t, k, now).Bytes[sizes.Free]; free < 32<<20 || asked < 8<<20 || asked > 48<<20 {
		t.Errorf("%d are free; there was to be room for %d", free, asked)
	}
	k.Room = func(string, uint64) error { return nil }
	got := pass(t, k, now.Add(24*time.Hour))
	if got.Bytes[sizes.Free] > 8<<20 || got.Bytes["audit"] < 8<<20 {
		t.Errorf("after the compaction: %v", got.Bytes)
	}
	n := 0
	for _, err := range l.Since(ctx, 0) {
		n++
		if err != nil {
			t.Fatal(err)
		}
	}
	if n != 2 {
		t.Errorf("%d records", n)
	}
}

// A pass ends with its context.
func TestPassEnds(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := keeper(t, mem.New(), t.TempDir()).Pass(ctx, time.Now()); !errors.Is(err, context.Canceled) {
		t.Errorf("Pass = %v", err)
	}
}

// The line for people has the largest parts, and how much they grew in a day and a week.
func TestLine(t *testing.T) {
	say := texts.English().Gateway.Report
	end := time.Date(2026, 11, 23, 3, 10, 0, 0, time.UTC)
	var all []sizes.Sample
	for i := range 10 {
		all = append(all, sizes.Sample{
			Time:  end.Add(time.Duration(i-9) * 24 * time.Hour),
			Bytes: map[string]int64{"conversations": int64(i+1) * 1e9, "audit": 5e6, "jobs": 2e3, "usage": 120, "undo": 0},
		})
	}
	want := "10.0 GB (conversations 10.0 GB, audit 5.0 MB, jobs 2 kB, usage 120 bytes), measured 2026-11-23 03:10." +
		" Since 2026-11-22: +1.0 GB. Since 2026-11-16: +7.0 GB."
	if got := sizes.Line(all, time.UTC, say); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := sizes.Line(all[:1], time.UTC, say); strings.Contains(got, "Since") {
		t.Errorf("of one sample: %s", got)
	}
	if got := sizes.Line([]sizes.Sample{{Time: end}}, time.UTC, say); got != "nothing is kept there." {
		t.Errorf("of nothing: %s", got)
	}
	if got := sizes.Line(nil, time.UTC, say); !strings.Contains(got, "not measured yet") {
		t.Errorf("of none: %s", got)
	}
}
