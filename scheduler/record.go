package scheduler

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"parley/chat"
	"parley/texts"
)

const (
	catchUp   = 6 * time.Hour  // a run that was missed is caught up with for so long (P12) …
	oneLate   = 24 * time.Hour // … if its job is due only once, for so long
	lostAfter = 24 * time.Hour // a run that has not ended by then never will
	runsKept  = 20
	maxResult = 2000 // bytes
	maxNote   = 500  // bytes
	tooMany   = 3    // failures in a row
)

// open returns the run that has not ended, if there is one.
func (j *Job) open() *Run {
	for i := range j.Runs {
		if o := j.Runs[i].Outcome; o == Waiting || o == Running {
			return &j.Runs[i]
		}
	}
	return nil
}

// over says whether nothing is left of a job that was due once (D-095).
func (j *Job) over() bool {
	return !j.Schedule.At.IsZero() && j.Next.IsZero() && !j.Off && j.open() == nil && !j.sending()
}

// sending says whether the network has not taken yet what a run said.
func (j *Job) sending() bool {
	return slices.ContainsFunc(j.Runs, func(r Run) bool { return r.Outcome == Sending })
}

// stop switches j off, and says why.
func (j *Job) stop(why string) { j.Off, j.Why, j.Next = true, why, time.Time{} }

// add adds a run, and forgets the oldest of too many that have ended.
func (j *Job) add(r Run) {
	if len(j.Runs) >= runsKept {
		old := 0
		if &j.Runs[0] == j.open() {
			old = 1
		}
		j.Runs = slices.Delete(j.Runs, old, old+1)
	}
	j.Runs = append(j.Runs, r)
}

// due brings j up to now: of the times that have passed the latest is a run that
// is wanted, unless it is too late or one is under way, and the others were missed (P12).
func (j *Job) due(say texts.Scheduler, p *plan, now time.Time) {
	first, limit := j.Next, catchUp // every other job is due again before it is too late by its interval
	if !p.At.IsZero() {
		limit = oneLate
	}
	n, before, last := p.passed(first, now)
	j.Next = p.next(now)
	if late := now.Sub(last); late > limit || late > patience && j.Missed == Skip {
		j.pass(say, Missing, first, last, n, p.zone)
		if !p.At.IsZero() {
			j.stop(say.Away)
		}
		return
	}
	j.pass(say, Missing, first, before, n-1, p.zone)
	if j.open() != nil {
		j.pass(say, Skipped, last, last, 1, p.zone)
		return
	}
	j.want(last, "")
}

// want adds a run that is to begin.
func (j *Job) want(due time.Time, key string) {
	j.N++
	j.add(Run{N: j.N, Due: due, Key: key, Outcome: Waiting})
}

// pass notes n times that nothing was done, in one record for all that follow each other.
func (j *Job) pass(say texts.Scheduler, o Outcome, first, last time.Time, n int, zone *time.Location) {
	if n == 0 {
		return
	}
	if end := len(j.Runs) - 1; end >= 0 && j.Runs[end].Outcome == o {
		first, n = j.Runs[end].First, n+j.Runs[end].Times
		j.Runs = j.Runs[:end]
	}
	note, several, most := say.Missed, say.ManyMissed, say.MostMissed
	if o == Skipped {
		note, several, most = say.Skipped, say.ManySkipped, say.MostSkipped
	}
	from, to := minute(first.In(zone)), minute(last.In(zone))
	if n > many {
		note = most.With(many, from, to)
	} else if n > 1 {
		note = several.Of(n, from, to)
	}
	j.add(Run{Due: last, First: first, Times: n, Outcome: o, Note: note})
}

// end notes how run r of j ended, and says whether people should know of its failures.
func (j *Job) end(r *Run, e Ended, now time.Time) (failing bool) {
	r.Outcome, r.Note = e.Outcome, head(oneLine(cmp.Or(e.Note, r.Note)), maxNote)
	if e.Sent && e.Outcome == Answered {
		r.Outcome = cmp.Or(r.Sent, Sending)
	}
	r.Sent = ""
	if !r.Began.IsZero() {
		r.Seconds = int(max(time.Second, now.Sub(r.Began).Round(time.Second)) / time.Second)
	}
	r.Tokens, r.Cost, r.Tainted = e.Tokens, e.Cost, e.Tainted
	switch e.Outcome {
	case Answered:
		for i := range j.Runs {
			j.Runs[i].Result = ""
		}
		r.Result = head(e.Text, maxResult)
		fallthrough
	case Silent, Done:
		j.Failed = 0
	case Failed:
		j.Failed++
		return j.Failed == tooMany
	}
	return false
}

// noteDelivery notes what became of what run r of j said, and says whether that is news.
func (j *Job) noteDelivery(r *Run, reason string) bool {
	fate, note := Delivered, ""
	if reason != "" {
		fate, note = Undelivered, head(oneLine(reason), maxNote)
	}
	switch r.Outcome {
	case Waiting, Running, Interrupted: // the news of its end follows
		r.Sent, r.Note = fate, cmp.Or(note, r.Note)
		return true
	case Sending, Undelivered:
	default:
		return false
	}
	r.Outcome, r.Note = fate, note
	if j.lastTime() && fate == Undelivered {
		j.stop(note) // it stays, to be seen
	} else if j.lastTime() {
		j.Off = false // it is over
	}
	return true
}

// lastTime says whether j was due once, and is not due again.
func (j *Job) lastTime() bool { return !j.Schedule.At.IsZero() && j.Next.IsZero() }

// lose gives up a run of which nobody has heard for long. It says whether there was one.
func (j *Job) lose(say texts.Scheduler, now time.Time) bool {
	r := j.open()
	if r == nil || r.Outcome != Running || now.Sub(r.Began) < lostAfter {
		return false
	}
	j.giveUp(r, say.Lost, now)
	return true
}

// giveUp ends a run that is not waited for any more. A job that was due once stays, to be seen.
func (j *Job) giveUp(r *Run, why string, now time.Time) {
	j.end(r, Ended{Outcome: Interrupted, Note: why}, now)
	if !j.Schedule.At.IsZero() && j.Next.IsZero() {
		j.stop(why)
	}
}

// Message returns the message that run r of job j is. The last result goes with
// one that knows nothing of the runs before.
func (s *Scheduler) Message(j Job, r Run) chat.Message {
	m := chat.Message{
		ID: fmt.Sprintf("%s/%d", j.ID, r.N), Account: "cron", At: j.At, From: j.By, Group: j.Group, Text: j.Text,
		Time: r.Began, Origin: chat.FromSchedule,
		Options: &chat.RunOptions{
			Job: j.ID, Model: j.Model, Quiet: j.Quiet, Fresh: j.Isolated, Tool: j.Tool, Args: j.Args,
		},
	}
	if r.Began.Sub(r.Due) > patience {
		m.Text += fmt.Sprintf("\n[This was due at %s.]", minute(r.Due))
	}
	if !j.Isolated {
		return m
	}
	m.In = chat.SessionID(Sessions + j.ID)
	for _, last := range j.Runs {
		if last.Result == "" || last.N == r.N {
			continue
		}
		m.Quote, m.Tainted = &chat.Quote{From: "you", Text: last.Result}, last.Tainted
		if last.Tainted {
			m.Quote.From, m.Sources = "the web", []string{fmt.Sprintf("the last run of the job %q", oneLine(j.Name))}
		}
	}
	return m
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// head returns the beginning of text, at most n bytes of whole characters.
func head(text string, n int) string {
	if len(text) <= n {
		return text
	}
	return strings.TrimSpace(strings.ToValidUTF8(text[:n-len("…")], "")) + "…"
}
