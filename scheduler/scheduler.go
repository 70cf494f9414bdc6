// Package scheduler runs scheduled jobs: it sends the agent a message whenever a job is due.
package scheduler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/chat"
	"parley/store"
	"parley/texts"
)

// ErrProtected is returned by Edit and Remove for one of Parley's own jobs, which
// nobody can change (D-096).
var ErrProtected = errors.New("this job belongs to Parley")

// A Job is a task that runs at scheduled times.
type Job struct {
	ID       string       `json:"id"`   // 1 to 64 letters, digits, "-" and "_"
	Name     string       `json:"name"` // shown in lists; by default the first words of Text
	Schedule Schedule     `json:"schedule"`
	Text     string       `json:"text,omitempty"`  // the message that the agent gets each time
	At       chat.Address `json:"at"`              // the chat in which it was made, and which gets the answers
	Group    bool         `json:"group,omitempty"` // At is a group
	// By is who made the job. Their role is looked up for each run (R-S24).
	By       chat.Sender `json:"by"`
	Isolated bool        `json:"isolated,omitempty"` // each run has a new, empty conversation
	Quiet    bool        `json:"quiet,omitempty"`    // an answer without news is not sent
	Model    string      `json:"model,omitempty"`    // name of the model that answers; "" is the session's
	Tool     string      `json:"tool,omitempty"`     // the tool to call, without a model
	Args     string      `json:"args,omitempty"`     // arguments of Tool, a JSON object
	Missed   Missed      `json:"missed,omitempty"`
	Off      bool        `json:"off,omitempty"`
	Why      string      `json:"why,omitempty"`    // why Off is set, if no person set it
	System   bool        `json:"system,omitempty"` // one of Parley's own jobs: see [System]
	Created  time.Time   `json:"created"`
	N        uint64      `json:"n,omitempty"`      // number of the latest run
	Next     time.Time   `json:"next,omitzero"`    // when it is due; zero: never again
	Runs     []Run       `json:"runs,omitempty"`   // the latest is last; at most 20
	Failed   int         `json:"failed,omitempty"` // failed runs since the last that succeeded
}

// Sessions is the prefix of the session names of isolated jobs; the job's ID follows.
const Sessions = "cron:"

// Whose returns the person whose limits and memory the job counts towards.
func (j Job) Whose() chat.Person { return chat.Whose(j.At, j.By, j.Group) }

// Missed says what happens to runs that were due while Parley was not running.
type Missed string

// The values of Missed.
const (
	Once Missed = ""     // the latest run is caught up with, if it is not too old (P12)
	Skip Missed = "skip" // missed runs are only recorded
)

// A Run is the record of one time that a job was due, or of several consecutive
// times without a run.
type Run struct {
	N       uint64    `json:"n,omitempty"`     // 0 if the run never began
	Due     time.Time `json:"due"`             // if Times is set, the last of them
	First   time.Time `json:"first,omitzero"`  // the first of Times
	Times   int       `json:"times,omitempty"` // consecutive times that were missed or skipped
	Key     string    `json:"key,omitempty"`   // of the call or message that asked for the run, if one did
	Began   time.Time `json:"began,omitzero"`
	Seconds int       `json:"seconds,omitempty"` // duration, at least 1; 0 if the run has not ended
	Outcome Outcome   `json:"outcome"`
	// Note is the reason for Outcome, in words for people: one line of at most 500 bytes.
	Note string `json:"note,omitempty"`
	// Result is the beginning of the answer, at most 2,000 bytes. Only the latest run
	// that answered keeps it.
	Result  string  `json:"result,omitempty"`
	Tokens  int     `json:"tokens,omitempty"`
	Cost    float64 `json:"cost,omitempty"`    // money, in the currency of the configured prices
	Tainted bool    `json:"tainted,omitempty"` // Result may contain untrusted content
	// Sent is Delivered or Undelivered while the run is open, if its answer was
	// delivered before the end of the run was recorded.
	Sent Outcome `json:"sent,omitempty"`
	// Accepted is when the network accepted the answer; zero if it has not.
	Accepted time.Time `json:"accepted,omitzero"`
}

// Took returns the run's duration, in whole seconds; 0 if it has not ended.
func (r Run) Took() time.Duration { return seconds(r.Seconds) }

// An Outcome says how a run ended, or how far it has come.
type Outcome string

// The outcomes.
const (
	Waiting     Outcome = "waiting"        // it is requested, and has not begun
	Running     Outcome = "running"        // it has begun
	Answered    Outcome = "answered"       // it succeeded, without anything to send
	Sending     Outcome = "sending"        // it succeeded, and the network has not accepted its answer yet
	Delivered   Outcome = "delivered"      // the network accepted its answer (P26)
	Undelivered Outcome = "undelivered"    // the network refused its answer
	Silent      Outcome = "nothing to say" // a quiet job had no news
	Done        Outcome = "done"           // one of Parley's own jobs succeeded
	Failed      Outcome = "failed"
	Interrupted Outcome = "interrupted" // the process ended, or the end of the run was never reported (P13)
	Stopped     Outcome = "stopped"     // a person stopped it
	Skipped     Outcome = "skipped"     // the run before had not ended
	Missing     Outcome = "missed"      // Parley was not running when it was due (P12)
	Refused     Outcome = "refused"     // the job's author may not talk to the agent any more (R-S24)
)

// Ended says how a run ended.
type Ended struct {
	// Outcome is Answered, Silent, Interrupted or Stopped; anything else is a
	// failure. For one of Parley's own jobs, "" is Done.
	Outcome Outcome
	Sent    bool   // Text is being sent: NoteDelivery is called when that is over
	Text    string // the answer; of a failure without a Note, the reason
	Note    string // the reason for Outcome, in words for people
	Tokens  int
	Cost    float64 // money, in the currency of the configured prices
	Tainted bool    // Text may contain untrusted content (R-S12)
}

// Config is what a [Scheduler] needs.
type Config struct {
	Store   store.Store
	Deliver chat.Deliver
	// Role returns what from may do in the chat at now.
	Role func(ctx context.Context, at chat.Address, from chat.Sender) (chat.Role, error)
	// Tell sends text to a chat, once per id. Without an address it goes to the owners.
	Tell        func(ctx context.Context, id string, at chat.Address, text string) error
	Zone        *time.Location   // of schedules that name none; nil is time.Local
	MinInterval time.Duration    // 0 is 10 s
	MaxJobs     func() int       // per person; 0 or less is no limit, a nil func is 50
	System      []System         // Parley's own jobs
	Texts       *texts.Scheduler // messages for people; nil is English
	Log         *slog.Logger     // nil discards
	Now         func() time.Time // the wall clock; nil is time.Now
}

// A System is one of Parley's own jobs. Lists show it, but nobody can change it (D-096).
type System struct {
	ID       string // also its name
	Schedule Schedule
	// Do runs the job, in a goroutine of its own. If it returns the outcome
	// Running, [Scheduler.Ended] is called when the run is over.
	Do func(ctx context.Context, j Job, r Run) (Ended, error)
}

// A Scheduler runs jobs. Make one with [New]. All its methods may be called
// concurrently, whether or not Run is running. Two Schedulers on one store run
// nothing twice, but neither sees the jobs that are added to the other.
type Scheduler struct {
	Config
	jobs     store.Table[Job]
	zones    sync.Map // time zones that were loaded, by name
	nudge    chan struct{}
	workers  sync.WaitGroup
	system   SystemRuns
	maxSleep time.Duration // after which the loop checks whether the wall clock was changed (P23)

	adding  sync.Mutex // guards started, and checking the number of jobs before adding one
	started bool

	mu            sync.Mutex // guards the fields below
	states        map[string]*jobState
	working       int       // jobs that goroutines are working on
	nextMissedRun time.Time // when the next missed run may begin
}

// New returns a Scheduler for the jobs in c.Store.
func New(c Config) *Scheduler {
	c.MinInterval = cmp.Or(c.MinInterval, 10*time.Second)
	c.Zone = cmp.Or(c.Zone, time.Local)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Texts == nil {
		c.Texts = &texts.English().Scheduler
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.MaxJobs == nil {
		c.MaxJobs = func() int { return 50 }
	}
	return &Scheduler{
		Config:   c,
		jobs:     store.NewTable(c.Store.Bucket(store.BucketJobs), store.Report[Job]),
		nudge:    make(chan struct{}, 1),
		states:   map[string]*jobState{},
		maxSleep: 30 * time.Second,
	}
}

// now returns the wall clock's time without the monotonic reading, which does not
// follow changes of the wall clock (P23).
func (s *Scheduler) now() time.Time { return s.Now().Round(0) }

// systemJob returns the one of all with this ID, or nil.
func systemJob(all []System, id string) *System {
	i := slices.IndexFunc(all, func(system System) bool { return system.ID == id })
	if i < 0 {
		return nil
	}
	return &all[i]
}
