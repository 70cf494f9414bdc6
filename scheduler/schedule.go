package scheduler

import "time"

// A Schedule says when a job is due: one of Every, Cron and At is set.
type Schedule struct {
	Every time.Duration `json:"every,omitempty"` // counted from when the job was made
	Cron  string        `json:"cron,omitempty"`  // five fields, or "@daily" and the like
	At    time.Time     `json:"at,omitzero"`     // once
	Zone  string        `json:"zone,omitempty"`  // of Cron, such as "Europe/Berlin"; "" is the house's
}

// String says the schedule as people do: "every 1h", "0 9 * * * (Europe/Berlin)", "at 2026-12-24 18:00".
func (s Schedule) String() string { return "" }
