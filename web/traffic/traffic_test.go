package traffic

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

// Hours and days are counted apart, the durations of an hour have a median and a 95th percentile, and what is a
// month old is forgotten.
func TestHours(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := New() // at midnight
		c.Message()
		for i := range 100 {
			c.Turn(time.Duration(i+1)*time.Second, i == 0)
		}
		c.Turn(0, true)
		timetest.Sleep(time.Hour + time.Minute)
		c.Turn(7*time.Second, false)
		all := c.Hours(3)
		median, p95 := all[1].Median, all[1].Percentile95 // by bins
		if got, want := all[1], (Count{Start: all[1].Start, Messages: 1, Turns: 101, Failed: 2, Answered: 100, Median: median, Percentile95: p95}); got != want || median < 49*time.Second || median > 52*time.Second || p95 < 92*time.Second || p95 > 97*time.Second {
			t.Errorf("the hour is %+v, want %+v", got, want)
		}
		if got := all[2]; got.Turns != 1 || got.Median != 7*time.Second || got.Percentile95 != 7*time.Second || all[0].Turns != 0 {
			t.Errorf("the hours are %+v", all)
		}
		if got := c.Since(c.Began()); got.Turns != 102 || got.Answered != 101 {
			t.Errorf("in all %+v", got)
		}
		timetest.Sleep(24 * time.Hour)
		c.Message()
		if days := c.Days(time.Now(), 3); days[0].Turns+days[0].Messages != 0 || days[1].Turns != 102 || days[2].Messages != 1 || days[2].Turns != 0 {
			t.Errorf("the days are %+v", days)
		}
	})
}

// An hour with many answers counts for what it is: its durations are weighted by how many they stand for.
func TestQuantilesAreWeighted(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := New()
		for range 1000 {
			c.Turn(time.Second, false)
		}
		timetest.Sleep(time.Hour)
		for range 300 {
			c.Turn(time.Minute, false)
		}
		if got := c.Since(c.Began()); got.Median != time.Second || got.Percentile95 != time.Minute || got.Answered != 1300 {
			t.Errorf("in all %+v", got)
		}
	})
}

// TestHistory: what was counted is there after a restart, and at most the last five minutes are missing after a
// crash; nothing is written meanwhile, however much is counted, and what is a month old is removed.
func TestHistory(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		disk := &countingStore{Store: mem.New()}
		kill := errors.New("killed")
		open := func() (c *Counter, end func(cause error)) {
			c = New()
			ctx, stop := context.WithCancelCause(t.Context())
			done := make(chan struct{})
			b := disk.Bucket(store.BucketTraffic)
			go func() {
				defer close(done)
				c.Keep(ctx, lostBucket{b, ctx, kill}, slog.New(slog.DiscardHandler))
			}()
			synctest.Wait()
			return c, func(cause error) { stop(cause); <-done }
		}
		c, end := open()
		for range 5 * 60 * 10 { // for 50 minutes
			c.Message()
			c.Turn(3*time.Second, false)
			timetest.Sleep(time.Second)
		}
		if n := disk.writes.Load(); n < 9 || n > 11 {
			t.Errorf("%d writes in 50 minutes", n)
		}
		end(nil)
		c, end = open()
		began := c.Began()
		if got := c.Since(began); got.Messages != 3000 || got.Turns != 3000 || got.Answered != 3000 || got.Median != 3*time.Second || time.Since(began) < 50*time.Minute {
			t.Errorf("after a restart %+v since %v", got, began)
		}
		timetest.Sleep(time.Second)
		c.Message() // in the same hour
		timetest.Sleep(writeInterval + time.Minute)
		c.Message()
		end(kill)
		c, end = open()
		if got := c.Since(began); got.Messages != 3001 && got.Messages != 3002 {
			t.Errorf("after a crash %+v", got)
		}
		timetest.Sleep(40 * 24 * time.Hour)
		if got := c.Since(began); got.Turns != 0 {
			t.Errorf("a month later %+v", got)
		}
		end(nil)
		for key, err := range disk.Bucket(store.BucketTraffic).Keys(t.Context(), "") {
			t.Errorf("%s is left, %v", key, err)
		}
	})
}

// TestHistoryIsBounded: a month with many answers in each hour takes little room.
func TestHistoryIsBounded(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := mem.New().Bucket(store.BucketTraffic)
		ctx, stop := context.WithCancel(t.Context())
		c := New()
		done := make(chan struct{})
		go func() { defer close(done); c.Keep(ctx, b, slog.New(slog.DiscardHandler)) }()
		for range 35 * 24 {
			for i := range 100 {
				c.Turn(time.Duration(i+1)*time.Second, false)
			}
			timetest.Sleep(time.Hour)
		}
		stop()
		<-done
		size, n := 0, 0
		for key, err := range b.Keys(t.Context(), "") {
			value, _, failed := b.Get(t.Context(), key)
			if err != nil || failed != nil {
				t.Fatal(err, failed)
			}
			n++
			size += len(value)
		}
		if n < 30*24 || n > 31*24+1 || size > 1_500_000 {
			t.Errorf("%d hours take %d bytes", n, size)
		}
	})
}

// An hour that cannot be read is lost, and no other.
func TestDamagedHistory(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := mem.New().Bucket(store.BucketTraffic)
		for key, value := range map[string]string{
			time.Now().Add(-2 * time.Hour).UTC().Format(hourFormat): `{"messages":2}`,
			time.Now().Add(-time.Hour).UTC().Format(hourFormat):     `{"messages":`,
			"yesterday": `{"messages":7}`,
		} {
			if _, err := b.Put(t.Context(), key, []byte(value), store.Any); err != nil {
				t.Fatal(err)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		c := New()
		done := make(chan struct{})
		go func() { defer close(done); c.Keep(ctx, b, slog.New(slog.DiscardHandler)) }()
		synctest.Wait()
		if got := c.Since(c.Began()); got.Messages != 2 {
			t.Errorf("got %+v", got)
		}
		stop()
		<-done
	})
}

// A countingStore counts writes.
type countingStore struct {
	store.Store
	writes atomic.Int64
}

func (s *countingStore) Bucket(name string) store.Bucket {
	return countingBucket{s.Store.Bucket(name), s}
}

type countingBucket struct {
	store.Bucket
	s *countingStore
}

func (b countingBucket) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	b.s.writes.Add(1)
	return b.Bucket.Put(ctx, key, value, rev)
}

// A lostBucket takes no writes once ctx has ended with cause: as if the process had died.
type lostBucket struct {
	store.Bucket
	ctx   context.Context
	cause error
}

func (b lostBucket) Put(ctx context.Context, key string, value []byte, rev uint64) (uint64, error) {
	if errors.Is(context.Cause(b.ctx), b.cause) {
		return 0, nil
	}
	return b.Bucket.Put(ctx, key, value, rev)
}

// Percentiles of an hour with a restart are those of all its answers, before and after; what an earlier program wrote
// counts for as many answers as it stood for.
func TestPercentilesOverRestart(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		b := mem.New().Bucket(store.BucketTraffic)
		old := time.Now().Add(-5 * time.Hour)
		if _, err := b.Put(t.Context(), old.UTC().Format(hourFormat), []byte(`{"turns":300,"answered":300,"took":[1000,1000,8000]}`), store.Any); err != nil {
			t.Fatal(err)
		}
		answer := func(n int, took time.Duration) (all []Count) {
			c := New()
			ctx, stop := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() { defer close(done); c.Keep(ctx, b, slog.New(slog.DiscardHandler)) }()
			synctest.Wait()
			for range n {
				c.Turn(took, false)
			}
			all = c.Hours(6)
			stop()
			<-done
			return all
		}
		answer(1800, time.Second)
		answer(100, time.Minute)
		all := answer(100, time.Hour)
		if h := all[5]; h.Answered != 2000 || h.Median != time.Second || h.Percentile95 != time.Minute {
			t.Errorf("the hour of the restarts is %+v", h)
		}
		if h := all[0]; h.Answered != 300 || h.Median != time.Second || h.Percentile95 != 8*time.Second {
			t.Errorf("an hour of an earlier program is %+v", h)
		}
	})
}

// However many turns an hour has, its memory is bounded, and a quantile is off by as much as a bin is wide at most.
func TestHoursAreBounded(t *testing.T) {
	c := New()
	const shortest, longer, n = float64(time.Millisecond), float64(30 * time.Hour), 20_000
	at := func(share float64) time.Duration {
		return time.Duration(shortest * math.Pow(longer/shortest, share))
	}
	for i := range n {
		c.Turn(at(float64(i)/n), false)
	}
	h := c.current()
	if len(h.took) > 400 || h.answered != n {
		t.Errorf("%d bins of %d", len(h.took), h.answered)
	}
	for _, share := range []float64{.3, .5, .95} {
		if got := h.took.quantile(share); float64(got) < float64(at(share))/binWidth || float64(got) > float64(at(share))*binWidth {
			t.Errorf("the quantile %v is %v, not %v", share, got, at(share))
		}
	}
	if got := h.took.quantile(1); got > longest || float64(got) < float64(longest)/binWidth {
		t.Errorf("the longest is %v", h.took.quantile(1))
	}
}

// A model works if its last request was answered. A nil Counter counts nothing.
func TestModels(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		c := New()
		for _, why := range []string{"", "overloaded"} {
			c.Request("main", why)
			c.Request("other", "")
			timetest.Sleep(time.Second)
		}
		all := c.Models()
		if len(all) != 2 || all[0].Works() || all[0].Why != "overloaded" || all[0].Requests != 2 || all[0].Failed != 1 || !all[1].Works() {
			t.Errorf("models are %+v", all)
		}
		var none *Counter
		none.Message()
		none.Turn(time.Second, true)
		none.Request("main", "")
	})
}
