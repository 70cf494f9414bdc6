package rehearsal_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata" // the machine may have none

	"parley/chat"
	"parley/scheduler"
	"parley/scheduler/rehearsal"
	"parley/store"
	"parley/store/mem"
	"parley/timetest"
)

var home = chat.Address{Channel: "telegram", Chat: "42"}

// A week has a scheduler in Berlin with jobs, the week before clocks go forward.
type week struct {
	t         *testing.T
	store     store.Store
	scheduler *scheduler.Scheduler
	zone      *time.Location
	limits    rehearsal.Limits

	mu  sync.Mutex // guards what follows, which jobs add to side by side
	ran []chat.Message
}

func newWeek(t *testing.T) *week {
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	w := &week{t: t, store: mem.New(), zone: zone}
	timetest.Sleep(time.Until(time.Date(2000, 3, 22, 8, 30, 0, 0, zone)))
	w.scheduler = scheduler.New(scheduler.Config{
		Store: w.store, Zone: zone,
		Role: func(context.Context, chat.Address, chat.Sender) (chat.Role, error) { return chat.Owner, nil },
		Deliver: func(ctx context.Context, m chat.Message) error {
			w.mu.Lock()
			w.ran = append(w.ran, m)
			w.mu.Unlock()
			return w.scheduler.Ended(context.WithoutCancel(ctx), m, scheduler.Ended{Outcome: scheduler.Answered})
		},
	})
	return w
}

func (w *week) add(j scheduler.Job) scheduler.Job {
	w.t.Helper()
	j.At, j.By = home, chat.Sender{ID: "7", Role: chat.Owner}
	j, err := w.scheduler.Add(w.t.Context(), j)
	if err != nil {
		w.t.Fatal(err)
	}
	return j
}

// past gives a job a history.
func (w *week) past(id string, runs ...scheduler.Run) {
	w.t.Helper()
	table := store.NewTable(w.store.Bucket(store.BucketJobs), store.Report[scheduler.Job])
	if _, _, err := table.Update(w.t.Context(), id, func(j *scheduler.Job) error { j.Runs = runs; return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *week) forecast(days int) rehearsal.Report {
	w.t.Helper()
	r, err := rehearsal.Forecast(w.t.Context(), rehearsal.Config{
		Jobs: w.scheduler.Jobs, Due: w.scheduler.Due, Zone: w.zone, Limits: func() rehearsal.Limits { return w.limits },
		Reach: func(_ context.Context, j scheduler.Job) string {
			if j.Name == "lost" {
				return "its channel is gone"
			}
			return ""
		},
	}, days)
	if err != nil {
		w.t.Fatal(err)
	}
	return r
}

func warnings(r rehearsal.Report) (all []string) {
	for _, w := range r.Warnings {
		all = append(all, w.Kind+": "+w.Text)
	}
	return all
}

// A forecast has the runs that the scheduler then makes, at their times.
func TestForecastIsWhatHappens(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWeek(t)
		w.add(scheduler.Job{ID: "daily", Text: "daily", Schedule: scheduler.Schedule{Cron: "30 2 * * *"}})
		w.add(scheduler.Job{ID: "often", Text: "often", Schedule: scheduler.Schedule{Every: 7 * time.Hour}})
		w.add(scheduler.Job{ID: "once", Text: "once", Schedule: scheduler.Schedule{At: time.Now().Add(30 * time.Hour)}})
		w.add(scheduler.Job{ID: "off", Text: "off", Off: true, Schedule: scheduler.Schedule{Every: time.Hour}})
		var want []string
		r := w.forecast(7)
		for _, j := range r.Jobs {
			if j.Runs != len(j.Times) || j.Known {
				t.Errorf("%+v", j)
			}
			for _, at := range j.Times {
				want = append(want, at.Format("01-02 15:04 ")+j.ID)
			}
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.scheduler.Run(ctx) }()
		timetest.Sleep(time.Until(r.Until))
		synctest.Wait()
		stop()
		if err := <-ended; err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range w.ran {
			got = append(got, m.Time.In(w.zone).Format("01-02 15:04 ")+m.Text)
		}
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) || r.Runs != len(got) || r.Unknown != 3 {
			t.Errorf("%d runs, %d unknown; there were %q, the forecast was %q", r.Runs, r.Unknown, got, want)
		}
		if !slices.Contains(want, "03-26 03:00 daily") {
			t.Errorf("no run after the gap: %q", want)
		}
	})
}

// What runs take is the average of those that there were, and what would go wrong is said.
func TestForecastWarns(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWeek(t)
		w.add(scheduler.Job{ID: "gap", Name: "Gap", Text: "x", Quiet: true, Schedule: scheduler.Schedule{Cron: "30 2 * * *"}})
		w.add(scheduler.Job{ID: "late", Name: "Late", Text: "x", Schedule: scheduler.Schedule{Cron: "0 23 * * 1,2"}})
		w.add(scheduler.Job{ID: "nine", Name: "Nine", Text: "x", Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		w.add(scheduler.Job{ID: "also", Name: "Also nine", Text: "x", Schedule: scheduler.Schedule{Cron: "0 9 * * 6"}})
		w.add(scheduler.Job{ID: "slow", Name: "Slow", Quiet: true, Text: "x", Schedule: scheduler.Schedule{Every: time.Hour}})
		w.add(scheduler.Job{ID: "lost", Name: "lost", Text: "x", Schedule: scheduler.Schedule{Cron: "0 12 * * *"}})
		w.add(scheduler.Job{ID: "tool", Name: "Tool", Tool: "calculator", Schedule: scheduler.Schedule{Cron: "0 13 * * *"}})
		w.past("nine",
			scheduler.Run{N: 1, Outcome: scheduler.Delivered, Seconds: 4, Tokens: 1000, Cost: .01},
			scheduler.Run{N: 2, Outcome: scheduler.Failed, Seconds: 2, Tokens: 2000, Cost: .03},
			scheduler.Run{Outcome: scheduler.Missing, Times: 4}, scheduler.Run{N: 3, Outcome: scheduler.Interrupted, Seconds: 9000})
		w.past("slow", scheduler.Run{N: 1, Outcome: scheduler.Silent, Seconds: 5400, Tokens: 100})
		w.limits = rehearsal.Limits{Job: rehearsal.Limit{Tokens: 1200}, Everybody: rehearsal.Limit{Money: 1}, Person: rehearsal.Limit{Tokens: 2700}}
		r := w.forecast(7)
		i := slices.IndexFunc(r.Jobs, func(j rehearsal.Job) bool { return j.ID == "nine" })
		if j := r.Jobs[i]; !j.Known || j.Runs != 7 || j.RunTokens != 1500 || j.RunCost != .02 || j.RunSeconds != 3 || j.Tokens != 10500 || j.When != "every day at 9:00" {
			t.Errorf("%+v", j)
		}
		got := strings.Join(warnings(r), "\n")
		for _, want := range []string{
			"clock: Gap: the clock goes forward over its time; it runs at Sun 26 Mar 03:00",
			"night: Late says something between 22:00 and 7:00, 2 times",
			"overlap: Also nine and Nine run at the same time in telegram:42 once, first on Sat 25 Mar 09:00",
			"overlap: Slow takes 1h30m0s on average, longer than the time to its next run: 83 of its runs would be skipped",
			"unreachable: lost: its channel is gone",
			"budget: on 2000-03-22 the jobs would reach the limit on Nine: 1500 of 1200 tokens",
		} {
			if !strings.Contains(got, want) {
				t.Errorf("no %s in\n%s", want, got)
			}
		}
		if strings.Contains(got, "Gap says something") || strings.Contains(got, "on everybody") || r.Unknown != 4 {
			t.Errorf("%d unknown, %s", r.Unknown, got)
		}
		if fmt.Sprintf("%.2f", r.Cost) != "0.14" || r.Tokens != 10500+84*100 {
			t.Errorf("%d tokens, %f", r.Tokens, r.Cost)
		}
	})
}

// A forecast is of a time that can be looked at, and of no more times than can be listed.
func TestForecastIsBounded(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWeek(t)
		w.add(scheduler.Job{ID: "often", Text: "often", Schedule: scheduler.Schedule{Every: 10 * time.Second}})
		r := w.forecast(31)
		if j := r.Jobs[0]; j.Runs < 31*8640-400 || len(j.Times) != rehearsal.MaxTimes {
			t.Errorf("%d runs, %d times", j.Runs, len(j.Times))
		}
		for _, days := range []int{0, -1, 32} {
			if _, err := rehearsal.Forecast(t.Context(), rehearsal.Config{}, days); err == nil {
				t.Errorf("%d days", days)
			}
		}
	})
}
