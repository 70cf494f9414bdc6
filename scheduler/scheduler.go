// Package scheduler is the clock of the house: it wakes the agent when the time of a job has come.
package scheduler

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"parley/chat"
	"parley/store"
)

// ErrProtected is returned by Edit and Remove for a job of the house, which
// nobody can change (D-096).
var ErrProtected = errors.New("this job belongs to the house")

// A Job is something to be done at certain times.
type Job struct {
	ID       string       `json:"id"`   // 1 to 64 letters, digits, "-" and "_"
	Name     string       `json:"name"` // for show; if empty, the first 30 characters of Text
	Schedule Schedule     `json:"schedule"`
	Text     string       `json:"text,omitempty"` // what the agent is told each time
	At       chat.Address `json:"at"`             // the chat it was made in, which hears of it
	Group    bool         `json:"group,omitempty"`
	By       chat.Sender  `json:"by"`                 // who made it; their role is asked anew for each run (R-S24)
	Isolated bool         `json:"isolated,omitempty"` // runs in a session of its own, which begins anew each time
	Quiet    bool         `json:"quiet,omitempty"`    // says nothing when there is nothing to say
	Model    string       `json:"model,omitempty"`    // name of the model that answers; "" is the session's
	Tool     string       `json:"tool,omitempty"`     // is called instead of a model …
	Args     string       `json:"args,omitempty"`     // … with these arguments, a JSON object
	Missed   Missed       `json:"missed,omitempty"`
	Off      bool         `json:"off,omitempty"`
	Why      string       `json:"why,omitempty"`    // it is off, if nobody switched it off
	System   bool         `json:"system,omitempty"` // the house's own: see [System]
	Created  time.Time    `json:"created"`
	N        uint64       `json:"n,omitempty"`      // runs begun
	Next     time.Time    `json:"next,omitzero"`    // when it is due; zero: never again
	Runs     []Run        `json:"runs,omitempty"`   // latest last, at most 20
	Failed   int          `json:"failed,omitempty"` // runs that failed since the last that answered
}

// Whose returns the person whose job it is, whose limits and memory count.
func (j Job) Whose() chat.Person { return chat.Whose(j.At, j.By, j.Group) }

// Missed says what becomes of a run whose time passed while nobody was there.
type Missed string

// What becomes of a missed run.
const (
	Once Missed = ""     // the latest is caught up with, if it is not too old (P12)
	Skip Missed = "skip" // it is only noted
)

// A Run is one time that a job was due.
type Run struct {
	N       uint64    `json:"n"`
	Due     time.Time `json:"due"`
	Began   time.Time `json:"began,omitzero"`
	Ended   time.Time `json:"ended,omitzero"`
	Outcome Outcome   `json:"outcome"`
	Note    string    `json:"note,omitempty"`   // why it ended so, in words for people
	Result  string    `json:"result,omitempty"` // the beginning of what came of it, at most 2,000 bytes: kept of the latest that answered
	Tokens  int       `json:"tokens,omitempty"`
	Cost    float64   `json:"cost,omitempty"` // money, in the unit of the config's prices
	Tainted bool      `json:"tainted,omitempty"`
}

// An Outcome says how a run ended, or how far it is.
type Outcome string

// The outcomes.
const (
	Claimed     Outcome = "claimed"     // it is about to be handed over
	Running     Outcome = "running"     // it was handed over
	Answered    Outcome = "answered"    // it said something
	Silent      Outcome = "silent"      // it had nothing to say
	Failed      Outcome = "failed"      // it came to nothing
	Interrupted Outcome = "interrupted" // the process ended, or nobody knows what became of it (P13)
	Stopped     Outcome = "stopped"     // somebody stopped it
	Skipped     Outcome = "skipped"     // the run before was not over
	Missing     Outcome = "missed"      // nobody was there when it was due (P12)
	Refused     Outcome = "refused"     // who made the job may not talk to the agent any more (R-S24)
)

// Ended is how a run ended.
type Ended struct {
	Outcome Outcome // Answered, Silent, Failed, Interrupted or Stopped
	Text    string  // what it said
	Note    string  // why it ended so, in words for people
	Tokens  int
	Cost    float64 // money, in the unit of the config's prices
	Tainted bool    // strangers have had a word in Text (R-S12)
}

// Config is what a [Scheduler] needs.
type Config struct {
	Store   store.Store
	Deliver chat.Deliver
	// Role says what from may do at a by now.
	Role func(ctx context.Context, at chat.Address, from chat.Sender) (chat.Role, error)
	// Tell says text in the chat, once for each id.
	Tell   func(ctx context.Context, id string, at chat.Address, text string) error
	Zone   *time.Location   // of cron specs that name none; nil is time.Local
	Least  time.Duration    // shortest interval; 0 means 10 s
	Most   int              // jobs that a person may have; 0 means 50
	System []System         // the house's own jobs
	Log    *slog.Logger     // nil discards
	Now    func() time.Time // the wall clock; nil is time.Now
}

// A System is a job of the house itself. It is listed, and nobody can change it (D-096).
type System struct {
	ID, Name string
	Schedule Schedule
	// Do runs it, in a goroutine of its own. If it returns the outcome
	// Running, the end is told later, by [Scheduler.Ended].
	Do func(ctx context.Context, j Job, r Run) (Ended, error)
}

// A Scheduler runs jobs. Make one with [New]. All methods may be called by
// many goroutines, also while Run does not run, and other processes may work
// on the same store.
type Scheduler struct {
	config Config
}

// New returns a Scheduler of the jobs in c.Store.
func New(c Config) *Scheduler { return &Scheduler{c} }

// Run runs what is due until ctx ends, and returns when all that it began is quiet.
func (s *Scheduler) Run(ctx context.Context) error { <-ctx.Done(); return nil }

// Add makes a job of j's ID, which it makes up if there is none, and returns
// it. If there is one of that ID already, it returns that one: a call that is
// repeated adds once. Errors are for people and models.
func (s *Scheduler) Add(ctx context.Context, j Job) (Job, error) { return j, errors.ErrUnsupported }

// Edit changes a job as edit does, and returns it. What edit may change is
// Name, Schedule, Text, Isolated, Quiet, Model, Tool, Args, Missed and Off.
// edit may be called more than once. It returns [store.ErrNotFound],
// [ErrProtected], the error of edit, or what is wrong with the new job.
func (s *Scheduler) Edit(ctx context.Context, id string, edit func(*Job) error) (Job, error) {
	return Job{}, errors.ErrUnsupported
}

// Remove forgets a job. A run of it that has begun goes on. It returns
// [store.ErrNotFound] or [ErrProtected].
func (s *Scheduler) Remove(ctx context.Context, id string) error { return errors.ErrUnsupported }

// Fire runs a job now, besides its schedule, even if it is off. It returns
// [store.ErrNotFound], or says that it is running.
func (s *Scheduler) Fire(ctx context.Context, id string) error { return errors.ErrUnsupported }

// Job returns one job, or [store.ErrNotFound].
func (s *Scheduler) Job(ctx context.Context, id string) (Job, error) {
	return Job{}, errors.ErrUnsupported
}

// Jobs returns all jobs, the next one first. A job whose record is damaged is
// off, and Why says so (P21).
func (s *Scheduler) Jobs(ctx context.Context) ([]Job, error) { return nil, errors.ErrUnsupported }

// Ended notes how the run that m began has ended. To tell it again changes
// nothing, and a message that is of no run is none of its business.
func (s *Scheduler) Ended(ctx context.Context, m chat.Message, e Ended) error {
	return errors.ErrUnsupported
}

// Message returns the message that run r of job j is.
func (s *Scheduler) Message(j Job, r Run) chat.Message { return chat.Message{} }
