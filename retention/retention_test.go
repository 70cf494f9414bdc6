package retention_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"parley/retention"
	"parley/store"
	"parley/timetest"
)

// keeper returns a Keeper of one part of each period, and what it did.
func keeper(archive retention.Archive, periods ...time.Duration) (k retention.Keeper, passes func() []store.Trimming) {
	var mu sync.Mutex
	var all []store.Trimming
	k = retention.Keeper{
		Zone:    time.UTC,
		Archive: archive,
		Log:     slog.New(slog.DiscardHandler),
		Removed: func(string, int) {},
		Faults:  &retention.Faults{},
	}
	for _, period := range periods {
		k.Parts = append(k.Parts, retention.Part{
			Name:   "part",
			Period: func() time.Duration { return period },
			Trim: func(_ context.Context, t store.Trimming) error {
				mu.Lock()
				defer mu.Unlock()
				all = append(all, t)
				return errors.New("it goes on with the next part")
			},
		})
	}
	return k, func() []store.Trimming {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
}

func never() bool { return false }

// P28: parts are trimmed ten minutes after the start and then every night, each by its
// own period, and what is kept for ever is not.
func TestKeeper(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		k, passes := keeper(retention.Archive{Wanted: never}, 0, time.Hour, 48*time.Hour)
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		for _, want := range []struct {
			after  time.Duration // time of the bubble begins at midnight
			passes int
		}{{9 * time.Minute, 0}, {2 * time.Minute, 2}, {169*time.Minute - time.Second, 2}, {time.Minute, 4}, {24 * time.Hour, 6}} {
			timetest.Sleep(want.after)
			synctest.Wait()
			if got := len(passes()); got != want.passes {
				t.Errorf("%s later: %d passes, want %d", want.after, got, want.passes)
			}
		}
		if last := passes()[5]; time.Since(last.Before).Round(time.Hour) != 48*time.Hour || last.Archive != nil {
			t.Errorf("the last pass is %+v", last)
		}
	})
}

// P23: a clock that was set does not make everything old.
func TestClockWasSet(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		k, passes := keeper(retention.Archive{Wanted: never}, time.Hour)
		var set atomic.Int64
		k.Now = func() time.Time { return time.Now().Add(time.Duration(set.Load())).Round(0) }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		timetest.Sleep(time.Minute)
		set.Store(int64(365 * 24 * time.Hour))
		timetest.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := len(passes()); got != 0 {
			t.Errorf("%d passes right after the clock was set", got)
		}
		timetest.Sleep(23 * time.Hour)
		synctest.Wait()
		if got := len(passes()); got != 0 {
			t.Errorf("%d passes less than a day after it was set by a year", got)
		}
		timetest.Sleep(time.Hour)
		synctest.Wait()
		if got := len(passes()); got != 1 {
			t.Errorf("%d passes a day later, want 1", got)
		}
	})
}

// A laptop that sleeps every night is trimmed, too: to it, the clock is set each time.
func TestSleepingMachine(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		k, passes := keeper(retention.Archive{Wanted: never}, time.Hour)
		var slept atomic.Int64
		k.Now = func() time.Time { return time.Now().Add(time.Duration(slept.Load())).Round(0) }
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		const days = 7
		for range days { // time of the bubble begins at midnight, when the owner goes home
			slept.Add(int64(10 * time.Hour))
			timetest.Sleep(14 * time.Hour)
		}
		synctest.Wait()
		if got := len(passes()); got < days-1 {
			t.Errorf("%d passes in %d days", got, days)
		}
	})
}

// P28: what is removed is counted, and a step ends a pass with its context.
func TestSteps(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		k, _ := keeper(retention.Archive{Wanted: never}, time.Hour)
		counted, steps := 0, 0
		k.Removed = func(part string, n int) { counted += n }
		k.Parts[0].Trim = func(_ context.Context, t store.Trimming) error {
			for {
				if steps++; steps == 3 {
					stop()
				}
				if err := t.Step(2); err != nil {
					return err
				}
			}
		}
		k.TrimAll(ctx, time.Now())
		if steps != 3 || counted != 6 {
			t.Errorf("%d steps, %d entries counted; want 3 and 6", steps, counted)
		}
	})
}

// P28: the archive has each line once, whole, and each name is a file of its own.
func TestArchive(t *testing.T) {
	a := retention.Archive{Dir: filepath.Join(t.TempDir(), "data", "archive"), Wanted: func() bool { return true }}
	k, _ := keeper(a, time.Hour)
	add := func(name string, lines ...string) {
		t.Helper()
		k.Parts[0].Trim = func(_ context.Context, pass store.Trimming) error {
			var all [][]byte
			for _, line := range lines {
				all = append(all, []byte(line))
			}
			return pass.Save(name, all...)
		}
		k.TrimAll(t.Context(), time.Now())
	}
	long := strings.Repeat("x", 300)
	add("telegram:1/7", "one", "two")
	add("telegram:1/7", "two", "three", "three")
	for _, name := range []string{"../up", ".", long + "1", long + "2"} {
		add(name, "of "+name)
	}
	text, err := os.ReadFile(filepath.Join(a.Dir, "part", "telegram:1%2F7.jsonl"))
	if string(text) != "one\ntwo\nthree\n" || err != nil {
		t.Errorf("the archive has %q, %v", text, err)
	}
	files, err := filepath.Glob(filepath.Join(a.Dir, "part", "*"))
	if len(files) != 5 || err != nil || slices.ContainsFunc(files, func(f string) bool { return len(filepath.Base(f)) > 200 }) {
		t.Errorf("the archive has the files %q, %v", files, err)
	}
	if info, err := os.Stat(filepath.Join(a.Dir, "part")); err != nil || info.Mode().Perm() != 0o700 { // R-S6
		t.Errorf("the folder is %v, %v", info.Mode(), err)
	}
}

// P28: the archive has files whole, under their names, and nowhere else.
func TestArchiveFiles(t *testing.T) {
	a := retention.Archive{Dir: filepath.Join(t.TempDir(), "data", "archive"), Wanted: func() bool { return true }}
	k, _ := keeper(a, time.Hour)
	var failed error
	add := func(name string, from io.Reader) {
		k.Parts[0].Trim = func(_ context.Context, pass store.Trimming) error {
			failed = pass.ArchiveFile(name, from)
			return failed
		}
		k.TrimAll(t.Context(), time.Now())
	}
	add("inbox/2024-01-01/a.txt", strings.NewReader("one"))
	add("inbox/2024-01-01/a.txt", strings.NewReader("two"))
	if failed != nil {
		t.Error(failed)
	}
	broken := errors.New("a disk that cannot be read")
	for _, name := range []string{"a.txt", "b.txt"} {
		add("inbox/2024-01-01/"+name, io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
		if !errors.Is(failed, broken) {
			t.Errorf("a file that cannot be read is archived: %v", failed)
		}
	}
	for _, name := range []string{"../up", "/up", "inbox/../../../up"} {
		add(name, strings.NewReader("x"))
		if failed == nil {
			t.Errorf("%s is archived", name)
		}
	}
	var all []string
	err := filepath.WalkDir(filepath.Dir(filepath.Dir(a.Dir)), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			all = append(all, path)
		}
		return err
	})
	file := filepath.Join(a.Dir, "part", "inbox", "2024-01-01", "a.txt")
	text, readErr := os.ReadFile(file)
	if err := errors.Join(err, readErr); err != nil || string(text) != "two" || len(all) != 1 {
		t.Errorf("the archive has %q, and in it %q, %v", all, text, err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 { // R-S6
		t.Errorf("the file is %v, %v", info.Mode(), err)
	}
}

// P28: what is more than a limit is removed every ten minutes, and archived, too.
func TestLimits(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		a := retention.Archive{Dir: filepath.Join(t.TempDir(), "archive"), Wanted: func() bool { return true }}
		k, _ := keeper(a, 0, 0)
		counted, limited := 0, 0
		k.Removed = func(_ string, n int) { counted += n }
		k.Parts[1].Limit = func(_ context.Context, pass store.Trimming) error {
			limited++
			return errors.Join(pass.Save("name", fmt.Append(nil, limited)), pass.Step(2))
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			k.Run(ctx)
			close(ended)
		}()
		timetest.Sleep(31 * time.Minute)
		stop()
		<-ended
		text, err := os.ReadFile(filepath.Join(a.Dir, "part", "name.jsonl"))
		if limited != 3 || counted != 6 || string(text) != "1\n2\n3\n" || err != nil {
			t.Errorf("%d times, %d removed, archived %q, %v", limited, counted, text, err)
		}
	})
}

// P28: an archive that cannot be written is told until it can be.
func TestFaults(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		wanted := true
		dir := filepath.Join(t.TempDir(), "archive")
		k, _ := keeper(retention.Archive{Dir: dir, Wanted: func() bool { return wanted }}, time.Hour, time.Hour)
		period := time.Hour
		k.Parts[0].Name = "other"
		k.Parts[0].Trim = func(context.Context, store.Trimming) error { return nil }
		k.Parts[1].Period = func() time.Duration { return period }
		calls := 0
		k.Parts[1].Trim = func(_ context.Context, pass store.Trimming) error {
			calls++
			if calls == 2 { // what comes later succeeds
				return errors.Join(pass.Save("broken", []byte("1")), pass.Save("sound", []byte("1")))
			}
			return pass.Save("broken", []byte("1"))
		}
		trim := func(want string) {
			t.Helper()
			k.TrimAll(t.Context(), time.Now())
			part, err := k.Faults.First()
			if want == "" && (err != nil || part != "") || want != "" && (part != "part" || err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("the fault of %q is %v; want %q", part, err, want)
			}
		}
		trim("")
		inTheWay := filepath.Join(dir, "part", "broken.jsonl")
		if err := errors.Join(os.Remove(inTheWay), os.Mkdir(inTheWay, 0o700)); err != nil {
			t.Fatal(err)
		}
		trim("is a directory")
		trim("is a directory")
		wanted = false
		trim("")
		wanted = true
		trim("is a directory")
		period = 0
		trim("")
		period = time.Hour
		trim("is a directory")
		if err := os.Remove(inTheWay); err != nil {
			t.Fatal(err)
		}
		trim("")
	})
}

// P28: a file that cannot be read is no fault of the archive.
func TestUnreadableSource(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		k, _ := keeper(retention.Archive{Dir: t.TempDir(), Wanted: func() bool { return true }}, time.Hour)
		broken := errors.New("broken disk")
		var saved error
		k.Parts[0].Trim = func(_ context.Context, pass store.Trimming) error {
			saved = pass.ArchiveFile("a.txt", io.MultiReader(strings.NewReader("half"), iotest.ErrReader(broken)))
			return saved
		}
		k.TrimAll(t.Context(), time.Now())
		if part, err := k.Faults.First(); err != nil || !errors.Is(saved, broken) {
			t.Errorf("saved: %v; the fault of %q is %v", saved, part, err)
		}
	})
}

// P28: a file that cannot be read does not hide that the archive could not be written.
func TestUnreadableSourceKeepsFault(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "archive")
		k, _ := keeper(retention.Archive{Dir: dir, Wanted: func() bool { return true }}, time.Hour)
		var from io.Reader
		k.Parts[0].Trim = func(_ context.Context, pass store.Trimming) error { return pass.ArchiveFile("a.txt", from) }
		trim := func(source io.Reader) error {
			from = source
			k.TrimAll(t.Context(), time.Now())
			_, err := k.Faults.First()
			return err
		}
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if trim(strings.NewReader("one")) == nil {
			t.Error("an archive that cannot be written is no fault")
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		if trim(iotest.ErrReader(errors.New("broken disk"))) == nil {
			t.Error("the fault is forgotten, though nothing was archived since")
		}
		if err := trim(strings.NewReader("one")); err != nil {
			t.Errorf("after a file was archived, the fault is %v", err)
		}
	})
}

// P28: what is beyond a limit is told of if it cannot be archived.
func TestFaultOfLimit(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "archive")
		k, _ := keeper(retention.Archive{Dir: dir, Wanted: func() bool { return true }}, 0)
		k.Parts[0].Limit = func(_ context.Context, pass store.Trimming) error { return pass.Save("name", []byte("1")) }
		if err := os.WriteFile(dir, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		go k.Run(ctx)
		timetest.Sleep(21 * time.Minute)
		synctest.Wait()
		if part, err := k.Faults.First(); part != "part" || err == nil {
			t.Errorf("the fault of %q is %v", part, err)
		}
		quiet := k
		quiet.Parts = slices.Clone(k.Parts)
		quiet.Parts[0].Period = func() time.Duration { return time.Hour }
		quiet.Parts[0].Trim = func(context.Context, store.Trimming) error { return nil }
		quiet.TrimAll(t.Context(), time.Now()) // with nothing that is old
		if part, err := k.Faults.First(); part != "part" || err == nil {
			t.Errorf("after a night the fault of %q is %v", part, err)
		}
		if err := os.Remove(dir); err != nil {
			t.Fatal(err)
		}
		timetest.Sleep(10 * time.Minute)
		synctest.Wait()
		if part, err := k.Faults.First(); err != nil {
			t.Errorf("the fault of %q is %v", part, err)
		}
	})
}

// The log says how old things are as the config does.
func TestLogSaysDays(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		var text strings.Builder
		k, _ := keeper(retention.Archive{Wanted: never}, 730*24*time.Hour, 36*time.Hour)
		k.Log = slog.New(slog.NewTextHandler(&text, nil))
		for i := range k.Parts {
			k.Parts[i].Trim = func(_ context.Context, pass store.Trimming) error { return pass.Step(1) }
		}
		k.TrimAll(t.Context(), time.Now())
		if got := text.String(); !strings.Contains(got, "older=730d\n") || !strings.Contains(got, "older=36h0m0s\n") {
			t.Errorf("the log says %s", got)
		}
	})
}
