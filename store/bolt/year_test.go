package bolt_test

import (
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"sync"
	"syscall"
	"testing"
	"time"

	"parley/sizes"
	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
)

// What a year is made of: of 20,000 messages a day every hundredth, with what Parley stores
// of one that takes two tools.
const (
	yearDays       = 365
	yearMessages   = 20_000 / 100 // a day
	yearSessions   = 40
	yearKept       = 90 // days, of everything
	yearRecords    = 6  // of a session's log
	yearRecordSize = 400
	yearEvents     = 2 // of the audit log
	yearEventSize  = 350
	yearMeasured   = 15 // days between two measurements, which read slowly
)

// A year is a Store in which virtual days pass.
type year struct {
	*testing.B
	dir    string
	store  *bolt.Store
	sizes  sizes.Keeper
	now    time.Time
	ends   map[string][]uint64 // of logs, by day: the last record
	opened time.Duration
}

func (y *year) open() {
	y.Helper()
	began := time.Now()
	s, err := bolt.Open(y.Context(), bolt.Config{Dir: y.dir})
	if err != nil {
		y.Fatal(err)
	}
	y.opened = time.Since(began)
	y.store = s
	y.sizes.Store = s
	s.SetNow(func() time.Time { return y.now })
}

// answer stores what a message, its turn and its reply leave.
func (y *year) answer(session string, n int) error {
	ctx := y.Context()
	id := fmt.Sprintf("%s/%d/%d", session, y.now.Unix(), n)
	in, out := y.store.Queue(store.QueueInbox), y.store.Queue(store.QueueOutbox("telegram"))
	if err := in.Push(ctx, id, make([]byte, yearRecordSize)); err != nil {
		return err
	}
	item, err := in.Pull(ctx)
	if err != nil {
		return err
	}
	for range yearRecords {
		if _, err := y.store.Log(store.LogSession(session, "")).Append(ctx, store.Any, make([]byte, yearRecordSize)); err != nil {
			return err
		}
	}
	for range yearEvents {
		if _, err := y.store.Log(store.LogAudit).Append(ctx, store.Any, make([]byte, yearEventSize)); err != nil {
			return err
		}
	}
	if err := out.Push(ctx, id, make([]byte, yearRecordSize)); err != nil {
		return err
	}
	if err := item.Done(ctx); err != nil {
		return err
	}
	reply, err := out.Pull(ctx)
	if err != nil {
		return err
	}
	return reply.Done(ctx)
}

// pass lets a day pass, and its night.
func (y *year) pass() {
	y.Helper()
	var all sync.WaitGroup
	for n := range yearSessions {
		all.Go(func() {
			for i := range yearMessages / yearSessions {
				if err := y.answer(fmt.Sprint("telegram/", n), i); err != nil {
					y.Error(err)
				}
			}
		})
	}
	all.Wait()
	y.now = y.now.Add(24 * time.Hour)
	y.trim(store.LogAudit, yearMessages*yearEvents)
	for n := range yearSessions {
		y.trim(store.LogSession(fmt.Sprint("telegram/", n), ""), yearMessages/yearSessions*yearRecords)
	}
}

// trim removes what is too old from a log that got that many records today.
func (y *year) trim(name string, records int) {
	y.Helper()
	ends := append(y.ends[name], uint64(records))
	if n := len(ends); n > 1 {
		ends[n-1] += ends[n-2]
	}
	y.ends[name] = ends
	if len(ends) <= yearKept {
		return
	}
	if err := y.store.Log(name).Trim(y.Context(), ends[len(ends)-1-yearKept]); err != nil {
		y.Fatal(err)
	}
}

// report prints the state at the end of a month.
func (y *year) report(day int) {
	y.Helper()
	samples, err := sizes.Samples(y.Context(), y.store)
	if err != nil {
		y.Fatal(err)
	}
	last := samples[len(samples)-1]
	if err := y.store.Close(); err != nil {
		y.Fatal(err)
	}
	info, err := os.Stat(file(y.dir))
	if err != nil {
		y.Fatal(err)
	}
	y.open()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	disk := info.Sys().(*syscall.Stat_t).Blocks * 512
	y.Logf("| %3d | %6.1f | %6.1f | %5.1f | %4.1f |", day, float64(disk)/1e6,
		float64(last.Bytes[sizes.Free])/1e6, y.opened.Seconds()*1000, float64(m.HeapAlloc)/1e6)
}

// BenchmarkYear lets a year of messages pass on a virtual clock, at a hundredth of their
// number, with a quarter of a year as the period of everything: once that has passed, size,
// start and memory stay what they are. It prints the table for docs/performance.md.
func BenchmarkYear(b *testing.B) {
	for b.Loop() {
		y := &year{
			B:    b,
			dir:  storetest.TempDir(b),
			now:  time.Now(),
			ends: map[string][]uint64{},
			sizes: sizes.Keeper{
				Room: func(string, uint64) error { return nil },
				Log:  slog.New(slog.DiscardHandler),
			},
		}
		y.sizes.DataDir = y.dir
		y.sizes.Workspace = y.dir
		y.open()
		b.Log("| day | parley.db, MB | free in it, MB | open, ms | heap, MB |")
		for day := 1; day <= yearDays; day++ {
			y.pass()
			if day%yearMeasured == 0 {
				if err := y.sizes.Pass(b.Context(), y.now); err != nil {
					b.Fatal(err)
				}
			}
			if day%30 == 0 || day == yearDays {
				y.report(day)
			}
		}
		if err := y.store.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
