package scheduler_test

import (
	"slices"
	"testing"
	"time"

	"parley/scheduler"
	"parley/timetest"
	"parley/when"
)

// What a preview of plain words shows is when the job then runs, also over the change to
// daylight saving time.
func TestPreview(t *testing.T) {
	for _, words := range []string{
		"every weekday at 9", "every day at 2:30", "every 2 hours", "every hour on sundays", "every hour from 1 to 4",
		"on the 26th of each month at 2:15", "every monday and friday at 7:15", "tomorrow at 18:30", "26 march at 2:30", "in 20 minutes",
	} {
		timetest.Test(t, func(t *testing.T) {
			zone, err := time.LoadLocation("Europe/Berlin")
			if err != nil {
				t.Fatal(err)
			}
			w := newWorld(t)
			w.zone = zone
			w.step = time.Until(time.Date(2000, 3, 24, 8, 30, 0, 0, zone))
			read, err := when.Parse(words, w.now().In(zone))
			if err != nil {
				t.Fatal(err)
			}
			schedule := scheduler.Schedule{Every: read.Every, Cron: read.Cron}
			if read.At != "" {
				if schedule.At, err = scheduler.ParseAt(read.At, zone); err != nil {
					t.Fatal(err)
				}
			}
			s := w.open()
			shown, err := s.Preview(schedule, 3)
			if err != nil || len(shown) == 0 {
				t.Fatalf("%s: %v, %v", words, shown, err)
			}
			w.add(scheduler.Job{Schedule: schedule})
			var want []string
			for _, due := range shown {
				want = append(want, due.Format("01-02 15:04:05 x"))
			}
			w.wait(shown[len(shown)-1].Sub(w.now()) + time.Second)
			if got := w.ran(); !slices.Equal(got, want) {
				t.Errorf("%s: it ran at %q, and the preview showed %q", words, got, want)
			}
		})
	}
}

// A preview refuses what Add would refuse, and adds nothing.
func TestPreviewRefuses(t *testing.T) {
	timetest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		s := w.open()
		for _, schedule := range []scheduler.Schedule{
			{}, {Every: time.Second}, {Cron: "0 9 30 2 *"}, {Cron: "* * * * * *"}, {At: time.Now()}, {Every: time.Hour, Zone: "UTC"},
			{Cron: "0 9 * * *", Zone: "Europe/Atlantis"},
		} {
			times, err := s.Preview(schedule, 3)
			_, refused := s.Add(t.Context(), scheduler.Job{Text: "x", At: home, By: alice, Schedule: schedule})
			if err == nil || refused == nil || err.Error() != refused.Error() {
				t.Errorf("%v: %v, %v; Add says %v", schedule, times, err, refused)
			}
		}
		if all, err := s.Jobs(t.Context()); err != nil || len(all) > 0 {
			t.Errorf("there are %v, %v", all, err)
		}
	})
}
