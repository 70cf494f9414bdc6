package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"parley/chat"
	"parley/texts"
)

const (
	catchUpWindow     = 6 * time.Hour  // how late a missed run is still caught up with (P12)
	catchUpWindowOnce = 24 * time.Hour // the same for a job that is due only once
	lostAfter         = 24 * time.Hour // a run that has not ended by then is given up
	maxRuns           = 20             // kept per job
	maxResult         = 2000           // bytes
	maxNote           = 500            // bytes
	maxFailures       = 3              // in a row, before people are told
)

// openRun returns the run that has not ended, or nil.
func (j *Job) openRun() *Run {
	for i := range j.Runs {
		if o := j.Runs[i].Outcome; o == Waiting || o == Running {
			return &j.Runs[i]
		}
	}
	return nil
}

// isOver reports whether j was due once and nothing is left to do for it (D-095).
func (j *Job) isOver() bool {
	return j.wasLastTime() && !j.Off && j.openRun() == nil && !j.isSending()
}

// wasLastTime reports whether j was due once and is not due again.
func (j *Job) wasLastTime() bool { return !j.Schedule.At.IsZero() && j.Next.IsZero() }

// isSending reports whether the network has not accepted a run's answer yet.
func (j *Job) isSending() bool {
	return slices.ContainsFunc(j.Runs, func(r Run) bool { return r.Outcome == Sending })
}

// switchOff switches j off, and notes why.
func (j *Job) switchOff(why string) {
	j.Off = true
	j.Why = why
	j.Next = time.Time{}
}

// addRun adds a run, and removes the oldest run that has ended if there are too many.
func (j *Job) addRun(r Run) {
	if len(j.Runs) >= maxRuns {
		oldest := 0
		if &j.Runs[0] == j.openRun() {
			oldest = 1
		}
		j.Runs = slices.Delete(j.Runs, oldest, oldest+1)
	}
	j.Runs = append(j.Runs, r)
}

// requestRun adds a run that is waiting to begin.
func (j *Job) requestRun(due time.Time, key string) {
	j.N++
	j.addRun(Run{N: j.N, Due: due, Key: key, Outcome: Waiting})
}

// endRun records how run r of j ended, and reports whether people should now be
// told that j keeps failing.
func (j *Job) endRun(r *Run, e Ended, now time.Time) (failing bool) {
	r.Outcome = e.Outcome
	r.Note = clipNote(cmp.Or(e.Note, r.Note))
	if e.Sent && e.Outcome == Answered {
		r.Outcome = cmp.Or(r.Sent, Sending)
	}
	r.Sent = ""
	if !r.Began.IsZero() {
		r.Seconds = int(max(time.Second, now.Sub(r.Began).Round(time.Second)) / time.Second)
	}
	r.Tokens = max(r.Tokens, e.Tokens)
	r.Cost = max(r.Cost, e.Cost)
	r.Tainted = e.Tainted
	switch e.Outcome {
	case Answered:
		for i := range j.Runs {
			j.Runs[i].Result = ""
		}
		r.Result = chat.ClipBytes(e.Text, maxResult)
		j.Failed = 0
	case Silent, Done:
		j.Failed = 0
	case Failed:
		j.Failed++
		return j.Failed == maxFailures
	}
	return false
}

// noteDelivery records whether the network accepted the answer of run r, and
// reports whether that changed anything. A reason means that it was refused.
func (j *Job) noteDelivery(r *Run, reason string, now time.Time) bool {
	delivery := Delivered
	accepted := now
	note := ""
	if reason != "" {
		delivery = Undelivered
		note = clipNote(reason)
		accepted = time.Time{}
	}
	switch r.Outcome {
	case Waiting, Running, Interrupted: // its end is recorded later
		r.Sent = delivery
		r.Accepted = accepted
		r.Note = cmp.Or(note, r.Note)
		return true
	case Sending, Undelivered:
	default:
		return false
	}
	r.Outcome = delivery
	r.Accepted = accepted
	r.Note = note
	if !j.wasLastTime() {
		return true
	}
	if delivery == Undelivered {
		j.switchOff(note) // keep the job, so that people can see what went wrong
	} else {
		j.Off = false // the job is over
	}
	return true
}

// clipNote returns why as a note of a run: one line that is not too long.
func clipNote(why string) string { return chat.ClipBytes(chat.OneLine(why), maxNote) }

// expireLostRun ends a run that has not been heard of for lostAfter, and reports
// whether there was one.
func (j *Job) expireLostRun(say texts.Scheduler, now time.Time) bool {
	r := j.openRun()
	if r == nil || r.Outcome != Running || now.Sub(r.Began) < lostAfter {
		return false
	}
	j.interruptRun(r, say.Lost, now)
	return true
}

// interruptRun ends a run whose result is not waited for any more. A job that was
// due once is kept, so that people can see what happened.
func (j *Job) interruptRun(r *Run, why string, now time.Time) {
	j.endRun(r, Ended{Outcome: Interrupted, Note: why}, now)
	if j.wasLastTime() {
		j.switchOff(why)
	}
}

// Message returns the message that starts run r of job j. An isolated run, which
// does not see the earlier runs, is given the last result as a quote.
func (s *Scheduler) Message(j Job, r Run) chat.Message {
	m := chat.Message{
		ID:      fmt.Sprintf("%s/%d", j.ID, r.N),
		Account: "cron",
		At:      j.At,
		From:    j.By,
		Group:   j.Group,
		Text:    j.Text,
		Time:    r.Began,
		Origin:  chat.FromSchedule,
		Options: &chat.RunOptions{
			Job: j.ID, Name: j.Name, Model: j.Model, Quiet: j.Quiet, Fresh: j.Isolated, Tool: j.Tool, Args: j.Args,
		},
	}
	if r.Began.Sub(r.Due) > lateAfter {
		m.Text += fmt.Sprintf("\n[This was due at %s.]", formatMinute(r.Due))
	}
	if !j.Isolated {
		return m
	}
	m.In = chat.SessionID(Sessions + j.ID)
	for _, earlier := range j.Runs {
		if earlier.Result == "" || earlier.N == r.N {
			continue
		}
		m.Quote = &chat.Quote{From: "you", Text: earlier.Result}
		m.Tainted = earlier.Tainted
		if earlier.Tainted {
			m.Quote.From = "the web"
			m.Sources = []string{fmt.Sprintf("the last run of the job %q", chat.OneLine(j.Name))}
		}
	}
	return m
}
