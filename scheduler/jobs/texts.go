package jobs

import (
	"cmp"
	"strings"
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/texts"
)

const (
	maxListed  = 100 // jobs
	timeFormat = "2006-01-02 15:04 MST"
)

// DreamID is the ID of Parley's own job that consolidates memory.
const DreamID = "dream"

// Texts describes jobs in one language, with times in one zone (D-095).
type Texts struct {
	texts texts.Jobs
	zone  *time.Location
}

// English returns the Texts for models and the command line.
func English(zone *time.Location) Texts {
	return Texts{texts: texts.English().Gateway.Jobs, zone: zone}
}

// Schedule says when j is due.
func (t Texts) Schedule(j scheduler.Job) string { return t.schedule(j.Schedule) }

// Title returns the name, ID and schedule of j.
func (t Texts) Title(j scheduler.Job) string {
	return t.texts.Title.With(chat.OneLine(j.Name), j.ID, t.schedule(j.Schedule))
}

// schedule says when a job is due: a cron spec in the plain words that package when
// reads, too, which are English.
func (t Texts) schedule(s scheduler.Schedule) string {
	text := s.String()
	if s.Cron != "" {
		return strings.Replace(text, s.Cron, s.Words(), 1)
	}
	if span, ok := strings.CutPrefix(text, "every "); ok {
		return t.texts.Every.With(span)
	}
	if at, ok := strings.CutPrefix(text, "at "); ok {
		return t.texts.At.With(at)
	}
	return text
}

// List returns a list of jobs. It names the conversation of a job if that is not here.
func (t Texts) List(jobs []scheduler.Job, here chat.Address) string {
	if len(jobs) == 0 {
		return t.texts.None
	}
	var b strings.Builder
	b.WriteString(t.texts.List)
	for _, j := range jobs[:min(len(jobs), maxListed)] {
		b.WriteString("\n- " + t.texts.Line.With(t.Title(j), t.NextRun(j), t.LastRun(j)))
		if j.At != here && j.At != (chat.Address{}) {
			b.WriteString(t.texts.In.With(chat.OneLine(string(j.At.Session()))))
		}
	}
	if more := len(jobs) - maxListed; more > 0 {
		b.WriteString("\n" + t.texts.More.With(more))
	}
	return b.String()
}

// NextRun says when j is due next, or why it is not.
func (t Texts) NextRun(j scheduler.Job) string {
	why := chat.OneLine(j.Why)
	switch {
	case j.Off && why != "":
		return t.texts.OffBecause.With(why)
	case j.Off:
		return t.texts.Off
	case j.Next.IsZero():
		return t.texts.NotDue
	}
	return t.texts.Next.With(t.time(j.Next))
}

// LastRun says how the latest run of j ended.
func (t Texts) LastRun(j scheduler.Job) string {
	if len(j.Runs) == 0 {
		return t.texts.Never
	}
	r := j.Runs[len(j.Runs)-1]
	text := t.texts.Last.With(t.time(r.Due), t.howItEnded(r))
	if note := chat.OneLine(r.Note); note != "" {
		return t.texts.LastNote.With(text, note)
	}
	return text
}

// History lists the runs of j, the latest first.
func (t Texts) History(j scheduler.Job) string {
	if len(j.Runs) == 0 {
		return t.texts.NoHistory.With(j.ID)
	}
	var b strings.Builder
	b.WriteString(t.texts.History.With(t.Title(j)))
	for i := len(j.Runs) - 1; i >= 0; i-- {
		b.WriteString("\n- " + t.run(j.Runs[i]))
	}
	return b.String()
}

func (t Texts) run(r scheduler.Run) string {
	text := t.texts.Run.With(t.time(r.Due), t.howItEnded(r))
	if took := r.Took(); took > 0 {
		text += ", " + took.String()
	}
	if r.Tokens > 0 {
		text += t.texts.Tokens.With(r.Tokens)
	}
	if r.Cost > 0 {
		text += t.texts.Cost.With(r.Cost)
	}
	if r.Note != "" {
		text += t.texts.RunNote.With(chat.OneLine(r.Note))
	}
	return text
}

func (t Texts) time(at time.Time) string { return at.In(t.zone).Format(timeFormat) }

// changed confirms that action has changed the job with this ID.
func (t Texts) changed(action, id string) string {
	done := map[string]texts.Format{
		Enable:  t.texts.Enabled,
		Disable: t.texts.Disabled,
		Edit:    t.texts.Changed,
	}
	return done[action].With(id)
}

// protected says why one of Parley's own jobs cannot be changed (D-096).
func (t Texts) protected(action, id string) string {
	refused := map[string]texts.Format{
		Enable:  t.texts.CannotEnable,
		Disable: t.texts.CannotDisable,
		Edit:    t.texts.CannotEdit,
		Remove:  t.texts.CannotRemove,
	}
	why := t.texts.OfParley
	if id == DreamID {
		why = t.texts.OfMemory
	}
	return refused[action].With(id) + "\n" + why
}

// howItEnded says how a run ended, or how far it has come; of an answer that was
// delivered also when.
func (t Texts) howItEnded(r scheduler.Run) string {
	if r.Outcome != scheduler.Delivered || r.Accepted.IsZero() {
		return t.outcome(r.Outcome)
	}
	layout := timeFormat
	if late := r.Accepted.Sub(r.Due); late >= 0 && late < 12*time.Hour {
		layout = "15:04 MST" // of the same run, which names the day
	}
	return t.texts.Accepted.With(r.Accepted.In(t.zone).Format(layout))
}

// outcome says how a run ended, or how far it has come. An outcome that the catalogue
// does not name is shown as its value.
func (t Texts) outcome(o scheduler.Outcome) string {
	say := t.texts.Outcomes
	named := map[scheduler.Outcome]string{
		scheduler.Waiting:     say.Waiting,
		scheduler.Running:     say.Running,
		scheduler.Answered:    say.Answered,
		scheduler.Sending:     say.Sending,
		scheduler.Delivered:   say.Delivered,
		scheduler.Undelivered: say.Undelivered,
		scheduler.Silent:      say.Silent,
		scheduler.Done:        say.Done,
		scheduler.Failed:      say.Failed,
		scheduler.Interrupted: say.Interrupted,
		scheduler.Stopped:     say.Stopped,
		scheduler.Skipped:     say.Skipped,
		scheduler.Missing:     say.Missed,
		scheduler.Refused:     say.Refused,
	}
	return cmp.Or(named[o], string(o))
}
