package scheduler

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
)

// errStopped is why a person's order ends a run of one of the gateway's own jobs.
var errStopped = errors.New("stopped by an owner")

// SystemRuns are the runs of the gateway's own jobs that are under way. Runs of other
// jobs are turns of the agent.
type SystemRuns struct {
	mu   sync.Mutex
	stop map[string]context.CancelCauseFunc // by the IDs of the jobs
}

// SystemRuns returns the runs of the gateway's own jobs.
func (s *Scheduler) SystemRuns() *SystemRuns { return &s.system }

// set notes how the run of the job id is stopped; nil: it is over.
func (r *SystemRuns) set(id string, stop context.CancelCauseFunc) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if stop == nil {
		delete(r.stop, id)
		return
	}
	if r.stop == nil {
		r.stop = map[string]context.CancelCauseFunc{}
	}
	r.stop[id] = stop
}

// Stop stops the run of the job id, and reports whether one was under way.
func (r *SystemRuns) Stop(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	stop := r.stop[id]
	if stop != nil {
		stop(errStopped)
	}
	return stop != nil
}

// IDs returns the IDs of the jobs that run.
func (r *SystemRuns) IDs() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Sorted(maps.Keys(r.stop))
}
