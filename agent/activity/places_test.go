package activity

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"parley/timetest"
)

const fresh = 8

// begin has n activities take a place, which each have for so long, and returns how long each had to wait.
func begin(t *testing.T, p *Places, n int, long time.Duration) (waits []time.Duration) {
	var all sync.WaitGroup
	var mu sync.Mutex
	start := time.Now()
	for range n {
		all.Go(func() {
			release, err := p.Take(t.Context())
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			waits = append(waits, time.Since(start))
			mu.Unlock()
			<-time.After(long)
			release()
			release() // no effect
		})
	}
	all.Wait()
	slices.Sort(waits)
	return waits
}

// Of many activities so many begin at once; one more begins when one ends, or has been under way for a while.
func TestCrowdBeginsByAndBy(t *testing.T) {
	for _, c := range []struct{ long, second, third time.Duration }{
		{100 * time.Millisecond, 100 * time.Millisecond, 200 * time.Millisecond},
		{time.Hour, freshTime, 2 * freshTime}, // a model that does not answer
	} {
		timetest.Test(t, func(t *testing.T) {
			waits := begin(t, newPlaces(100, fresh), 2*fresh+1, c.long)
			for i, want := range map[int]time.Duration{0: 0, fresh - 1: 0, fresh: c.second, 2 * fresh: c.third} {
				if waits[i] != want {
					t.Errorf("activities of %v: number %d waited for %v, want %v", c.long, i, waits[i], want)
				}
			}
		})
	}
}

// No more activities are under way than there are places, however old they are.
func TestPlacesAreLimited(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		waits := begin(t, newPlaces(2, fresh), 4, time.Minute)
		if want := []time.Duration{0, 0, time.Minute, time.Minute}; !slices.Equal(waits, want) {
			t.Errorf("waited for %v, want %v", waits, want)
		}
	})
}

// Who gives up waiting leaves no place taken.
func TestGivingUpTakesNoPlace(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		p := newPlaces(fresh+1, fresh)
		var releases []func()
		for range fresh {
			release, _ := p.Take(t.Context())
			releases = append(releases, release)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := p.Take(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a place beyond those there are: %v", err)
		}
		for _, release := range releases {
			release()
		}
		if waits := begin(t, p, fresh, 0); waits[fresh-1] != 0 {
			t.Errorf("the last of %d waited for %v", fresh, waits[fresh-1])
		}
	})
}
