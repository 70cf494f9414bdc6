package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"parley/scheduler"
)

const (
	mostListed = 100 // jobs
	clockTime  = "2006-01-02 15:04 MST"
)

// title names j: "n (id: i, every 1h)".
func title(j scheduler.Job) string {
	return fmt.Sprintf("%s (id: %s, %s)", oneLine(j.Name), j.ID, j.Schedule)
}

// listed tells of jobs, with times in zone (D-095).
func listed(jobs []scheduler.Job, zone *time.Location) string {
	if len(jobs) == 0 {
		return "No scheduled jobs."
	}
	var b strings.Builder
	b.WriteString("Scheduled jobs:")
	for _, j := range jobs[:min(len(jobs), mostListed)] {
		fmt.Fprintf(&b, "\n- %s\n  %s; %s", title(j), nextRun(j, zone), lastRun(j, zone))
	}
	if more := len(jobs) - mostListed; more > 0 {
		fmt.Fprintf(&b, "\n… and %d more", more)
	}
	return b.String()
}

// nextRun says when j is due.
func nextRun(j scheduler.Job, zone *time.Location) string {
	switch {
	case j.Off:
		return strings.TrimSuffix("off: "+oneLine(j.Why), ": ")
	case j.Next.IsZero():
		return "not due again"
	}
	return "next: " + j.Next.In(zone).Format(clockTime)
}

// lastRun says how j ran last.
func lastRun(j scheduler.Job, zone *time.Location) string {
	if len(j.Runs) == 0 {
		return "has not run yet"
	}
	r := j.Runs[len(j.Runs)-1]
	return strings.TrimSuffix(fmt.Sprintf("last: %s, %s – %s", r.Due.In(zone).Format(clockTime), r.Outcome, oneLine(r.Note)), " – ")
}

// history tells of the runs of j, the latest first.
func history(j scheduler.Job, zone *time.Location) string {
	if len(j.Runs) == 0 {
		return fmt.Sprintf("Job %s has not run yet.", j.ID)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "History of %s:", title(j))
	for i := len(j.Runs) - 1; i >= 0; i-- {
		r := j.Runs[i]
		fmt.Fprintf(&b, "\n- %s: %s", r.Due.In(zone).Format(clockTime), r.Outcome)
		if took := r.Took(); took > 0 {
			fmt.Fprintf(&b, ", %v", took)
		}
		if r.Tokens > 0 {
			fmt.Fprintf(&b, ", %d tokens", r.Tokens)
		}
		if r.Cost > 0 {
			fmt.Fprintf(&b, ", cost %.4f", r.Cost)
		}
		if r.Note != "" {
			b.WriteString(" – " + oneLine(r.Note))
		}
	}
	return b.String()
}

// protected says why a job of the house cannot be changed (D-096).
func protected(action, id string) string {
	why := map[string]string{dreamID: "此为系统管理的Dream记忆整合任务，仅供查看。"}[id]
	return fmt.Sprintf("Cannot %s job `%s`.\n%s", action, id, cmp.Or(why, "It belongs to the house, and is only shown."))
}
