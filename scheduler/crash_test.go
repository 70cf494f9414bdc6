package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/store/bolt"
	"parley/store/storetest"
	"parley/timetest"
)

var errDead = errors.New("the process is dead")

// A mortal is a store that fails from its nth operation on, as if the process had
// died. The nth may still take effect although it returns an error.
type mortal struct {
	store.Store
	left atomic.Int64 // counted before and after each operation that changes something
}

func (m *mortal) Bucket(name string) store.Bucket { return mortalBucket{m.Store.Bucket(name), m} }

type mortalBucket struct {
	store.Bucket
	m *mortal
}

func (b mortalBucket) step(f func() error) error {
	if b.m.left.Add(-1) < 0 {
		return errDead
	}
	err := f()
	if b.m.left.Add(-1) < 0 {
		return errDead
	}
	return err
}

func (b mortalBucket) Put(ctx context.Context, key string, val []byte, rev uint64) (given uint64, err error) {
	err = b.step(func() error { given, err = b.Bucket.Put(ctx, key, val, rev); return err })
	return given, err
}

func (b mortalBucket) Delete(ctx context.Context, key string) error {
	return b.step(func() error { return b.Bucket.Delete(ctx, key) })
}

// A crash at any store operation or delivery neither loses nor repeats a run: each
// due time has one key, and its run ends (P12).
func TestP12Crash(t *testing.T) {
	for life := 1; life < 40; life++ {
		timetest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			whole := w.store
			w.add(scheduler.Job{ID: "hourly", Schedule: hourly})
			w.add(scheduler.Job{ID: "once", Schedule: scheduler.Schedule{At: at(2)}})
			w.system = []scheduler.System{{ID: "dream", Schedule: scheduler.Schedule{Cron: "0 1 * * *"},
				Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
					w.mu.Lock()
					defer w.mu.Unlock()
					w.keys["dream"]++
					return scheduler.Ended{Outcome: scheduler.Silent}, nil
				}}}
			m := &mortal{Store: whole}
			m.left.Store(int64(life))
			w.store = m
			ctx, cancel := context.WithCancel(t.Context())
			s, ended := scheduler.New(w.config()), make(chan struct{})
			w.s = s
			go func() { defer close(ended); _ = s.Run(ctx) }()
			w.wait(2*time.Hour + 10*time.Second)
			cancel()
			<-ended
			w.store = whole
			s = scheduler.New(w.config())
			for _, r := range w.runs { // the inbox reports the end of each message that it still has
				if err := s.Ended(t.Context(), r, w.result); err != nil {
					t.Error(err)
				}
			}
			w.open()
			w.wait(30 * time.Minute)
			var got []string
			for _, r := range w.runs {
				got = append(got, fmt.Sprint(r.ID, " ", r.Time.Sub(at(0)).Round(time.Hour)))
			}
			slices.Sort(got)
			want := []string{"hourly/1 1h0m0s", "hourly/2 2h0m0s", "once/1 2h0m0s"}
			if !slices.Equal(got, want) && !slices.Equal(got, []string{"hourly/1 2h0m0s", "once/1 2h0m0s"}) { // the run due at 1:00 was missed
				t.Errorf("life %d: %q", life, got)
			}
			for _, r := range w.job("hourly").Runs {
				if r.Outcome != scheduler.Answered && r.Outcome != scheduler.Missing {
					t.Errorf("life %d: %+v", life, r)
				}
			}
			if _, err := w.s.Job(t.Context(), "once"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("life %d: %v", life, err)
			}
			if w.keys["dream"] > 1 || len(w.job("dream").Runs) != 1 {
				t.Errorf("life %d: dreamt %d times: %q", life, w.keys["dream"], history(w.job("dream")))
			}
		})
	}
}

// A request for a run that is repeated after a crash runs the job once (P6),
// whatever reached the disk, and even if the run is over. A new request runs it again.
func TestP6FireOnce(t *testing.T) {
	for life := range 4 {
		timetest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			j := w.add(scheduler.Job{Schedule: scheduler.Schedule{Cron: "@yearly"}})
			whole := w.store
			m := &mortal{Store: whole}
			m.left.Store(int64(life))
			w.store = m
			first := scheduler.New(w.config()).Fire(t.Context(), j.ID, "call", false)
			if died := life < 2; (first != nil) != died {
				t.Fatalf("life %d: %v", life, first)
			}
			w.store = whole
			s := w.open()
			for _, key := range []string{"call", "call", "another"} {
				if err := s.Fire(t.Context(), j.ID, key, false); err != nil {
					t.Error(err)
				}
				w.wait(time.Second)
			}
			if got := history(w.job(j.ID)); !slices.Equal(got, []string{"1 answered ", "2 answered "}) || w.count() != 2 {
				t.Errorf("life %d: %q", life, got)
			}
			w.set(func() { w.hold = true })
			for range 2 { // the run of this key is under way, which is no error
				if err := s.Fire(t.Context(), j.ID, "long", false); err != nil {
					t.Error(err)
				}
				w.wait(time.Second)
			}
		})
	}
}

// Two schedulers on one store run nothing twice (P12).
func TestP12Two(t *testing.T) {
	run := func(t *testing.T, s store.Store, jobs int, every, d time.Duration, sleep func(time.Duration)) {
		var mu sync.Mutex
		count, house := map[string]int{}, 0
		c := scheduler.Config{Store: s, Zone: time.UTC, MaxJobs: func() int { return jobs }, MinInterval: time.Millisecond,
			Deliver: func(_ context.Context, m chat.Message) error {
				mu.Lock()
				defer mu.Unlock()
				count[m.Key()]++
				return nil
			},
			Role: func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return chat.Owner, nil },
			Tell: func(context.Context, string, chat.Address, string) error { return nil },
			System: []scheduler.System{{ID: "house", Schedule: scheduler.Schedule{Every: every},
				Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
					mu.Lock()
					defer mu.Unlock()
					house++
					return scheduler.Ended{Outcome: scheduler.Silent}, nil
				}}}}
		ctx, cancel := context.WithCancel(t.Context())
		one, two := scheduler.New(c), scheduler.New(c)
		for i := range jobs {
			seed(t, s, scheduler.Job{ID: fmt.Sprint("j", i), Text: "x", At: home, By: alice, Created: time.Now(), Next: time.Now().Add(every),
				Schedule: scheduler.Schedule{Every: every}})
		}
		var live sync.WaitGroup
		for _, s := range []*scheduler.Scheduler{one, two} {
			live.Go(func() {
				if err := s.Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
		sleep(d)
		cancel()
		live.Wait()
		all, err := one.Jobs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, j := range all {
			if ran := len(j.Runs); j.N != 1 && !j.System || ran == 0 {
				t.Errorf("%s: %d claimed, %d noted", j.ID, j.N, ran)
			}
			if j.System && uint64(house) != j.N {
				t.Errorf("the house's job was begun %d times, and claimed %d", house, j.N)
			}
		}
		if len(count) != jobs { // the inbox drops repeated keys
			t.Errorf("%d keys of %d", len(count), jobs)
		}
	}
	t.Run("mem", func(t *testing.T) {
		timetest.Test(t, func(t *testing.T) {
			run(t, newWorld(t).store, 200, time.Hour, 3*time.Hour+time.Minute, timetest.Sleep)
		})
	})
	t.Run("bolt", func(t *testing.T) {
		db, err := bolt.Open(t.Context(), bolt.Config{Dir: t.TempDir()})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		watched := storetest.Watch(db, func(string) {}, func(string) {})
		run(t, watched, 20, 700*time.Millisecond, 1600*time.Millisecond, time.Sleep)
	})
}

// Over any sequence of restarts and changes of the wall clock, each run has its own
// key, runs do not come in bursts, and no job stands still (P12, P23).
func TestPropertyP12P23(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		deeds := rapid.SliceOfN(rapid.SampledFrom([]string{"restart", "hour back", "day back", "hour on", "day on", "down", "wait", "wait"}), 1, 5).Draw(r, "deeds")
		lens := rapid.SliceOfN(rapid.IntRange(1, 120), len(deeds), len(deeds)).Draw(r, "minutes")
		var wrong []string
		timetest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.maxSleep = 5 * time.Minute
			w.open()
			for name, s := range map[string]scheduler.Schedule{"often": {Every: 7 * time.Minute}, "hourly": {Cron: "5 * * * *"}, "daily": {Cron: "0 9 * * *"}} {
				w.add(scheduler.Job{ID: name, Text: name, Schedule: s})
			}
			back := false
			for i, deed := range deeds {
				d := time.Duration(lens[i]) * time.Minute
				before := w.count()
				switch deed {
				case "restart":
					w.stop()
					w.open()
				case "down":
					w.stop()
					timetest.Sleep(d)
					w.open()
				default:
					step, is := map[string]time.Duration{"hour back": -time.Hour, "day back": -24 * time.Hour, "hour on": time.Hour, "day on": 24 * time.Hour}[deed]
					back = back || is && step < 0
					w.set(func() { w.step += step })
				}
				w.wait(10 * time.Minute)
				if n := w.count() - before; n > 8 {
					wrong = append(wrong, fmt.Sprintf("%s: a burst of %d", deed, n))
				}
				w.wait(d)
			}
			before := w.count()
			if w.wait(80 * time.Minute); w.count()-before < 11 {
				wrong = append(wrong, fmt.Sprintf("only %d runs in 80 minutes", w.count()-before))
			}
			for key, n := range w.keys {
				if n != 1 {
					wrong = append(wrong, fmt.Sprintf("%s came %d times", key, n))
				}
			}
			for _, name := range []string{"often", "hourly", "daily"} {
				runs := w.job(name).Runs
				for i := 1; i < len(runs); i++ {
					if !back && !runs[i].Due.After(runs[i-1].Due) {
						wrong = append(wrong, fmt.Sprintf("%s: %s after %s", name, runs[i].Due, runs[i-1].Due))
					}
				}
			}
			w.stop()
		})
		if len(wrong) > 0 {
			r.Fatalf("%s", strings.Join(wrong, "\n"))
		}
	})
}

func seed(t testing.TB, s store.Store, j scheduler.Job) {
	if _, err := store.NewTable(s.Bucket("jobs"), store.Report[scheduler.Job]).Put(t.Context(), j.ID, j, 0); err != nil {
		t.Fatal(err)
	}
}

// With a thousand jobs and several restarts, each job runs at each due time.
func TestP12Thousand(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.maxSleep = time.Hour
		for i := range 1000 {
			seed(t, w.store, scheduler.Job{ID: fmt.Sprint("j", i), At: home, By: alice, Created: at(0), Next: at(0).Add(time.Duration(i%60) * time.Minute),
				Schedule: scheduler.Schedule{Cron: fmt.Sprintf("%d */2 * * *", i%60)}})
		}
		for range 3 {
			w.open()
			w.wait(73 * time.Minute)
			w.stop()
		}
		w.open()
		w.wait(time.Minute)
		if got := len(w.ran()); got < 2000 || got > 2100 {
			t.Errorf("%d ran", got)
		}
		for key, n := range w.keys {
			if n != 1 {
				t.Errorf("%s came %d times", key, n)
			}
		}
	})
}
