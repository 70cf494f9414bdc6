package main

import (
	"cmp"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/texts"
)

const (
	mostListed = 100 // jobs
	clockTime  = "2006-01-02 15:04 MST"
)

// jobTexts tells of scheduled jobs in one language, with times in zone (D-095).
type jobTexts struct {
	texts texts.Jobs
	zone  *time.Location
}

// inEnglish tells of jobs as models and the command line are told.
func inEnglish(zone *time.Location) jobTexts {
	return jobTexts{texts: texts.English().Gateway.Jobs, zone: zone}
}

// title names j, with its ID and schedule.
func (say jobTexts) title(j scheduler.Job) string {
	return say.texts.Title.With(oneLine(j.Name), j.ID, say.schedule(j.Schedule))
}

// schedule says when a job is due.
func (say jobTexts) schedule(s scheduler.Schedule) string {
	text := s.String()
	if span, ok := strings.CutPrefix(text, "every "); ok {
		return say.texts.Every.With(span)
	}
	if at, ok := strings.CutPrefix(text, "at "); ok {
		return say.texts.At.With(at)
	}
	return text
}

// list tells of jobs. Of those that belong to another conversation than here it
// says to which.
func (say jobTexts) list(jobs []scheduler.Job, here chat.Address) string {
	if len(jobs) == 0 {
		return say.texts.None
	}
	var b strings.Builder
	b.WriteString(say.texts.List)
	for _, j := range jobs[:min(len(jobs), mostListed)] {
		b.WriteString("\n- " + say.texts.Line.With(say.title(j), say.nextRun(j), say.lastRun(j)))
		if j.At != here && j.At != (chat.Address{}) {
			b.WriteString(say.texts.In.With(oneLine(string(j.At.Session()))))
		}
	}
	if more := len(jobs) - mostListed; more > 0 {
		b.WriteString("\n" + say.texts.More.With(more))
	}
	return b.String()
}

// nextRun says when j is due.
func (say jobTexts) nextRun(j scheduler.Job) string {
	switch why := oneLine(j.Why); {
	case j.Off && why != "":
		return say.texts.OffBecause.With(why)
	case j.Off:
		return say.texts.Off
	case j.Next.IsZero():
		return say.texts.NotDue
	}
	return say.texts.Next.With(say.time(j.Next))
}

// lastRun says how j ran last.
func (say jobTexts) lastRun(j scheduler.Job) string {
	if len(j.Runs) == 0 {
		return say.texts.Never
	}
	r := j.Runs[len(j.Runs)-1]
	text := say.texts.Last.With(say.time(r.Due), say.outcome(r.Outcome))
	if note := oneLine(r.Note); note != "" {
		return say.texts.LastNote.With(text, note)
	}
	return text
}

// history tells of the runs of j, the latest first.
func (say jobTexts) history(j scheduler.Job) string {
	if len(j.Runs) == 0 {
		return say.texts.NoHistory.With(j.ID)
	}
	var b strings.Builder
	b.WriteString(say.texts.History.With(say.title(j)))
	for i := len(j.Runs) - 1; i >= 0; i-- {
		r := j.Runs[i]
		b.WriteString("\n- " + say.texts.Run.With(say.time(r.Due), say.outcome(r.Outcome)))
		if took := r.Took(); took > 0 {
			b.WriteString(", " + took.String())
		}
		if r.Tokens > 0 {
			b.WriteString(say.texts.Tokens.With(r.Tokens))
		}
		if r.Cost > 0 {
			b.WriteString(say.texts.Cost.With(r.Cost))
		}
		if r.Note != "" {
			b.WriteString(say.texts.RunNote.With(oneLine(r.Note)))
		}
	}
	return b.String()
}

func (say jobTexts) time(t time.Time) string { return t.In(say.zone).Format(clockTime) }

// changed says that the job with that ID was changed by action.
func (say jobTexts) changed(action, id string) string {
	done := map[string]texts.Format{"enable": say.texts.Enabled, "disable": say.texts.Disabled, "edit": say.texts.Changed}
	return done[action].With(id)
}

// protected says why a system job cannot be changed (D-096).
func (say jobTexts) protected(action, id string) string {
	t := say.texts
	refused := map[string]texts.Format{"enable": t.CannotEnable, "disable": t.CannotDisable, "edit": t.CannotEdit, "remove": t.CannotRemove}
	why := map[string]string{dreamID: t.OfMemory}[id]
	return refused[action].With(id) + "\n" + cmp.Or(why, t.OfParley)
}

// outcome says how a run ended, or how far it is. The text of one that the
// catalogue does not name is its value.
func (say jobTexts) outcome(o scheduler.Outcome) string {
	t := say.texts.Outcomes
	return cmp.Or(map[scheduler.Outcome]string{
		scheduler.Waiting: t.Waiting, scheduler.Running: t.Running, scheduler.Answered: t.Answered, scheduler.Sending: t.Sending,
		scheduler.Delivered: t.Delivered, scheduler.Undelivered: t.Undelivered, scheduler.Silent: t.Silent, scheduler.Done: t.Done,
		scheduler.Failed: t.Failed, scheduler.Interrupted: t.Interrupted, scheduler.Stopped: t.Stopped, scheduler.Skipped: t.Skipped,
		scheduler.Missing: t.Missed, scheduler.Refused: t.Refused,
	}[o], string(o))
}
