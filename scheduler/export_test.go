package scheduler

import (
	"context"
	"time"

	"parley/store"
)

// none is a Store for schedulers that never touch it.
type none struct{ store.Store }

func (none) Bucket(string) store.Bucket { return nil }

// SetMaxSleep makes the loop sleep for up to d, in tests that leave the wall clock alone.
func (s *Scheduler) SetMaxSleep(d time.Duration) { s.maxSleep = d }

// ReadChangedJobs reads the records as Run does when it starts.
func (s *Scheduler) ReadChangedJobs(ctx context.Context) error { return s.readChangedJobs(ctx) }
