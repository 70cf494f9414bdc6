package scheduler

import (
	"fmt"
	"time"

	"parley/texts"
)

// catchUp records the times between j.Next and now. The latest becomes a requested
// run, unless it is too long ago or another run is under way. All others were
// missed (P12).
func (j *Job) catchUp(say texts.Scheduler, p *plan, now time.Time) {
	first := j.Next
	window := catchUpWindow // a job with a shorter interval is due again before it ends
	if !p.At.IsZero() {
		window = catchUpWindowOnce
	}
	n, before, last := p.countDue(first, now)
	j.Next = p.next(now)
	if late := now.Sub(last); late > window || late > lateAfter && j.Missed == Skip {
		j.addUnstarted(say, Missing, first, last, n, p.zone)
		if !p.At.IsZero() {
			j.switchOff(say.Away)
		}
		return
	}
	j.addUnstarted(say, Missing, first, before, n-1, p.zone)
	if j.openRun() != nil {
		j.addUnstarted(say, Skipped, last, last, 1, p.zone)
		return
	}
	j.requestRun(last, "")
}

// missedNotice returns what the chat is told of a job that was due once and was
// missed, and under which ID. Of other jobs the list of runs alone says it.
func missedNotice(say texts.Scheduler, j *Job, p *plan) (id, text string) {
	id = fmt.Sprintf("cron/%s/missed/%d", j.ID, p.At.Unix())
	return id, say.MissedNotice.With(j.Name, formatMinute(p.At.In(p.zone)))
}

// addUnstarted records that j was due n times without a run. Consecutive times
// with the same outcome share one record.
func (j *Job) addUnstarted(say texts.Scheduler, o Outcome, first, last time.Time, n int, zone *time.Location) {
	if n == 0 {
		return
	}
	if end := len(j.Runs) - 1; end >= 0 && j.Runs[end].Outcome == o {
		first = j.Runs[end].First
		n += j.Runs[end].Times
		j.Runs = j.Runs[:end]
	}
	note := unstartedNote(say, o, n, formatMinute(first.In(zone)), formatMinute(last.In(zone)))
	j.addRun(Run{Due: last, First: first, Times: n, Outcome: o, Note: note})
}

// unstartedNote says, in words for people, that a job was due n times without a run.
func unstartedNote(say texts.Scheduler, o Outcome, n int, from, to string) string {
	skipped := o == Skipped
	switch {
	case n > maxCounted && skipped:
		return say.MostSkipped.With(maxCounted, from, to)
	case n > maxCounted:
		return say.MostMissed.With(maxCounted, from, to)
	case n > 1 && skipped:
		return say.ManySkipped.Of(n, from, to)
	case n > 1:
		return say.ManyMissed.Of(n, from, to)
	case skipped:
		return say.Skipped
	}
	return say.Missed
}
