package schedule_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"parley/scheduler"
)

// A week of more runs than a report lists has no day that looks empty, and a day is in the order of time, whoever
// made the jobs.
func TestWholeWeek(t *testing.T) {
	p := newPages(t,
		scheduler.Job{ID: "often", Name: "Often", Text: "x", Schedule: scheduler.Schedule{Every: 5 * time.Minute}},
		scheduler.Job{ID: "late", Name: "Late", Text: "x", Schedule: scheduler.Schedule{Cron: "58 23 * * *"}},
	)
	_, page := get(t, serve(t, p), "/owner/cron")
	_, week, _ := strings.Cut(page, `aria-label="The coming week"`)
	week, _, _ = strings.Cut(week, "</section>")
	days := strings.Split(week, "<h2>")[1:]
	if len(days) != 7 {
		t.Fatalf("%d days in %s", len(days), week)
	}
	for i, day := range days {
		if n := strings.Count(day, "mark hue1"); n != 1 && i > 0 {
			t.Errorf("a day has %d marks of what runs often: %s", n, day)
		}
		if i > 0 && (!strings.Contains(day, "<b> × 288</b>") || !strings.Contains(day, `<rect class="hue1"`)) {
			t.Errorf("not all runs are counted and shown: %s", day)
		}
		var times []string
		for part := range strings.SplitSeq(day, "<time>") {
			times = append(times, part[:5])
		}
		if times = times[1:]; !slices.IsSorted(times) {
			t.Errorf("a day goes %v", times)
		}
	}
}
