package scheduler

import (
	"context"
	"time"

	"parley/store"
)

// none is a store that nobody uses.
type none struct{ store.Store }

func (none) Bucket(string) store.Bucket { return nil }

// Nap lets s sleep longer, where nobody changes the clock.
func (s *Scheduler) Nap(d time.Duration) { s.nap = d }

// Look is the first look of Run.
func (s *Scheduler) Look(ctx context.Context) error { return s.look(ctx) }
