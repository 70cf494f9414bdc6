package scheduler_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"parley/scheduler"
	"parley/timetest"
)

// The three kinds of schedules fire, and a job that is due once is removed (D-094, D-095).
func TestD094Kinds(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t) // it is 2000-01-01 00:00 UTC, a Saturday
		w.open()
		w.add(scheduler.Job{Text: "every", Schedule: scheduler.Schedule{Every: time.Hour}})
		w.add(scheduler.Job{Text: "cron", Schedule: scheduler.Schedule{Cron: "30 1 * * *"}})
		at := w.add(scheduler.Job{Text: "at", Schedule: scheduler.Schedule{At: time.Now().Add(90 * time.Minute)}})
		w.wait(2 * time.Hour)
		got := w.ran()
		want := []string{"01-01 01:00:00 every", "01-01 01:30:00 at", "01-01 01:30:00 cron", "01-01 02:00:00 every"}
		if slices.Sort(got[1:3]); !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
		if _, err := w.s.Job(t.Context(), at.ID); err == nil {
			t.Error("the job that is over is still there")
		}
	})
}

// While Parley was not running, runs were missed: the latest is caught up with if it
// is not too old, and all others share one record (P12).
func TestP12Missed(t *testing.T) {
	for name, c := range map[string]struct {
		job     scheduler.Job
		down    time.Duration
		ran     []string
		history []string
		told    string
	}{
		"hourly": {scheduler.Job{Schedule: scheduler.Schedule{Every: time.Hour}}, 3*time.Hour + 30*time.Minute, []string{"01-01 03:30:00 x\n[This was due at 2000-01-01 03:00.]"},
			[]string{"0 missed 2 runs were missed, from 2000-01-01 01:00 to 2000-01-01 02:00", "1 answered "}, ""},
		"every 10 s, a year": {scheduler.Job{Schedule: scheduler.Schedule{Every: 10 * time.Second}}, 365*24*time.Hour + 5*time.Second, []string{"12-31 00:00:05 x"},
			[]string{"0 missed more than 1000 runs were missed, from 2000-01-01 00:00 to 2000-12-30 23:59", "1 answered "}, ""},
		"every minute, a year": {scheduler.Job{Schedule: scheduler.Schedule{Cron: "* * * * *"}}, 365*24*time.Hour + 5*time.Second, []string{"12-31 00:00:05 x"},
			[]string{"0 missed more than 1000 runs were missed, from 2000-01-01 00:01 to 2000-12-30 23:59", "1 answered "}, ""},
		"hourly, 59 min ago": {scheduler.Job{Schedule: scheduler.Schedule{Every: time.Hour}}, 119 * time.Minute, []string{"01-01 01:59:00 x\n[This was due at 2000-01-01 01:00.]"}, []string{"1 answered "}, ""},
		"6 h ago":            {scheduler.Job{Schedule: scheduler.Schedule{Every: 9 * time.Hour}}, 15*time.Hour + time.Second, nil, []string{"0 missed Parley was not running at that time"}, ""},
		"nearly 6 h ago":     {scheduler.Job{Schedule: scheduler.Schedule{Every: 9 * time.Hour}}, 15*time.Hour - time.Second, []string{"01-01 14:59:59 x\n[This was due at 2000-01-01 09:00.]"}, []string{"1 answered "}, ""},
		"daily, 5 h ago":     {scheduler.Job{Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}, 14 * time.Hour, []string{"01-01 14:00:00 x\n[This was due at 2000-01-01 09:00.]"}, []string{"1 answered "}, ""},
		"daily, 7 h ago":     {scheduler.Job{Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}, 16 * time.Hour, nil, []string{"0 missed Parley was not running at that time"}, ""},
		"a minute ago":       {scheduler.Job{Missed: scheduler.Skip, Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}, 9*time.Hour + time.Minute, []string{"01-01 09:01:00 x"}, []string{"1 answered "}, ""},
		"skip":               {scheduler.Job{Missed: scheduler.Skip, Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}, 10 * time.Hour, nil, []string{"0 missed Parley was not running at that time"}, ""},
		"skip, week":         {scheduler.Job{Missed: scheduler.Skip, Schedule: scheduler.Schedule{Cron: "0 9 * * *"}}, 3 * 24 * time.Hour, nil, []string{"0 missed 3 runs were missed, from 2000-01-01 09:00 to 2000-01-03 09:00"}, ""},
		"once, 23 h ago":     {scheduler.Job{Schedule: scheduler.Schedule{At: at(1)}}, 24 * time.Hour, []string{"01-02 00:00:00 x\n[This was due at 2000-01-01 01:00.]"}, nil, ""},
		"once, 25 h ago":     {scheduler.Job{Schedule: scheduler.Schedule{At: at(1)}}, 26 * time.Hour, nil, []string{"0 missed Parley was not running at that time"}, "The job x was due at 2000-01-01 01:00, but Parley was not running. It is too late for it now; /cron shows more."},
		"once, with skip":    {scheduler.Job{Missed: scheduler.Skip, Schedule: scheduler.Schedule{At: at(1)}}, 2 * time.Hour, nil, []string{"0 missed Parley was not running at that time"}, "The job x was due at 2000-01-01 01:00, but Parley was not running. It is too late for it now; /cron shows more."},
	} {
		t.Run(name, func(t *testing.T) {
			for _, how := range []string{"down", "asleep"} { // a sleeping laptop's monotonic clock stands still
				timetest.Test(t, func(t *testing.T) {
					w := newWorld(t)
					j := w.add(c.job)
					if how == "down" {
						timetest.Sleep(c.down)
					}
					w.open()
					if how == "asleep" {
						w.set(func() { w.step = c.down - 30*time.Second })
						w.wait(30 * time.Second)
						if c.job.Schedule.Every == 10*time.Second { // it is due earlier
							w.ran()
							return
						}
					}
					if got := w.ran(); !slices.Equal(got, c.ran) {
						t.Errorf("%s: ran %q", how, got)
					}
					if jobs, _ := w.s.Jobs(t.Context()); len(jobs) == 0 && c.history != nil {
						t.Error("gone")
					} else if len(jobs) > 0 && !slices.Equal(history(jobs[0]), c.history) {
						t.Errorf("%s: %q", how, history(jobs[0]))
					} else if c.told != "" && (!jobs[0].Off || w.told[fmt.Sprint("cron/", j.ID, "/missed/", at(1).Unix())] != c.told) {
						t.Errorf("told %q", w.told)
					}
				})
			}
		})
	}
}

func at(hour int) time.Time { return time.Date(2000, 1, 1, hour, 0, 0, 0, time.UTC) }

// Missed runs are caught up with one after the other (P13).
func TestP13Staggered(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		for range 10 {
			w.add(scheduler.Job{Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		}
		timetest.Sleep(10 * time.Hour)
		w.open()
		w.wait(2400 * time.Millisecond)
		if got := len(w.ran()); got != 5 {
			t.Errorf("%d ran", got)
		}
		w.wait(10 * time.Second)
		if got := len(w.ran()); got != 5 {
			t.Errorf("%d ran", got)
		}
	})
}

// The wall clock is set forward and back, by an hour and a day (P23).
func TestP23Steps(t *testing.T) {
	day := 24 * time.Hour
	for name, c := range map[string]struct {
		schedule scheduler.Schedule
		step     time.Duration
		wait     time.Duration // after it
		most     int           // runs from the step on
		least    int
	}{
		"daily, hour back":      {scheduler.Schedule{Cron: "0 9 * * *"}, -time.Hour, 2 * time.Hour, 0, 0},
		"daily, day back":       {scheduler.Schedule{Cron: "0 9 * * *"}, -day, day, 0, 0},
		"daily, day back, 2 d":  {scheduler.Schedule{Cron: "0 9 * * *"}, -day, 2 * day, 1, 1},
		"hourly, hour back":     {scheduler.Schedule{Every: time.Hour}, -time.Hour, time.Hour, 0, 0},
		"hourly, 2 h after it":  {scheduler.Schedule{Every: time.Hour}, -time.Hour, 2 * time.Hour, 1, 1},
		"0 *, hour back":        {scheduler.Schedule{Cron: "0 * * * *"}, -time.Hour, 2 * time.Hour, 1, 1},
		"0 *, day back":         {scheduler.Schedule{Cron: "0 * * * *"}, -day, 2 * time.Hour, 2, 2},
		"5 min, day back":       {scheduler.Schedule{Cron: "*/5 * * * *"}, -day, 10 * time.Minute, 2, 2},
		"half an hour, hour":    {scheduler.Schedule{Every: 30 * time.Minute}, -time.Hour, time.Hour, 2, 1},
		"hourly, day back":      {scheduler.Schedule{Every: time.Hour}, -day, 3 * time.Hour, 3, 3},
		"10 s, hour back":       {scheduler.Schedule{Every: 10 * time.Second}, -time.Hour, time.Minute, 10, 7},
		"10 s, day back":        {scheduler.Schedule{Every: 10 * time.Second}, -day, time.Minute, 10, 7},
		"5 min, hour back":      {scheduler.Schedule{Cron: "*/5 * * * *"}, -time.Hour, time.Hour, 12, 12},
		"weekly, day back":      {scheduler.Schedule{Cron: "0 9 * * 6"}, -day, 7 * day, 0, 0},
		"daily, hour forward":   {scheduler.Schedule{Cron: "0 9 * * *"}, time.Hour, day, 1, 1},
		"daily, day forward":    {scheduler.Schedule{Cron: "0 9 * * *"}, day, time.Hour, 1, 1},
		"hourly, day forward":   {scheduler.Schedule{Every: time.Hour}, day, time.Minute, 1, 1},
		"10 s, day forward":     {scheduler.Schedule{Every: 10 * time.Second}, day, time.Minute, 10, 9},
		"weekly, day forward":   {scheduler.Schedule{Cron: "0 9 * * 6"}, day, 5 * day, 0, 0},
		"weekdays, hour back":   {scheduler.Schedule{Cron: "0 9 * * 1-5"}, -time.Hour, 2 * time.Hour, 0, 0},
		"10 s, half a min back": {scheduler.Schedule{Every: 10 * time.Second}, -30 * time.Second, time.Minute, 10, 6},
	} {
		t.Run(name, func(t *testing.T) {
			timetest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				w.add(scheduler.Job{Schedule: c.schedule})
				w.open()
				if w.wait(10 * time.Minute); c.schedule.Every != 10*time.Second {
					w.wait(9 * time.Hour)
				}
				w.ran()
				w.set(func() { w.step = c.step })
				w.wait(31 * time.Second)
				burst := len(w.ran())
				w.wait(c.wait)
				if got := burst + len(w.ran()); burst > 4 || got > c.most || got < c.least {
					t.Errorf("%d ran, %d of them at once", got, burst)
				}
			})
		})
	}
}

// No job stands still after restarts with the wall clock set back in between (P23).
func TestP23BackWhileDown(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.add(scheduler.Job{Text: "often", Schedule: scheduler.Schedule{Every: time.Minute}})
		w.add(scheduler.Job{Text: "daily", Schedule: scheduler.Schedule{Cron: "0 9 * * *"}})
		w.open()
		w.wait(10 * time.Hour)
		w.stop()
		w.ran()
		w.set(func() { w.step = -24 * time.Hour })
		w.open()
		w.wait(10 * time.Minute)
		if got := w.ran(); len(got) != 10 {
			t.Errorf("%q", got)
		}
	})
}
