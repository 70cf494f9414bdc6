package web

import (
	"context"
	"net/http"
	"slices"
	"time"

	"parley/scheduler"
)

// A Clock is what is done at its time. What whoever asks got wrong, the functions
// say with [Wrong].
type Clock struct {
	Jobs func(context.Context) ([]Job, error) // the next one first
	// AddJob makes a job that speaks in the session to, or if that is "" where
	// the owner can be spoken to first.
	AddJob    func(ctx context.Context, to string, o Order) (scheduler.Job, error)
	EditJob   func(ctx context.Context, id string, o Order) (scheduler.Job, error)
	FireJob   func(ctx context.Context, id string) error
	RemoveJob func(ctx context.Context, id string) error
}

// A Job is a job on the clock, and when it is due next.
type Job struct {
	scheduler.Job
	Soon []time.Time `json:"soon"`
}

// Last is the run that began last, nil if there was none.
func (j Job) Last() *scheduler.Run {
	if len(j.Runs) == 0 {
		return nil
	}
	return &j.Runs[len(j.Runs)-1]
}

// Latest are its runs, the latest first.
func (j Job) Latest() []scheduler.Run {
	runs := slices.Clone(j.Runs)
	slices.Reverse(runs)
	return runs
}

// An Order says what a job is to be like. What is left out is as usual, or stays as it is.
type Order struct {
	Action   string         `json:"-"`
	ID       string         `json:"-"`
	Name     string         `json:"name"`
	Message  string         `json:"message"`
	Every    int            `json:"every_seconds"`
	Cron     string         `json:"cron_expr"`
	Zone     string         `json:"tz"`
	At       string         `json:"at"`
	Isolated *bool          `json:"isolated"`
	Quiet    *bool          `json:"quiet"`
	Model    string         `json:"model"`
	Missed   string         `json:"missed"`
	Tool     string         `json:"tool"`
	Args     map[string]any `json:"args"`
	On       *bool          `json:"enabled"`
}

// A NewJob is the Order of a job that there is not yet.
type NewJob struct {
	Order
	To string `json:"to,omitempty"` // the session that hears of it
}

func (s *Server) jobs(r *http.Request) (any, error) {
	all, err := s.House.Jobs(r.Context())
	return struct {
		Jobs []Job `json:"jobs"`
	}{append([]Job{}, all...)}, err
}

// addJob puts a job on the clock.
func (s *Server) addJob(w http.ResponseWriter, r *http.Request, v visitor) error {
	var ask NewJob
	if err := body(w, r, &ask); err != nil {
		return err
	}
	j, err := s.House.AddJob(r.Context(), ask.To, ask.Order)
	if err != nil {
		return err
	}
	s.Audit("cron", v.ID, "added: "+j.ID)
	writeJSON(w, http.StatusCreated, j)
	return nil
}

// editJob changes a job, and switches it on and off.
func (s *Server) editJob(w http.ResponseWriter, r *http.Request, v visitor) error {
	var o Order
	if err := body(w, r, &o); err != nil {
		return err
	}
	j, err := s.House.EditJob(r.Context(), r.PathValue("id"), o)
	if err != nil {
		return err
	}
	s.Audit("cron", v.ID, "changed: "+j.ID)
	writeJSON(w, http.StatusOK, j)
	return nil
}
