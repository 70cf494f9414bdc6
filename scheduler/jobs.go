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
	maxText = 16000 // bytes of what the agent is told, and of the arguments of a tool
	maxName = 100   // bytes
	nameLen = 30    // characters of a name that nobody gave (D-095)
)

// Add makes a job of j, with an ID if it has none, and returns it. Of j is taken
// what Edit may change, and ID, At, Group and By. If there is one of that ID
// already it returns that one: a call that is repeated adds once. Errors are for
// people and models (D-095).
func (s *Scheduler) Add(ctx context.Context, j Job) (Job, error) {
	if err := s.start(ctx); err != nil {
		return Job{}, err
	}
	s.adding.Lock() // until it is counted
	defer s.adding.Unlock()
	if j.ID == "" {
		j.ID = strings.ToLower(rand.Text()[:8])
	}
	is, _, err := s.load(ctx, j.ID)
	switch {
	case err == nil && is.Whose() == j.Whose():
		return is, nil
	case err == nil:
		return Job{}, refuse("a job cannot have the id '%s'", j.ID)
	case !errors.Is(err, store.ErrNotFound):
		return Job{}, err
	case j.At == chat.Address{}:
		return Job{}, refuse("scheduled cron jobs must be created from a chat session")
	}
	now := s.now()
	j.Created = now.Truncate(time.Second)
	if err := cmp.Or(s.begin(&j, now), s.room(j.Whose())); err != nil {
		return Job{}, err
	}
	rev, err := s.jobs.Put(ctx, j.ID, j, 0)
	if err != nil {
		return Job{}, fmt.Errorf("job %s: %w", j.ID, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.note(s.entry(j.ID), rev, j)
	s.poke()
	return j, nil
}

// room says whether a person may have one job more (R-S24).
func (s *Scheduler) room(p chat.Person) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, e := range s.entries {
		if e.whose == p {
			n++
		}
	}
	if most := s.Most(); most > 0 && n >= most {
		return refuse("there are %d jobs already, and %d are allowed: remove one first", n, most)
	}
	return nil
}

// begin checks a job that is new or has another schedule, and says when it is due.
func (s *Scheduler) begin(j *Job, now time.Time) error {
	if err := j.check(); err != nil {
		return err
	}
	p, err := s.plan(j.Schedule, j.Created)
	if err != nil {
		return err
	}
	if j.Next = (time.Time{}); j.Off {
		return nil
	}
	j.Why, j.Failed, j.Next = "", 0, p.next(now)
	return s.fits(p, now)
}

// check says what is wrong with what j is to do.
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
	j.Name = cmp.Or(head(oneLine(j.Name), maxName), j.title())
	return nil
}

// title is the name of a job that nobody gave one.
func (j *Job) title() string {
	name := []rune(oneLine(cmp.Or(j.Text, j.Tool)))
	return string(name[:min(len(name), nameLen)])
}

// Edit changes a job as edit does, and returns it. What edit may change is
// Name, Schedule, Text, Isolated, Quiet, Model, Tool, Args, Missed and Off; it
// may be called more than once. Besides its errors and those of Add, Edit
// returns [store.ErrNotFound] and [ErrProtected].
func (s *Scheduler) Edit(ctx context.Context, id string, edit func(*Job) error) (Job, error) {
	j, err := s.change(ctx, id, func(j *Job) error {
		if j.System {
			return ErrProtected
		}
		was := *j
		if err := edit(j); err != nil {
			return err
		}
		j.ID, j.At, j.Group, j.By, j.System, j.Created = was.ID, was.At, was.Group, was.By, was.System, was.Created
		j.N, j.Next, j.Runs, j.Failed, j.Why = was.N, was.Next, was.Runs, was.Failed, was.Why
		if j.Name == was.title() {
			j.Name = ""
		}
		if j.Schedule == was.Schedule && j.Off == was.Off {
			return j.check()
		}
		return s.begin(j, s.now())
	})
	s.poke()
	return j, err
}

// Remove forgets a job. A run of it that has begun goes on. It returns
// [store.ErrNotFound] or [ErrProtected].
func (s *Scheduler) Remove(ctx context.Context, id string) error {
	if s.system(id) != nil {
		return ErrProtected
	}
	if _, _, err := s.load(ctx, id); err != nil && !errors.Is(err, store.ErrDamaged) {
		return err
	}
	return s.forget(ctx, id)
}

// Fire runs a job now, besides its schedule. The key is that of the call or
// message that asks for it: the same one again changes nothing. With "" each call
// asks anew. Fire returns [store.ErrNotFound], [ErrOff] of a job that is off,
// unless force is set, or says that the job is running.
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
		if j.lose(*s.Texts, now); j.open() != nil {
			return errRunning
		}
		j.want(now, key)
		return nil
	})
	s.poke()
	return err
}

// Job returns one job, or [store.ErrNotFound].
func (s *Scheduler) Job(ctx context.Context, id string) (Job, error) {
	j, _, err := s.load(ctx, id)
	return j, err
}

// Jobs returns all jobs, the next one first. A job whose record is damaged is
// off, and Why says so (P21).
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

// Shelve gives up all runs that are under way in a store that was copied: their
// original has gone on with them (P20). Run must not run.
func (s *Scheduler) Shelve(ctx context.Context) error {
	for id, err := range s.jobs.Keys(ctx, "") {
		if err == nil {
			_, err = s.change(ctx, id, func(j *Job) error {
				same := store.ErrUnchanged
				for i := range j.Runs {
					if j.Runs[i].Outcome == Sending && j.noteDelivery(&j.Runs[i], s.Texts.Copied) {
						same = nil
					}
				}
				if r := j.open(); r != nil {
					j.giveUp(r, s.Texts.Copied, s.now())
					same = nil
				}
				return same
			})
		}
		if err != nil && !errors.Is(err, store.ErrDamaged) && !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	return nil
}

// furnish puts in the house's own jobs. A run of one that was under way when
// the process ended is not repeated (P13).
func (s *Scheduler) furnish(ctx context.Context) error {
	now := s.now()
	for _, y := range s.System {
		j, rev, err := s.load(ctx, y.ID)
		switch {
		case errors.Is(err, store.ErrNotFound), errors.Is(err, store.ErrDamaged), err == nil && !j.System:
			j, rev = Job{ID: y.ID, Name: y.ID, System: true, Created: now.Truncate(time.Second)}, store.Any
		case err != nil:
			return err
		}
		if r := j.open(); r != nil && r.Outcome == Running {
			s.Log.Warn("a job was interrupted", "job", j.ID, "began", r.Began)
			j.giveUp(r, s.Texts.Closed, now)
		}
		if j.Schedule != y.Schedule {
			p, err := s.plan(y.Schedule, j.Created)
			if err != nil {
				return fmt.Errorf("job %s: %w", y.ID, err)
			}
			j.Schedule, j.Next = y.Schedule, p.next(now)
		}
		if _, err := s.jobs.Put(ctx, y.ID, j, rev); err != nil && !errors.Is(err, store.ErrConflict) {
			return fmt.Errorf("job %s: %w", y.ID, err)
		}
	}
	return nil
}
