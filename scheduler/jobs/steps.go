package jobs

import (
	"time"

	"parley/chat"
	"parley/scheduler"
	"parley/texts"
)

// maxTipName is how many characters of the name of a job its step shows.
const maxTipName = 60

// tip says what action has done with j, to the people who see the step. It returns "" if j has no name, such as a
// damaged one.
func (m *Manager) tip(action string, j scheduler.Job, now time.Time) string {
	name := chat.Clip(chat.OneLine(j.Name), maxTipName, "…")
	if name == "" {
		return ""
	}
	say := m.Texts.Agent.Steps.Job
	if action == Add {
		return addedTip(say, name, j.Schedule, now.In(m.Zone))
	}
	done := map[string]texts.Format{
		Remove: say.Removed, Run: say.Started, Enable: say.SwitchedOn, Disable: say.SwitchedOff, Edit: say.Changed,
	}
	return done[action].With(name)
}

// addedTip says when a job of that name is due, in the zone of now.
func addedTip(say texts.JobSteps, name string, s scheduler.Schedule, now time.Time) string {
	if s.At.IsZero() {
		words := s.Words()
		if s.Zone != "" {
			words += " (" + s.Zone + ")"
		}
		return say.Recurs.With(name, words)
	}
	at := s.At.In(now.Location())
	format := "15:04"
	switch {
	case at.Year() != now.Year():
		format = "2 January 2006, 15:04"
	case at.YearDay() != now.YearDay():
		format = "2 January, 15:04"
	}
	return say.Due.With(name, at.Format(format))
}
