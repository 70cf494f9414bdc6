package activity

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

const (
	maxFresh  = 512             // activities that began less than freshTime ago
	freshTime = 2 * time.Second // longer than a quick model needs for its answer
)

// Places limit how many activities are under way at once, and how many of them have just begun: a crowd that a quick
// model answers does not all have its turns in memory at once, and whoever waits for a slow one, or for one that
// never answers, keeps others waiting for a moment only. Those who wait are served in the order they came.
type Places struct {
	all, fresh *semaphore.Weighted
}

// NewPlaces returns n places.
func NewPlaces(n int) *Places { return newPlaces(n, maxFresh) }

func newPlaces(n, fresh int) *Places {
	return &Places{all: semaphore.NewWeighted(int64(n)), fresh: semaphore.NewWeighted(int64(min(n, fresh)))}
}

// Take waits for a place. The caller calls release once the activity is over or rests; further calls have no effect.
func (p *Places) Take(ctx context.Context) (release func(), err error) {
	if err := p.all.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	if err := p.fresh.Acquire(ctx, 1); err != nil {
		p.all.Release(1)
		return nil, err
	}
	age := sync.OnceFunc(func() { p.fresh.Release(1) })
	timer := time.AfterFunc(freshTime, age)
	return sync.OnceFunc(func() {
		timer.Stop()
		age()
		p.all.Release(1)
	}), nil
}
