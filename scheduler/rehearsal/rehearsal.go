// Package rehearsal looks at a week of scheduled jobs before it comes: which jobs would
// run when, what they would use, and what would go wrong. It changes nothing.
package rehearsal

import (
	"context"
	"fmt"
	"iter"
	"time"

	"parley/chat"
	"parley/scheduler"
)

// MaxDays is how far a rehearsal may look ahead.
const MaxDays = 31

// Config is what a forecast is made of.
type Config struct {
	Jobs func(context.Context) ([]scheduler.Job, error)
	// Due yields when a job is due up to a time, and whether the clock shows that time.
	Due func(j scheduler.Job, until time.Time) iter.Seq2[time.Time, bool]
	// Reach returns why what a job says would not be delivered; "" if it would be.
	Reach  func(context.Context, scheduler.Job) string
	Limits func() Limits
	Zone   *time.Location
	Now    func() time.Time // nil is time.Now
}

// Limits are those of a day. 0 or less is no limit.
type Limits struct{ Job, Person, Everybody Limit }

// A Limit is what may be used in a day.
type Limit struct {
	Tokens int
	Money  float64
}

// A Report is what would happen from From until Until.
type Report struct {
	From     time.Time `json:"from"`
	Until    time.Time `json:"until"`
	Asked    bool      `json:"asked,omitempty"` // each job was asked once of its model
	Jobs     []Job     `json:"jobs"`            // the next one first
	Runs     int       `json:"runs"`
	Tokens   int       `json:"tokens"` // of jobs with a history
	Cost     float64   `json:"cost"`
	Unknown  int       `json:"unknown"` // jobs that would run and have no history
	Warnings []Warning `json:"warnings"`
}

// A Job is one scheduled job in a Report.
type Job struct {
	ID      string      `json:"id"`
	Name    string      `json:"name"`
	System  bool        `json:"system,omitempty"`
	When    string      `json:"when"`            // in plain words
	To      string      `json:"to,omitempty"`    // the session that gets its answers
	Apart   bool        `json:"apart,omitempty"` // its runs have a conversation of their own
	Runs    int         `json:"runs"`
	Skipped int         `json:"skipped,omitempty"` // times at which the run before would not have ended
	Times   []time.Time `json:"times"`             // of the runs, at most MaxTimes
	Days    []Day       `json:"days"`              // that have runs, all of them
	Known   bool        `json:"known"`             // there is a history, or no model is asked
	// What a run takes, on average of those that there were.
	RunTokens  int     `json:"run_tokens"`
	RunCost    float64 `json:"run_cost"`
	RunSeconds int     `json:"run_seconds"`
	Tokens     int     `json:"tokens"` // of all runs
	Cost       float64 `json:"cost"`
	Answer     *Answer `json:"answer,omitempty"` // if the model was asked
}

// A Day says how often a job runs between two midnights.
type Day struct {
	Runs  int       `json:"runs"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
}

// An Answer is what came of asking a job once.
type Answer struct {
	Outcome string   `json:"outcome"`
	Text    string   `json:"text,omitempty"`
	Sends   []Send   `json:"sends"`    // what would have been sent
	NotDone []string `json:"not_done"` // calls of tools that act outside
	Files   []string `json:"files"`    // what was changed in the copy of the workspace
	Tokens  int      `json:"tokens"`
	Cost    float64  `json:"cost"`
	Seconds int      `json:"seconds"`
}

// A Send is a message that a rehearsal kept back.
type Send struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// A Warning says what would go wrong, or may surprise.
type Warning struct {
	Kind string `json:"kind"` // "unreachable", "overlap", "budget", "night" or "clock"
	Job  string `json:"job"`  // its ID; "" for all together
	Text string `json:"text"`
}

// MaxTimes bounds the times of a job that a Report lists.
const MaxTimes = 1000

// Forecast returns what would happen in the coming days, by what runs took before.
func Forecast(ctx context.Context, c Config, days int) (Report, error) {
	if days < 1 || days > MaxDays {
		return Report{}, fmt.Errorf("a rehearsal is of 1 to %d days", MaxDays)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	now := c.Now().In(c.Zone)
	r := Report{From: now, Until: now.AddDate(0, 0, days), Jobs: []Job{}, Warnings: []Warning{}}
	all, err := c.Jobs(ctx)
	if err != nil {
		return r, err
	}
	f := forecast{Config: c, report: &r, spent: map[string]map[account]Limit{}}
	for _, j := range all {
		if !j.Off {
			f.add(ctx, j)
		}
	}
	f.warnOverlaps()
	f.warnBudget()
	return r, ctx.Err()
}

// A forecast makes a Report.
type forecast struct {
	Config
	report *Report
	spent  map[string]map[account]Limit // what would be used, by day and account
}

// An account is whose use a limit counts: that of a job, of a person, or of all.
type account struct {
	job    string
	person chat.Person
}

// add adds what j would do.
func (f *forecast) add(ctx context.Context, j scheduler.Job) {
	told := Job{
		ID: j.ID, Name: j.Name, System: j.System, Apart: j.Isolated, When: j.Schedule.Words(), Times: []time.Time{},
		Days: []Day{},
	}
	if j.At != (chat.Address{}) {
		told.To = string(j.At.Session())
	}
	told.estimate(j)
	took := time.Duration(told.RunSeconds) * time.Second
	var busy time.Time // until then the run before is under way
	var night int
	for due, exact := range f.Due(j, f.report.Until) {
		if due.Before(f.report.From) {
			due = f.report.From // it is late, and runs at once
		}
		if due.Before(busy) {
			told.Skipped++
			continue
		}
		busy = due.Add(took)
		told.Runs++
		if len(told.Times) < MaxTimes {
			told.Times = append(told.Times, due)
		}
		told.count(due.In(f.Zone))
		if !exact {
			f.warn("clock", j.ID, "%s: the clock goes forward over its time; it runs at %s", j.Name,
				due.Format("Mon 2 Jan 15:04"))
		}
		if hour := due.In(f.Zone).Hour(); hour >= nightBegin || hour < nightEnd {
			night++
		}
		f.spend(j, told, due)
	}
	told.Tokens = told.RunTokens * told.Runs
	told.Cost = told.RunCost * float64(told.Runs)
	f.report.Runs += told.Runs
	f.report.Tokens += told.Tokens
	f.report.Cost += told.Cost
	if told.Runs > 0 && !told.Known {
		f.report.Unknown++
	}
	f.report.Jobs = append(f.report.Jobs, told)
	f.warnJob(ctx, j, told, night)
}

// count adds a run to its day.
func (told *Job) count(due time.Time) {
	year, month, day := due.Date()
	if n := len(told.Days); n > 0 {
		if y, m, d := told.Days[n-1].Last.Date(); y == year && m == month && d == day {
			told.Days[n-1].Runs++
			told.Days[n-1].Last = due
			return
		}
	}
	told.Days = append(told.Days, Day{Runs: 1, First: due, Last: due})
}

// NotCounted says that nobody knows yet what n jobs take.
func NotCounted(n int) string {
	if n == 1 {
		return "1 job that has not run yet is not counted"
	}
	return fmt.Sprintf("%d jobs that have not run yet are not counted", n)
}

// TokensKnown reports whether Tokens and Cost say anything: they do not if no job that
// asks a model has run yet.
func (r Report) TokensKnown() bool { return r.Unknown == 0 || r.Tokens > 0 }

// AskTakes says what asking each job once takes, and of how many jobs.
func (r Report) AskTakes() (takes string, asked int) {
	tokens, asked, unknown := r.AskEstimate()
	switch {
	case unknown > 0 && tokens == 0:
		return "a number of tokens that is not known yet, as none has run", asked
	case unknown > 0:
		return fmt.Sprintf("about %d tokens by their history; %s", tokens, NotCounted(unknown)), asked
	}
	return fmt.Sprintf("about %d tokens by their history", tokens), asked
}

// AskEstimate returns what asking each job once of its model would take, for how many
// jobs, and how many of them have no history.
func (r Report) AskEstimate() (tokens, asked, unknown int) {
	for _, j := range r.Jobs {
		switch {
		case j.System || j.Runs == 0:
			continue
		case !j.Known:
			unknown++
		}
		asked++
		tokens += j.RunTokens
	}
	return tokens, asked, unknown
}
