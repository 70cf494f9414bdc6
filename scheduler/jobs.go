package scheduler

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/store"
)

const (
	maxText          = 16000 // bytes of a job's message, and of a tool's arguments
	maxName          = 100   // bytes
	maxGeneratedName = 30    // characters of a name made from the message (D-095)
)

// Add adds the job j, with an ID if it has none, and returns it. It takes from j
// the fields that Edit may change, and ID, At, Group and By. If a job with this ID
// exists already, Add returns that one: a repeated call adds one job. Errors are
// worded for people and models (D-095).
func (s *Scheduler) Add(ctx context.Context, j Job) (Job, error) {
	if err := s.start(ctx); err != nil {
		return Job{}, err
	}
	s.adding.Lock() // until the new job is counted
	defer s.adding.Unlock()
	if j.ID == "" {
		j.ID = strings.ToLower(rand.Text()[:8])
	}
	existing, _, err := s.load(ctx, j.ID)
	switch {
	case err == nil && existing.Whose() == j.Whose():
		return existing, nil
	case err == nil:
		return Job{}, refuse("a job cannot have the id '%s'", j.ID)
	case !errors.Is(err, store.ErrNotFound):
		return Job{}, err
	case j.At == chat.Address{}:
		return Job{}, refuse("scheduled cron jobs must be created from a chat session")
	}
	now := s.now()
	j.Created = now.Truncate(time.Second)
	if err := cmp.Or(s.checkAndSchedule(&j, now), s.checkJobLimit(j.Whose())); err != nil {
		return Job{}, err
	}
	revision, err := s.jobs.Put(ctx, j.ID, j, 0)
	if err != nil {
		return Job{}, fmt.Errorf("job %s: %w", j.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.updateState(s.state(j.ID), revision, j)
	s.wake()
	return j, nil
}

// checkJobLimit returns an error if p already has as many jobs as are allowed (R-S24).
func (s *Scheduler) checkJobLimit(p chat.Person) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, state := range s.states {
		if state.owner == p {
			n++
		}
	}
	if limit := s.MaxJobs(); limit > 0 && n >= limit {
		return refuse("there are %d jobs already, and %d are allowed: remove one first", n, limit)
	}
	return nil
}

// checkAndSchedule checks a job that is new or has another schedule, and sets
// when it is due.
func (s *Scheduler) checkAndSchedule(j *Job, now time.Time) error {
	if err := j.check(); err != nil {
		return err
	}
	p, err := s.plan(j.Schedule, j.Created)
	if err != nil {
		return err
	}
	j.Next = time.Time{}
	if j.Off {
		return nil
	}
	j.Why = ""
	j.Failed = 0
	j.Next = p.next(now)
	return s.checkPlan(p, now)
}

// check returns what is wrong with the task of j, and sets its name.
func (j *Job) check() error {
	var args map[string]any
	switch {
	case strings.TrimSpace(j.Text) == "" && j.Tool == "":
		return refuse("message is required for add")
	case len(j.Text) > maxText || len(j.Args) > maxText:
		return refuse("message and args must be at most %d bytes each", maxText)
	case j.Args != "" && json.Unmarshal([]byte(j.Args), &args) != nil:
		return refuse("the arguments must be a JSON object")
	case j.Args != "" && j.Tool == "":
		return refuse("args can only be used with tool")
	case j.Missed != Once && j.Missed != Skip:
		return refuse("missed must be 'once' or 'skip'")
	}
	j.Name = cmp.Or(chat.ClipBytes(chat.OneLine(j.Name), maxName), j.generatedName())
	return nil
}

// generatedName is the name of a job that nobody named: the first words of its text.
func (j *Job) generatedName() string {
	text := chat.OneLine(cmp.Or(j.Text, j.Tool))
	name := chat.Clip(text, maxGeneratedName, "")
	if name == text {
		return name
	}
	if whole := strings.LastIndexByte(name, ' '); whole > 0 && text[len(name)] != ' ' {
		name = name[:whole]
	}
	return strings.TrimRight(name, " ,.;:")
}

// Edit changes a job with edit, and returns the new job. The function may change
// Name, Schedule, Text, Isolated, Quiet, Model, Tool, Args, Missed and Off, and may
// be called more than once. Besides the errors of edit and those of Add, Edit
// returns [store.ErrNotFound] and [ErrProtected].
func (s *Scheduler) Edit(ctx context.Context, id string, edit func(*Job) error) (Job, error) {
	j, err := s.change(ctx, id, func(j *Job) error {
		if j.System {
			return ErrProtected
		}
		before := *j
		if err := edit(j); err != nil {
			return err
		}
		j.keepFixedFields(before)
		if j.Name == before.generatedName() {
			j.Name = ""
		}
		if j.Schedule == before.Schedule && j.Off == before.Off {
			return j.check()
		}
		return s.checkAndSchedule(j, s.now())
	})
	s.wake()
	return j, err
}

// keepFixedFields restores the fields that Edit must not change.
func (j *Job) keepFixedFields(before Job) {
	edited := *j
	*j = before
	j.Name = edited.Name
	j.Schedule = edited.Schedule
	j.Text = edited.Text
	j.Isolated = edited.Isolated
	j.Quiet = edited.Quiet
	j.Model = edited.Model
	j.Tool = edited.Tool
	j.Args = edited.Args
	j.Missed = edited.Missed
	j.Off = edited.Off
}

// Remove removes a job. A run that has begun goes on. It returns
// [store.ErrNotFound] or [ErrProtected].
func (s *Scheduler) Remove(ctx context.Context, id string) error {
	if systemJob(s.System, id) != nil {
		return ErrProtected
	}
	if _, _, err := s.load(ctx, id); err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return s.deleteJob(ctx, id)
}

// Fire runs a job now, independently of its schedule. The key identifies the call
// or message that asks for the run: the same key again changes nothing, while each
// call with key "" asks for a new run. Fire returns [store.ErrNotFound], [ErrOff]
// for a job that is switched off (unless force is set), or an error if the job is
// running.
func (s *Scheduler) Fire(ctx context.Context, id, key string, force bool) error {
	if err := s.start(ctx); err != nil {
		return err
	}
	_, err := s.change(ctx, id, func(j *Job) error {
		now := s.now()
		if key != "" && slices.ContainsFunc(j.Runs, func(r Run) bool { return r.Key == key }) {
			return store.ErrUnchanged
		}
		if j.Off && !force {
			return ErrOff
		}
		j.expireLostRun(*s.Texts, now)
		if j.openRun() != nil {
			return errRunning
		}
		j.requestRun(now, key)
		return nil
	})
	s.wake()
	return err
}

// Job returns one job, or [store.ErrNotFound].
func (s *Scheduler) Job(ctx context.Context, id string) (Job, error) {
	j, _, err := s.load(ctx, id)
	return j, err
}

// Jobs returns all jobs, the one that is due next first. A job whose record is
// damaged is returned as switched off, with the reason in Why (P21).
func (s *Scheduler) Jobs(ctx context.Context) ([]Job, error) {
	if err := s.start(ctx); err != nil {
		return nil, err
	}
	var jobs []Job
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return nil, fmt.Errorf("list jobs: %w", err)
		}
		j, _, err := s.load(ctx, id)
		switch {
		case errors.Is(err, store.ErrNotFound):
			continue
		case errors.Is(err, store.ErrDamaged):
			j = Job{ID: id, Name: id, Off: true, Why: s.Texts.Damaged}
		case err != nil:
			return nil, err
		}
		jobs = append(jobs, j)
	}
	slices.SortFunc(jobs, func(a, b Job) int {
		if a.Next.IsZero() != b.Next.IsZero() {
			return b.Next.Compare(a.Next)
		}
		return cmp.Or(a.Next.Compare(b.Next), cmp.Compare(a.ID, b.ID))
	})
	return jobs, nil
}

// AbandonRuns ends all unfinished runs of a restored store: the installation that
// the copy was made from has finished them (P20). It must not be called while Run
// runs.
func (s *Scheduler) AbandonRuns(ctx context.Context) error {
	for id, err := range s.jobs.Keys(ctx, "") {
		if err != nil {
			return err
		}
		_, err = s.change(ctx, id, func(j *Job) error { return j.abandonRuns(s.Texts.Copied, s.now()) })
		if err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// abandonRuns ends the unfinished runs of j, or returns [store.ErrUnchanged].
func (j *Job) abandonRuns(why string, now time.Time) error {
	unchanged := store.ErrUnchanged
	for i := range j.Runs {
		if j.Runs[i].Outcome == Sending && j.noteDelivery(&j.Runs[i], why, now) {
			unchanged = nil
		}
	}
	if r := j.openRun(); r != nil {
		j.interruptRun(r, why, now)
		return nil
	}
	return unchanged
}

// addSystemJobs adds the gateway's own jobs, and updates their schedules. A system
// job's run that was interrupted when the process ended is not repeated (P13).
func (s *Scheduler) addSystemJobs(ctx context.Context) error {
	now := s.now()
	for _, system := range s.System {
		j, revision, err := s.load(ctx, system.ID)
		switch {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged), err == nil && !j.System:
			j = Job{ID: system.ID, Name: system.ID, System: true, Created: now.Truncate(time.Second)}
			revision = store.Any
		case err != nil:
			return err
		}
		if r := j.openRun(); r != nil && r.Outcome == Running {
			s.Log.Warn("job was interrupted", "job", j.ID, "began", r.Began)
			j.interruptRun(r, s.Texts.Closed, now)
		}
		if j.Schedule != system.Schedule {
			p, err := s.plan(system.Schedule, j.Created)
			if err != nil {
				return fmt.Errorf("job %s: %w", system.ID, err)
			}
			j.Schedule = system.Schedule
			j.Next = p.next(now)
		}
		if _, err := s.jobs.Put(ctx, system.ID, j, revision); err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("job %s: %w", system.ID, err)
		}
	}
	return nil
}
