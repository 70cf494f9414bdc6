// Package scheduler is the clock of the house: it wakes the agent when the time of a job has come.
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

// ErrProtected is returned by Edit and Remove for a job of Parley itself, which
// nobody can change (D-096).
var ErrProtected = errors.New("this job belongs to Parley")

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

// Sessions begins the names of the sessions of isolated jobs; the ID follows.
const Sessions = "cron:"

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
	N       uint64    `json:"n,omitempty"`     // 0 if it never began
	Due     time.Time `json:"due"`             // the last of Times
	First   time.Time `json:"first,omitzero"`  // of Times
	Times   int       `json:"times,omitempty"` // that were missed or skipped one after the other
	Key     string    `json:"key,omitempty"`   // of the call or message that asked for it, if one did
	Began   time.Time `json:"began,omitzero"`
	Seconds int       `json:"seconds,omitempty"` // it took, at least one; 0 if it has not ended
	Outcome Outcome   `json:"outcome"`
	Note    string    `json:"note,omitempty"`   // why it ended so, in words for people: one line of at most 500 bytes
	Result  string    `json:"result,omitempty"` // the beginning of what came of it, at most 2,000 bytes: kept of the latest that answered
	Tokens  int       `json:"tokens,omitempty"`
	Cost    float64   `json:"cost,omitempty"` // money, in the unit of the config's prices
	Tainted bool      `json:"tainted,omitempty"`
	Sent    Outcome   `json:"sent,omitempty"` // while it runs: Delivered or Undelivered, if its message was faster than the news of its end
}

// Took returns how long the run took, to the second; 0 if it has not ended.
func (r Run) Took() time.Duration { return seconds(r.Seconds) }

// An Outcome says how a run ended, or how far it is.
type Outcome string

// The outcomes.
const (
	Waiting     Outcome = "waiting"     // somebody wants it to begin
	Running     Outcome = "running"     // it has begun
	Answered    Outcome = "answered"    // it came to its end, and has nothing to send
	Sending     Outcome = "sending"     // it said something, which the network has not taken yet
	Delivered   Outcome = "delivered"   // … which it has taken (P26)
	Undelivered Outcome = "undelivered" // … which it has refused
	Silent      Outcome = "nothing to say"
	Done        Outcome = "done"        // a job of the house did its work
	Failed      Outcome = "failed"      // it came to nothing
	Interrupted Outcome = "interrupted" // the process ended, or nobody knows what became of it (P13)
	Stopped     Outcome = "stopped"     // somebody stopped it
	Skipped     Outcome = "skipped"     // the run before was not over
	Missing     Outcome = "missed"      // nobody was there when it was due (P12)
	Refused     Outcome = "refused"     // who made the job may not talk to the agent any more (R-S24)
)

// Ended is how a run ended.
type Ended struct {
	Outcome Outcome // Answered, Silent, Interrupted, Stopped; any other is a failure; of a job of the house "" is Done
	Sent    bool    // Text is on its way: NoteDelivery is told what becomes of it
	Text    string  // what it said; of a failure that has no Note it is the Note
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
	// Tell says text in the chat, of jobs of the house to the owners, once for each id.
	Tell   func(ctx context.Context, id string, at chat.Address, text string) error
	Zone   *time.Location   // of cron specs that name none; nil is time.Local
	Least  time.Duration    // shortest interval; 0 means 10 s
	Most   func() int       // jobs that a person may have by now; 0 or less is no limit, and nil 50
	System []System         // the house's own jobs
	Texts  *texts.Scheduler // what people are told; nil: in English
	Log    *slog.Logger     // nil discards
	Now    func() time.Time // the wall clock; nil is time.Now
}

// A System is a job of the house itself. It is listed, and nobody can change it (D-096).
type System struct {
	ID       string // and its name
	Schedule Schedule
	// Do runs it, in a goroutine of its own. If it returns the outcome
	// Running, the end is told later, by [Scheduler.Ended].
	Do func(ctx context.Context, j Job, r Run) (Ended, error)
}

// A Scheduler runs jobs. Make one with [New]. All methods may be called by
// many goroutines, also while Run does not run. Two on the same store run
// nothing twice, but one does not see the jobs that are added to the other.
type Scheduler struct {
	Config
	jobs  store.Table[Job]
	zones sync.Map // that were looked up, by name
	nudge chan struct{}
	live  sync.WaitGroup
	nap   time.Duration // it sleeps no longer: then the wall clock may have been changed (P23)

	adding  sync.Mutex // guards started, and the counting of jobs
	started bool

	mu      sync.Mutex // guards what follows
	entries map[string]*entry
	working int       // jobs that something is being done for
	slot    time.Time // when the next run that was missed may begin
}

// New returns a Scheduler of the jobs in c.Store.
func New(c Config) *Scheduler {
	c.Least, c.Zone = cmp.Or(c.Least, 10*time.Second), cmp.Or(c.Zone, time.Local)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Texts == nil {
		c.Texts = &texts.English().Scheduler
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Most == nil {
		c.Most = func() int { return 50 }
	}
	return &Scheduler{Config: c, jobs: store.NewTable(c.Store.Bucket(store.BucketJobs), store.Report[Job]), nudge: make(chan struct{}, 1), entries: map[string]*entry{}, nap: 30 * time.Second}
}

// now is what the wall clock shows: timers go by another (P23).
func (s *Scheduler) now() time.Time { return s.Now().Round(0) }

func (s *Scheduler) system(id string) *System {
	i := slices.IndexFunc(s.System, func(y System) bool { return y.ID == id })
	if i < 0 {
		return nil
	}
	return &s.System[i]
}
