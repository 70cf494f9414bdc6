package scheduler_test

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"parley/scheduler"
)

// The three kinds fire, and a job that is due once goes away (D-094, D-095).
func TestD094Kinds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
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
