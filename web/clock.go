package web

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"time"

	"parley/scheduler"
)

// A Clock is what is done at its time. What whoever asks got wrong, the functions
// say with [Wrong].
type Clock struct {
	Jobs func(context.Context) ([]Job, error) // the next one first
	// Order changes the job of that ID, or makes one if it is "", as a JSON object says.
	Order  func(ctx context.Context, id string, o json.RawMessage) (scheduler.Job, error)
	Fire   func(ctx context.Context, id string) error
	Remove func(ctx context.Context, id string) error
}

// A Job is a job on the clock, and when it is due next.
type Job struct {
	scheduler.Job
	Soon []time.Time `json:"soon"`
}

// Latest are its runs, the latest first.
func (j Job) Latest() []scheduler.Run {
	runs := slices.Clone(j.Runs)
	slices.Reverse(runs)
	return runs
}

func (s *Server) jobs(r *http.Request) (any, error) {
	all, err := s.House.Jobs(r.Context())
	return struct {
		Jobs []Job `json:"jobs"`
	}{append([]Job{}, all...)}, err
}

// order puts a job on the clock, or changes one.
func (s *Server) order(w http.ResponseWriter, r *http.Request) (any, string, error) {
	var o json.RawMessage
	if err := body(w, r, &o); err != nil {
		return nil, "", err
	}
	id, done := r.PathValue("id"), "changed: "
	if id == "" {
		done = "added: "
	}
	j, err := s.House.Order(r.Context(), id, o)
	return j, done + j.ID, err
}
