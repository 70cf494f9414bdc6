package scheduler_test

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/store/bolt"
	"parley/store/mem"
)

// among opens a store with n jobs that are due at next, and a scheduler on it.
func among(b *testing.B, s store.Store, n int, next time.Time, deliver chat.Deliver) *scheduler.Scheduler {
	for i := range n {
		seed(b, s, scheduler.Job{ID: fmt.Sprint("j", i), Name: "news", Text: "what is new?", At: home, By: alice, Created: next.Add(-24 * time.Hour), Next: next,
			Schedule: scheduler.Schedule{Cron: "0 9 * * *", Zone: "Europe/Berlin"}})
	}
	return scheduler.New(scheduler.Config{Store: s, Zone: time.UTC, Deliver: deliver,
		Role: func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return chat.Owner, nil }})
}

func stores(b *testing.B, f func(*testing.B, func() store.Store)) {
	b.Run("mem", func(b *testing.B) { f(b, func() store.Store { return mem.New() }) })
	b.Run("bolt", func(b *testing.B) {
		f(b, func() store.Store {
			db, err := bolt.Open(b.Context(), bolt.Config{Dir: b.TempDir()})
			if err != nil {
				b.Fatal(err)
			}
			b.Cleanup(func() { _ = db.Close() })
			return db
		})
	})
}

// BenchmarkStart measures starting a scheduler with 10,000 jobs, and the memory per job.
func BenchmarkStart(b *testing.B) {
	stores(b, func(b *testing.B, open func() store.Store) {
		s := open()
		c := among(b, s, 10000, time.Now().Add(time.Hour), nil).Config
		kept := make([]*scheduler.Scheduler, 1)
		var before, after runtime.MemStats
		for b.Loop() {
			b.StopTimer()
			kept[0] = nil
			runtime.GC()
			runtime.ReadMemStats(&before)
			b.StartTimer()
			kept[0] = scheduler.New(c)
			if err := kept[0].ReadChangedJobs(b.Context()); err != nil {
				b.Fatal(err)
			}
			b.StopTimer()
			runtime.GC()
			runtime.ReadMemStats(&after)
			b.StartTimer()
		}
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/10000, "B/job")
		runtime.KeepAlive(kept)
	})
}

// BenchmarkFire measures a run from claim to end, with 10,000 jobs due at once.
func BenchmarkFire(b *testing.B) {
	stores(b, func(b *testing.B, open func() store.Store) {
		const n = 10000
		for b.Loop() {
			b.StopTimer()
			ctx, cancel := context.WithCancel(b.Context())
			var ran atomic.Int64
			var s *scheduler.Scheduler
			s = among(b, open(), n, time.Now(), func(ctx context.Context, m chat.Message) error {
				if ran.Add(1) == n {
					defer cancel()
				}
				return s.Ended(ctx, m, scheduler.Ended{Outcome: scheduler.Answered, Text: "nothing much"})
			})
			b.StartTimer()
			if err := s.Run(ctx); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N)/n, "µs/fire")
	})
}
