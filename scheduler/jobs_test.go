package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/store"
	"parley/timetest"
)

var hourly = scheduler.Schedule{Every: time.Hour}

// Over a leap year, no due time is left out and none is repeated (D-094).
func TestD094Year(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.maxSleep = 12 * time.Hour
		w.zone, _ = time.LoadLocation("Europe/Berlin")
		w.open()
		for text, s := range map[string]scheduler.Schedule{
			"daily": {Cron: "30 2 * * *"}, "weekly": {Cron: "0 9 * * MON", Zone: "America/New_York"},
			"every": {Every: 6 * time.Hour}, "leap": {Cron: "0 12 29 2 *"}, "monthly": {Cron: "@monthly"},
		} {
			w.add(scheduler.Job{Text: text, Schedule: s})
		}
		w.wait(366 * 24 * time.Hour)
		count := map[string]int{}
		for _, m := range w.ran() {
			count[strings.Fields(m)[2]]++
		}
		if want := map[string]int{"daily": 366, "weekly": 52, "every": 4 * 366, "leap": 1, "monthly": 12}; fmt.Sprint(count) != fmt.Sprint(want) {
			t.Errorf("%v", count)
		}
	})
}

// After the gateway's time zone has changed, jobs follow the new one only.
func TestD095OtherZone(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		j := w.add(scheduler.Job{Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		own := w.add(scheduler.Job{Schedule: scheduler.Schedule{Cron: "0 9 * * *", Zone: "Asia/Tokyo"}})
		w.stop()
		w.zone, _ = time.LoadLocation("America/New_York")
		w.open()
		if next := w.job(j.ID).Next; !next.Equal(at(14)) || !w.job(own.ID).Next.Equal(own.Next) {
			t.Errorf("due at %s, the other at %s", next, w.job(own.ID).Next)
		}
	})
}

// A restart moves no due time: intervals are counted from the job's creation (P12).
func TestP12Anchored(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(scheduler.Job{Schedule: hourly})
		for range 7 {
			w.open()
			w.wait(25 * time.Minute)
			w.stop()
		}
		if got, want := w.ran(), []string{"01-01 01:00:00 x", "01-01 02:00:00 x"}; !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	})
}

func TestD098Message(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		j := w.add(scheduler.Job{ID: "news", Schedule: hourly, Isolated: true, Quiet: true, Model: "small", At: home, By: bob, Group: true})
		w.set(func() {
			w.result = scheduler.Ended{Outcome: scheduler.Answered, Text: "first " + strings.Repeat("é", 1500), Tokens: 7, Cost: 0.5, Tainted: true}
		})
		w.wait(2 * time.Hour)
		first, second := w.runs[0], w.runs[1]
		want := chat.Message{ID: "news/1", Account: "cron", At: home, From: bob, Group: true, Text: "x", Time: at(1), Origin: chat.FromSchedule,
			In: "cron:news", Options: &chat.RunOptions{Job: "news", Name: "x", Model: "small", Quiet: true, Fresh: true}}
		if fmt.Sprintf("%+v", *first.Options) != fmt.Sprintf("%+v", *want.Options) || !first.Time.Equal(want.Time) {
			t.Errorf("%+v", first)
		}
		first.Options, first.Time, want.Options, want.Time = nil, time.Time{}, nil, time.Time{}
		if fmt.Sprint(first) != fmt.Sprint(want) {
			t.Errorf("%+v", first)
		}
		if q := second.Quote; q == nil || q.From != "the web" || !second.Tainted || len(q.Text) > 2000 || len(q.Text) < 1990 || !strings.HasPrefix(q.Text, "first éé") {
			t.Errorf("%+v", second)
		}
		j = w.job("news")
		if r := j.Runs[0]; r.Result != "" || r.Tokens != 7 || r.Cost != 0.5 || r.Outcome != scheduler.Answered || j.Runs[1].Result == "" {
			t.Errorf("%+v", j.Runs)
		}
		if j.Whose() != "telegram:42" {
			t.Error(j.Whose())
		}
	})
}

// A job runs with the role that its author has at that time (R-S24).
func TestRS24Rights(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		j := w.add(scheduler.Job{Schedule: hourly})
		w.set(func() { w.roles["7"] = chat.User })
		w.wait(time.Hour)
		if m := w.runs[0]; m.From.Role != chat.User || m.From.ID != "7" {
			t.Errorf("%+v", m)
		}
		w.set(func() { w.roles["7"] = chat.Unknown })
		w.wait(2 * time.Hour)
		if j = w.job(j.ID); len(w.runs) != 1 || !j.Off || j.Why == "" || j.Runs[1].Outcome != scheduler.Refused || len(j.Runs) != 2 || len(w.told) != 0 {
			t.Errorf("%+v", j)
		}
	})
}

// The interval and the number of jobs are limited (R-S24), and a repeated call adds
// one job.
func TestRS24Limits(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.system = []scheduler.System{{ID: "dream", Schedule: scheduler.Schedule{Cron: "0 4 * * *"}}}
		s := w.open()
		for i := range 50 {
			w.add(scheduler.Job{ID: fmt.Sprint("j", i), Schedule: hourly})
		}
		job := scheduler.Job{Schedule: hourly, Text: "x", At: home, By: alice}
		refused := func(want string, change func(*scheduler.Job)) {
			t.Helper()
			j := job
			change(&j)
			if _, err := s.Add(t.Context(), j); err == nil || err.Error() != want {
				t.Errorf("%v", err)
			}
		}
		refused("there are 50 jobs already, and 50 are allowed: remove one first", func(*scheduler.Job) {})
		refused("there are 50 jobs already, and 50 are allowed: remove one first", func(j *scheduler.Job) { j.By.ID = "9"; j.At.Chat = "another owner" })
		refused("message is required for add", func(j *scheduler.Job) { j.Text = " " })
		refused("message and args must be at most 16000 bytes each", func(j *scheduler.Job) { j.Text = strings.Repeat("x", 64<<10) })
		refused("message and args must be at most 16000 bytes each", func(j *scheduler.Job) { j.Tool, j.Args = "t", `{"x":"`+strings.Repeat("x", 64<<10)+`"}` })
		refused("the arguments must be a JSON object", func(j *scheduler.Job) { j.Tool, j.Args = "t", "[1]" })
		refused("every_seconds must be at least 10", func(j *scheduler.Job) { j.Schedule.Every = time.Second })
		refused("scheduled cron jobs must be created from a chat session", func(j *scheduler.Job) { j.At = chat.Address{} })
		refused("a job cannot have the id 'j1'", func(j *scheduler.Job) { j.ID = "j1"; j.By = bob })
		refused("a job cannot have the id 'dream'", func(j *scheduler.Job) { j.ID = "dream" })
		if _, err := scheduler.New(w.config()).Add(t.Context(), job); err == nil { // this scheduler has not read the jobs yet
			t.Error("a process that has just begun counts none")
		}
		j := job
		if j.By = bob; w.add(j).Name != "x" {
			t.Error("another person has no room")
		}
		j.ID, j.Text = "j0", "a second time"
		j.By = alice
		if j = w.add(j); j.Text != "x" {
			t.Errorf("%+v", j)
		}
		if jobs, err := s.Jobs(t.Context()); len(jobs) != 52 || err != nil {
			t.Errorf("%d, %v", len(jobs), err)
		}
		if err := s.Remove(t.Context(), "j7"); err != nil {
			t.Error(err)
		}
		w.add(scheduler.Job{ID: "j50", Schedule: hourly}) // below the limit again
		long := w.add(scheduler.Job{By: bob, At: home, Schedule: hourly, Text: "remind me\nof the parcel that comes on Tuesday"})
		if long.Name != "remind me of the parcel that" { // D-095
			t.Errorf("%q", long.Name)
		}
	})
}

// Parley's own jobs are listed, and nobody can remove or change them (D-096).
func TestD096Protected(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ran := 0
		w.system = []scheduler.System{{ID: "dream", Schedule: scheduler.Schedule{Cron: "0 4 * * *"},
			Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
				ran++
				return scheduler.Ended{Tokens: 5}, nil
			}}}
		s := w.open()
		off := func(j *scheduler.Job) error { j.Off = true; return nil }
		if err := s.Remove(t.Context(), "dream"); !errors.Is(err, scheduler.ErrProtected) {
			t.Error(err)
		} else if _, err := s.Edit(t.Context(), "dream", off); !errors.Is(err, scheduler.ErrProtected) {
			t.Error(err)
		} else if err := s.Fire(t.Context(), "dream", "", false); err != nil {
			t.Error(err)
		}
		w.wait(24 * time.Hour)
		if j := w.job("dream"); ran != 2 || !slices.Equal(history(j), []string{"1 done ", "2 done "}) || !j.System || j.Runs[0].Tokens != 5 {
			t.Errorf("%d %+v", ran, j)
		}
		w.stop()
		w.system = nil // the system job no longer exists
		s = w.open()
		if jobs, err := s.Jobs(t.Context()); len(jobs) != 0 || err != nil {
			t.Errorf("%v %v", jobs, err)
		}
		w.wait(24 * time.Hour)
	})
}

// A system job that hangs or panics does not delay other jobs, and an interrupted
// one is not repeated (P13).
func TestP13House(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hung := 0
		daily := scheduler.Schedule{Cron: "0 4 * * *"}
		w.system = []scheduler.System{
			{ID: "hang", Schedule: daily, Do: func(ctx context.Context, _ scheduler.Job, _ scheduler.Run) (scheduler.Ended, error) {
				hung++
				<-ctx.Done()
				return scheduler.Ended{}, ctx.Err()
			}},
			{ID: "panic", Schedule: daily, Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
				panic("oh\n" + strings.Repeat("dear ", 200))
			}},
			{ID: "later", Schedule: daily, Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
				return scheduler.Ended{Outcome: scheduler.Running}, nil
			}},
		}
		w.open()
		w.add(scheduler.Job{Schedule: hourly})
		w.wait(6 * time.Hour)
		if got := len(w.ran()); got != 6 || w.job("panic").Runs[0].Outcome != scheduler.Failed || w.job("hang").Runs[0].Outcome != scheduler.Running {
			t.Errorf("%d ran", got)
		}
		if note := w.job("panic").Runs[0].Note; !strings.HasPrefix(note, "panic: oh dear dear") || len(note) > 500 || strings.ContainsAny(note, "\n\t") {
			t.Errorf("people read %q", note)
		}
		later := w.job("later")
		if err := w.s.Ended(t.Context(), w.s.Message(later, later.Runs[0]), scheduler.Ended{Outcome: scheduler.Answered}); err != nil || w.job("later").Runs[0].Outcome != scheduler.Answered {
			t.Error(err, w.job("later"))
		}
		w.stop()
		w.open()
		w.wait(time.Hour)
		if r := w.job("hang").Runs[0]; hung != 1 || r.Outcome != scheduler.Interrupted {
			t.Errorf("%d, %+v", hung, r)
		}
	})
}

// After a kill, a system job can be run at once: it does not count as running (P13).
func TestP13FireAfterKill(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.system = []scheduler.System{{ID: "dream", Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
			return scheduler.Ended{Outcome: scheduler.Silent}, nil
		}}}
		seed(t, w.store, scheduler.Job{ID: "dream", System: true, N: 1, Runs: []scheduler.Run{{N: 1, Began: at(0), Outcome: scheduler.Running}}})
		if err := scheduler.New(w.config()).Fire(t.Context(), "dream", "call", false); err != nil { // Run has not been called yet
			t.Fatal(err)
		}
		w.open()
		if got := history(w.job("dream")); !slices.Equal(got, []string{"1 interrupted Parley was stopped", "2 nothing to say "}) {
			t.Errorf("%q", got)
		}
	})
}

// A run that is not over when the next is due prevents that one, and a run that has
// not ended after a day is given up.
func TestP13Overlap(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold = true
		s := w.open()
		j := w.add(scheduler.Job{Schedule: hourly})
		once := w.add(scheduler.Job{Schedule: scheduler.Schedule{At: at(1)}})
		w.wait(3 * time.Hour)
		if got := history(w.job(j.ID)); !slices.Equal(got, []string{"1 running ", "0 skipped 2 runs were skipped, from 2000-01-01 02:00 to 2000-01-01 03:00"}) {
			t.Errorf("%q", got)
		}
		if err := s.Fire(t.Context(), j.ID, "", false); err == nil || err.Error() != "this job is running already" {
			t.Error(err)
		}
		many := scheduler.Job{ID: "many", At: home, By: alice, Schedule: hourly, Created: at(0), Next: at(4), N: 1, Runs: []scheduler.Run{{N: 1, Began: at(3), Outcome: scheduler.Running}}}
		for i := range 19 {
			many.Runs = append(many.Runs, scheduler.Run{Due: at(2), Times: i, Outcome: scheduler.Missing})
		}
		w.stop()
		seed(t, w.store, many)
		s = w.open()
		w.wait(time.Hour)
		if r := w.job("many").Runs; len(r) != 20 || r[0].N != 1 || r[1].Times != 1 || r[19].Outcome != scheduler.Skipped { // the open run is kept
			t.Errorf("%+v", r)
		}
		w.wait(21 * time.Hour)
		if got := history(w.job(j.ID)); len(got) != 3 || got[0] != "1 interrupted its end was never reported" || got[2] != "2 running " {
			t.Errorf("%q", got)
		}
		if once = w.job(once.ID); !once.Off || once.Why != "its end was never reported" {
			t.Errorf("%+v", once)
		}
		if err := s.Fire(t.Context(), once.ID, "", true); err != nil {
			t.Error(err)
		}
		w.wait(time.Minute)
		if err := s.Ended(t.Context(), w.runs[w.count()-1], scheduler.Ended{Outcome: scheduler.Answered}); err != nil {
			t.Error(err)
		}
		if _, err := s.Job(t.Context(), once.ID); !errors.Is(err, store.ErrNotFound) {
			t.Error(err)
		}
		m := w.runs[0]
		if m.Options.Job != j.ID {
			m = w.runs[1]
		}
		for range 2 {
			if err := s.Ended(t.Context(), m, scheduler.Ended{Outcome: scheduler.Answered, Text: "at last"}); err != nil || w.job(j.ID).Runs[0].Result != "at last" {
				t.Error(err, w.job(j.ID))
			}
		}
	})
}

// A job that was due once and failed is kept, and can be run again.
func TestP13FailedOnce(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.result = scheduler.Ended{Outcome: scheduler.Failed, Text: "The model is overloaded."} })
		s := w.open()
		j := w.add(scheduler.Job{Schedule: scheduler.Schedule{At: at(1)}, Quiet: true})
		w.wait(2 * time.Hour)
		if j = w.job(j.ID); !j.Off || j.Why != "The model is overloaded." || len(j.Runs) != 1 {
			t.Errorf("%+v", j)
		}
		w.set(func() { w.result = scheduler.Ended{Outcome: scheduler.Answered, Text: "done"} })
		if err := s.Fire(t.Context(), j.ID, "", true); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		if _, err := s.Job(t.Context(), j.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("then: %v", err)
		}
	})
}

// Three failures in a row are reported once; an answer resets the count.
func TestP13Failing(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.set(func() { w.result = scheduler.Ended{Outcome: "parked"} })
		s := w.open()
		j := w.add(scheduler.Job{Name: "news", ID: "news", Schedule: hourly})
		w.wait(5 * time.Hour)
		want := "The job news failed three times in a row, the last time because of this: parked; /cron shows more."
		if len(w.told) != 1 || w.told["cron/news/failing/3"] != want {
			t.Errorf("%q", w.told)
		}
		w.set(func() { w.result = scheduler.Ended{Outcome: scheduler.Silent} })
		w.wait(time.Hour)
		w.set(func() { w.result = scheduler.Ended{Outcome: scheduler.Failed, Note: "no money"} })
		if w.wait(3 * time.Hour); len(w.told) != 2 {
			t.Errorf("%q", w.told)
		}
		if err := s.Ended(t.Context(), chat.Message{ID: "1"}, w.result); err != nil {
			t.Error(err)
		}
		if err := s.Remove(t.Context(), j.ID); err != nil {
			t.Error(err)
		}
		for _, err := range []error{s.Remove(t.Context(), "news"), s.Fire(t.Context(), "news", "", false)} {
			if !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		}
		if err := s.Ended(t.Context(), chat.Message{ID: "news/1", Options: &chat.RunOptions{Job: "news"}}, w.result); err != nil {
			t.Error(err)
		}
	})
}

// Failures of system jobs are reported to the owners.
func TestP13FailingHouse(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w, err := newWorld(t), errors.New("no model")
		w.system = []scheduler.System{{ID: "dream", Schedule: hourly, Do: func(context.Context, scheduler.Job, scheduler.Run) (scheduler.Ended, error) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return scheduler.Ended{}, err
		}}}
		w.open()
		for i, fails := range []error{err, nil, err} {
			w.set(func() { err = fails })
			w.wait(5 * time.Hour)
			if len(w.told) != 1+i/2 {
				t.Errorf("%d: %q", i, w.told)
			}
		}
		if got := w.told["cron/dream/failing/3"]; got != "The job dream failed three times in a row, the last time because of this: no model; /cron shows more." {
			t.Errorf("%q", got)
		}
	})
}

// A late store calls a function before it deletes.
type late struct {
	store.Store
	before func()
}

func (l late) Bucket(name string) store.Bucket { return lateBucket{l.Store.Bucket(name), l.before} }

type lateBucket struct {
	store.Bucket
	before func()
}

func (b lateBucket) Delete(ctx context.Context, key string) error {
	b.before()
	return b.Bucket.Delete(ctx, key)
}

// A job that is over and about to be removed cannot be edited: otherwise people
// would be told that a job was changed that is gone (D-095, D-098).
func TestEditAsItEnds(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		var edited error
		var again atomic.Bool
		w.store = late{w.store, func() {
			if !again.Swap(true) {
				_, edited = w.s.Edit(t.Context(), "once", func(j *scheduler.Job) error { j.Schedule.At = at(5); return nil })
			}
		}}
		s := w.open()
		w.add(scheduler.Job{ID: "once", Schedule: scheduler.Schedule{At: at(1)}})
		w.wait(2 * time.Hour)
		if _, err := s.Job(t.Context(), "once"); !errors.Is(err, store.ErrNotFound) || !errors.Is(edited, store.ErrNotFound) {
			t.Errorf("edited: %v, then: %v", edited, err)
		}
	})
}

func TestD098Edit(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.open()
		j := w.add(scheduler.Job{Schedule: hourly})
		edit := func(f func(*scheduler.Job) error) scheduler.Job {
			t.Helper()
			j, err := s.Edit(t.Context(), j.ID, f)
			if err != nil {
				t.Fatal(err)
			}
			return j
		}
		edit(func(j *scheduler.Job) error { j.Off, j.By = true, bob; return nil })
		w.wait(3 * time.Hour)
		if err := s.Fire(t.Context(), j.ID, "", false); !errors.Is(err, scheduler.ErrOff) {
			t.Errorf("a job that is off was run: %v", err)
		}
		if err := s.Fire(t.Context(), j.ID, "", true); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if j = w.job(j.ID); len(w.runs) != 1 || !j.Next.IsZero() || j.By != alice {
			t.Errorf("%+v", j)
		}
		w.wait(30 * time.Minute)
		j = edit(func(j *scheduler.Job) error { j.Off, j.Text = false, "y"; return nil })
		if !j.Next.Equal(at(4)) || j.Name != "y" { // a generated name follows the text
			t.Errorf("%+v", j)
		}
		j = edit(func(j *scheduler.Job) error { j.Schedule = scheduler.Schedule{Cron: "0 4 * * *"}; return nil })
		w.wait(time.Hour)
		if got := w.ran(); len(got) != 2 || got[1] != "01-01 04:00:00 y" {
			t.Errorf("%q", got)
		}
		for want, f := range map[string]func(j *scheduler.Job) error{
			"no":                          func(*scheduler.Job) error { return errors.New("no") },
			"message is required for add": func(j *scheduler.Job) error { j.Text = ""; return nil },
			"at is in the past: it is 2000-01-01T04:30:00 now": func(j *scheduler.Job) error { j.Schedule = scheduler.Schedule{At: at(3)}; return nil },
		} {
			if _, err := s.Edit(t.Context(), j.ID, f); err == nil || err.Error() != want {
				t.Error(err)
			}
		}
		j = edit(func(j *scheduler.Job) error { // a concurrent edit
			if j.Model == "" {
				edit(func(j *scheduler.Job) error { j.Model = "small"; return nil })
			}
			j.Quiet = true
			return nil
		})
		if !j.Quiet || j.Model != "small" {
			t.Errorf("%+v", j)
		}
		if got := s.NextTimes(w.job(j.ID), 2); len(got) != 2 || !got[1].Equal(at(52)) {
			t.Errorf("%v", got)
		}
	})
}

// A damaged record affects no other job (P21).
func TestP21Damaged(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(scheduler.Job{ID: "good", Schedule: hourly})
		b := w.store.Bucket("jobs")
		for id, text := range map[string]string{"bad": "{", "empty": "{}"} {
			if _, err := b.Put(t.Context(), id, []byte(text), 0); err != nil {
				t.Fatal(err)
			}
		}
		seed(t, w.store, scheduler.Job{ID: "lost", At: home, By: alice, Created: at(0), Next: at(1), Schedule: scheduler.Schedule{Cron: "0 * * * *", Zone: "Mars/Olympus"}})
		s := w.open()
		w.wait(2 * time.Hour)
		if j := w.job("lost"); !j.Off || j.Why != "there is no time zone 'Mars/Olympus'" || s.Remove(t.Context(), "lost") != nil {
			t.Errorf("%+v", j)
		}
		jobs, err := s.Jobs(t.Context())
		if err != nil || len(jobs) != 3 || len(w.ran()) != 2 || jobs[0].ID != "good" || !jobs[1].Off || jobs[1].Why != "its record is damaged" {
			t.Errorf("%+v, %v", jobs, err)
		}
		if err := s.Remove(t.Context(), "bad"); err != nil {
			t.Error(err)
		}
	})
}

// After a restore from a backup, runs that were under way are not repeated (P20).
func TestP20Restored(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.hold = true
		s := w.open()
		w.add(scheduler.Job{ID: "once", Schedule: scheduler.Schedule{At: at(1)}})
		w.add(scheduler.Job{ID: "daily", Schedule: scheduler.Schedule{Cron: "0 1 * * *"}})
		w.add(scheduler.Job{ID: "asked", Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		if _, err := w.store.Bucket("jobs").Put(t.Context(), "bad", []byte("{"), 0); err != nil {
			t.Fatal(err)
		}
		w.wait(2 * time.Hour)
		w.stop()
		if err := s.Fire(t.Context(), "asked", "", false); err != nil {
			t.Fatal(err)
		}
		if err := scheduler.New(scheduler.Config{Store: w.store, Now: w.now}).AbandonRuns(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.keys = map[string]int{} // the inbox remembers keys for two days
		before := w.count()
		w.open()
		w.wait(time.Minute)
		const why = "it was under way when the backup was made"
		for _, id := range []string{"once", "daily", "asked"} {
			if got := history(w.job(id)); w.count() != before || !slices.Equal(got, []string{"1 interrupted " + why}) {
				t.Errorf("%s: %q", id, got)
			}
		}
		if j := w.job("once"); !j.Off || j.Why != why {
			t.Errorf("%+v", j)
		}
	})
}

// A report that could not be stored is repeated later (P12, P13): until then, the
// record does not say that people were told.
func TestP13ToldLater(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(scheduler.Job{ID: "once", Schedule: scheduler.Schedule{At: at(1)}})
		j := w.add(scheduler.Job{ID: "fails", Name: "news", Schedule: scheduler.Schedule{Cron: "0 0 * * *"}})
		w.hold, w.mute = true, errors.New("disk full")
		timetest.Sleep(28 * time.Hour)
		s := w.open()
		w.wait(time.Minute)
		if j := w.job("once"); j.Off || len(j.Runs) != 0 {
			t.Errorf("%+v", j)
		}
		for i := range 3 {
			if i > 0 {
				w.wait(24 * time.Hour)
			}
			m, bad := w.runs[w.count()-1], scheduler.Ended{Outcome: scheduler.Failed, Note: "no money"}
			err := s.Ended(t.Context(), m, bad)
			if last := i == 2; (err != nil) != last {
				t.Errorf("%d: %v", i, err)
			} else if last {
				w.set(func() { w.mute = nil })
				w.wait(time.Minute)
				for range 2 { // the repetition changes nothing
					if err := s.Ended(t.Context(), m, bad); err != nil {
						t.Error(err)
					}
				}
			}
		}
		if got := w.job(j.ID); got.Failed != 3 || !w.job("once").Off || len(w.told) != 2 {
			t.Errorf("%+v %q", got, w.told)
		}
	})
}

// A run that the inbox did not accept is delivered again.
func TestP12DeliveredLater(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		j := w.add(scheduler.Job{Schedule: hourly})
		w.set(func() { w.fail = errors.New("disk full") })
		w.wait(80 * time.Minute)
		w.set(func() { w.fail = nil })
		w.wait(time.Minute)
		if got := history(w.job(j.ID)); len(w.runs) != 1 || !slices.Equal(got, []string{"1 answered "}) {
			t.Errorf("%q", got)
		}
	})
}

// What a run has used only grows, in whatever order several subagents of it, which end
// at once, report it.
func TestNoteUsageInAnyOrder(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.open()
		w.add(scheduler.Job{ID: "j", Schedule: scheduler.Schedule{Every: time.Hour}, Text: "t"})
		w.wait(time.Hour)
		run := w.runs[0].ID
		for _, tokens := range []int{10, 30, 20} {
			if err := w.s.NoteUsage(t.Context(), run, tokens, float64(tokens)/100); err != nil {
				t.Fatal(err)
			}
		}
		if r := w.job("j").Runs[0]; r.Tokens != 30 || r.Cost != 0.3 {
			t.Errorf("noted %d tokens for %v", r.Tokens, r.Cost)
		}
	})
}

// TestNoteDelivery checks that a run counts as delivered once the network has
// accepted its answer, in whichever order that and its end are reported, and that a
// job that was due once is kept until then (P26).
func TestNoteDelivery(t *testing.T) {
	const refused = "the bot was blocked"
	for name, c := range map[string]struct {
		told []string // reasons, "ended" for the end of the run
		want scheduler.Outcome
		gone bool // of a job that was due once
	}{
		"on its way":             {[]string{"ended"}, scheduler.Sending, false},
		"taken":                  {[]string{"ended", ""}, scheduler.Delivered, true},
		"taken early":            {[]string{"", "ended"}, scheduler.Delivered, true},
		"refused":                {[]string{"ended", refused}, scheduler.Undelivered, false},
		"refused early":          {[]string{refused, "ended"}, scheduler.Undelivered, false},
		"refused and then taken": {[]string{"ended", refused, refused, ""}, scheduler.Delivered, true},
		"taken, told again":      {[]string{"ended", "", "ended", ""}, scheduler.Delivered, true},
	} {
		for _, sch := range []scheduler.Schedule{{Every: time.Hour}, {At: time.Date(2000, 1, 1, 1, 0, 0, 0, time.UTC)}} {
			t.Run(name+" "+sch.String(), func(t *testing.T) {
				timetest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					w.hold = true
					w.open()
					defer w.stop()
					w.add(scheduler.Job{ID: "j", Schedule: sch, Text: "t"})
					timetest.Sleep(time.Hour + time.Minute)
					synctest.Wait()
					m := w.runs[0]
					for _, news := range c.told {
						tell := func() error { return w.s.NoteDelivery(t.Context(), m.ID, news) }
						if news == "ended" {
							tell = func() error {
								return w.s.Ended(t.Context(), m, scheduler.Ended{Outcome: scheduler.Answered, Text: "tea", Sent: true})
							}
						}
						if err := tell(); err != nil {
							t.Error(err)
						}
					}
					j, err := w.s.Job(t.Context(), "j")
					if gone := errors.Is(err, store.ErrNotFound); gone != (c.gone && sch.Every == 0) {
						t.Errorf("the job is gone: %v, %v", gone, err)
					} else if gone {
						return
					}
					r := j.Runs[0]
					if r.Outcome != c.want || (r.Note == refused) != (c.want == scheduler.Undelivered) || r.Result != "tea" {
						t.Errorf("the run is %+v", r)
					}
					if accepted := r.Accepted.Equal(time.Now()); accepted != (c.want == scheduler.Delivered) {
						t.Errorf("it is %s, and was accepted at %v", r.Outcome, r.Accepted)
					}
				})
			})
		}
	}
}

// A person stops a run of one of the gateway's own jobs: it counts as stopped, and the
// next run is not.
func TestStopSystem(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.system = []scheduler.System{{ID: "dream", Schedule: scheduler.Schedule{Cron: "0 4 * * *"}, Do: func(ctx context.Context, _ scheduler.Job, _ scheduler.Run) (scheduler.Ended, error) {
			<-ctx.Done()
			return scheduler.Ended{}, ctx.Err()
		}}}
		s := w.open()
		if s.SystemRuns().Stop("dream") || len(s.SystemRuns().IDs()) > 0 {
			t.Error("it runs before it is due")
		}
		if err := s.Fire(t.Context(), "dream", "call", false); err != nil {
			t.Fatal(err)
		}
		w.wait(time.Minute)
		if got := s.SystemRuns().IDs(); !slices.Equal(got, []string{"dream"}) || !s.SystemRuns().Stop("dream") {
			t.Errorf("%q run", got)
		}
		w.wait(time.Minute)
		if got := history(w.job("dream")); !slices.Equal(got, []string{"1 stopped "}) || len(s.SystemRuns().IDs()) > 0 {
			t.Errorf("%q", got)
		}
	})
}
