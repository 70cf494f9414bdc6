package scheduler

import (
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"parley/texts"
	"parley/when"
)

// A Schedule says when a job is due: exactly one of Every, Cron and At is set.
type Schedule struct {
	Every time.Duration `json:"every,omitempty"` // counted from the job's creation
	Cron  string        `json:"cron,omitempty"`  // five fields, or "@daily" and the like
	At    time.Time     `json:"at,omitzero"`     // once
	Zone  string        `json:"zone,omitempty"`  // of Cron, such as "Europe/Berlin"; "" is the gateway's zone
}

// String returns the schedule as people write it: "every 1h",
// "0 9 * * * (Europe/Berlin)" or "at 2026-12-24 18:00".
func (s Schedule) String() string {
	switch {
	case s.Every > 0:
		return "every " + strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(s.Every.String())
	case !s.At.IsZero():
		return "at " + formatMinute(s.At)
	case s.Zone != "":
		return s.Cron + " (" + s.Zone + ")"
	}
	return s.Cron
}

// Words says in plain words when a job with this schedule is due.
func (s Schedule) Words() string {
	words := when.Schedule{Every: s.Every, Cron: s.Cron}
	if !s.At.IsZero() {
		words.At = s.At.Format(time.RFC3339)
	}
	return when.Words(words)
}

// formatMinute formats t for people, to the minute.
func formatMinute(t time.Time) string { return t.Format("2006-01-02 15:04") }

// timeLayouts are the forms of ISO 8601 without an offset that ParseAt reads.
var timeLayouts = []string{
	"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
}

// ParseAt parses a time in ISO 8601, which is in zone if it names no offset, and
// returns it in zone. Errors are worded for people and models (D-095).
func ParseAt(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(zone), nil
	}
	for _, layout := range timeLayouts {
		if wall, err := time.Parse(layout, text); err == nil {
			return instant(wall, zone), nil
		}
	}
	return time.Time{}, refuse("invalid ISO datetime format '%s'. Expected format: YYYY-MM-DDTHH:MM:SS", text)
}

// A plan is a parsed Schedule, which computes when a job is due.
type plan struct {
	Schedule
	from    time.Time          // start of the first Every
	spec    *cron.SpecSchedule // parsed Cron
	anyHour bool               // Cron names no hour: it is due in each hour, or every few hours
	zone    *time.Location
}

// next returns when the job is due for the first time after t, or zero.
func (p *plan) next(t time.Time) (next time.Time) {
	switch {
	case p.Every > 0: // t may be before from, if the wall clock was set back
		next = p.from.Add(t.Sub(p.from) / p.Every * p.Every)
		if !next.After(t) {
			next = next.Add(p.Every)
		}
	case p.At.After(t):
		next = p.At
	case p.anyHour:
		next = p.nextAnyHour(t)
	case p.spec != nil:
		next = p.nextFixedHour(t)
	}
	if !next.IsZero() {
		next = next.In(p.zone)
	}
	return next
}

// nextFixedHour returns the next time of a spec that names hours. The spec is
// evaluated in local time: a time that is skipped when clocks go forward is due
// right after the change, and one that occurs twice is due the first time (P13).
func (p *plan) nextFixedHour(t time.Time) time.Time {
	_, offset := t.In(p.zone).Zone()
	for wall := p.spec.Next(t.UTC().Add(seconds(offset))); !wall.IsZero(); wall = p.spec.Next(wall) {
		if due := instant(wall, p.zone); due.After(t) {
			return due
		}
	}
	return time.Time{}
}

// nextAnyHour returns the next time of a spec that names no hour. It is due
// whenever local time matches, so "every five minutes" continues without a gap
// while clocks change.
func (p *plan) nextAnyHour(t time.Time) time.Time {
	for period := t.In(p.zone); ; { // of one offset
		_, offset := period.Zone()
		_, end := period.ZoneBounds()
		wall := p.spec.Next(t.UTC().Add(seconds(offset)))
		if wall.IsZero() {
			return wall
		}
		if due := wall.Add(-seconds(offset)); end.IsZero() || due.Before(end) {
			return due
		}
		period = end
		t = end.Add(-1)
	}
}

// instant returns the first time at which clocks in zone show wall. If they skip
// it, instant returns the end of the skipped hour.
func instant(wall time.Time, zone *time.Location) time.Time {
	period := wall.Add(-26 * time.Hour).In(zone) // of one offset
	for {
		_, offset := period.Zone()
		begin, end := period.ZoneBounds()
		t := wall.Add(-seconds(offset)).In(zone)
		if t.Before(begin) {
			return begin
		}
		if end.IsZero() || t.Before(end) {
			return t
		}
		period = end
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// maxCounted bounds how many missed times of a job are counted one by one.
const maxCounted = 1000

// countDue returns how often the job was due from first to now, and the last two of
// these times. Beyond maxCounted it only counts the times within catchUpWindow.
func (p *plan) countDue(first, now time.Time) (n int, before, last time.Time) {
	for t := first; !t.IsZero() && !t.After(now); t = p.next(t) {
		n++
		before = last
		last = t
		if recent := now.Add(-catchUpWindow); n == maxCounted && recent.After(t) {
			t = recent
		}
	}
	return n, before, last
}

// isStale reports whether next must be computed again: the gateway's time zone has
// changed, or the wall clock was set back by more than one interval. Running a job
// twice is better than a job that stands still (P23).
func (p *plan) isStale(next, now time.Time) bool {
	first := p.next(now)
	if first.IsZero() {
		return false
	}
	second := p.next(first)
	if !second.IsZero() && next.After(second) {
		return true
	}
	return next.After(now) && !p.next(next.Add(-1)).Equal(next)
}

// parseSpec parses a cron spec (D-094), and reports whether it names no hour.
func parseSpec(text string) (spec *cron.SpecSchedule, anyHour bool, err error) {
	switch {
	case len(text) > 200:
		return nil, false, errors.New("it is too long")
	case strings.Contains(text, "="):
		return nil, false, errors.New("the time zone goes into tz")
	}
	fields := strings.Fields(text)
	if len(fields) == 5 {
		fields[4] = replaceSunday7(fields[4])
	}
	schedule, err := cron.ParseStandard(strings.Join(fields, " "))
	if err != nil {
		return nil, false, err
	}
	spec, ok := schedule.(*cron.SpecSchedule)
	if !ok {
		return nil, false, errors.New("use every_seconds instead")
	}
	if spec.Next(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)).IsZero() {
		return nil, false, errors.New("it is never due")
	}
	anyHour = fields[0] == "@hourly" || len(fields) == 5 && strings.ContainsAny(fields[1], "*?")
	return spec, anyHour, nil
}

// replaceSunday7 replaces 7 by 0 in the field of weekdays: crontab accepts both for
// Sunday, but the parser only 0.
func replaceSunday7(field string) string {
	days := strings.Split(field, ",")
	for i, day := range days {
		if from, ok := strings.CutSuffix(day, "-7"); ok {
			days[i] = from + "-6,0"
		} else if day == "7" {
			days[i] = "0"
		}
	}
	return strings.Join(days, ",")
}

// CheckSpec returns what is wrong with text as a cron spec.
func CheckSpec(text string) error {
	_, _, err := parseSpec(text)
	return err
}

// plan parses the schedule of a job that was created at from, or returns what is
// wrong with it, worded for people and models (D-095).
func (s *Scheduler) plan(schedule Schedule, from time.Time) (*plan, error) {
	kinds := 0
	for _, isSet := range []bool{schedule.Every != 0, schedule.Cron != "", !schedule.At.IsZero()} {
		if isSet {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return nil, refuse("either every_seconds, cron_expr, or at is required")
	case kinds > 1:
		return nil, refuse("only one of every_seconds, cron_expr, and at can be used")
	case schedule.Zone != "" && schedule.Cron == "":
		return nil, refuse("tz can only be used with cron_expr")
	}
	zone, err := s.loadZone(schedule.Zone)
	if err != nil {
		return nil, err
	}
	p := &plan{Schedule: schedule, from: from, zone: zone}
	if schedule.Cron == "" {
		return p, nil
	}
	if p.spec, p.anyHour, err = parseSpec(schedule.Cron); err != nil {
		return nil, &Refusal{
			text: fmt.Sprintf("invalid cron_expr '%s': %v", schedule.Cron, err),
			say:  func(say texts.Refusals) string { return say.UnknownFields.With(schedule.Cron) },
		}
	}
	return p, nil
}

// checkPlan returns what is wrong with the schedule of a job that is to begin now.
func (s *Scheduler) checkPlan(p *plan, now time.Time) error {
	switch {
	case p.Every != 0 && p.Every < s.MinInterval:
		return tooOften(s.MinInterval, fmt.Sprintf("every_seconds must be at least %d", s.MinInterval/time.Second))
	case !p.At.IsZero() && !p.At.After(now):
		return &Refusal{
			text: fmt.Sprintf("at is in the past: it is %s now", now.In(p.zone).Format("2006-01-02T15:04:05")),
			say:  func(say texts.Refusals) string { return say.Past },
		}
	case p.spec == nil || s.MinInterval <= time.Minute:
		return nil
	}
	due := p.next(now)
	for range 60 { // a full hour, wherever in it the job begins
		following := p.next(due)
		if following.Sub(due) < s.MinInterval && !following.IsZero() {
			return tooOften(s.MinInterval, fmt.Sprintf("cron_expr '%s' is due more often than every %d seconds",
				p.Cron, s.MinInterval/time.Second))
		}
		due = following
	}
	return nil
}

// tooOften refuses a schedule with a shorter interval than least; text is the wording for models.
func tooOften(least time.Duration, text string) error {
	return &Refusal{
		text: text,
		say:  func(say texts.Refusals) string { return say.TooOften.With(least / time.Second) },
	}
}

// Due yields the times up to until at which j is due. exact is false for a time that the
// clock does not show, because clocks go forward over it: then it is due right after.
func (s *Scheduler) Due(j Job, until time.Time) iter.Seq2[time.Time, bool] {
	return func(yield func(due time.Time, exact bool) bool) {
		p, err := s.plan(j.Schedule, j.Created)
		if err != nil || j.Off {
			return
		}
		for t := j.Next; !t.IsZero() && !t.After(until); t = p.next(t) {
			if t = t.In(p.zone); !yield(t, p.showsOnClock(t)) {
				return
			}
		}
	}
}

// showsOnClock reports whether the clock shows at t what the schedule asks for.
func (p *plan) showsOnClock(t time.Time) bool {
	if p.spec == nil || p.anyHour {
		return true
	}
	_, offset := t.Zone()
	wall := t.UTC().Add(seconds(offset))
	return p.spec.Next(wall.Add(-time.Second)).Equal(wall)
}

// NextTimes returns the next times at which j is due, at most n, in the zone of its
// schedule.
func (s *Scheduler) NextTimes(j Job, n int) (times []time.Time) {
	p, err := s.plan(j.Schedule, j.Created)
	if err != nil || j.Off {
		return nil
	}
	for t := j.Next; !t.IsZero() && len(times) < n; t = p.next(t) {
		times = append(times, t.In(p.zone))
	}
	return times
}

// Preview returns the first n times at which a job with this schedule would be due if
// it were added now, or why there can be no such job.
func (s *Scheduler) Preview(schedule Schedule, n int) ([]time.Time, error) {
	now := s.now()
	j := Job{Schedule: schedule, Text: "preview", Created: now.Truncate(time.Second)}
	if err := s.checkAndSchedule(&j, now); err != nil {
		return nil, err
	}
	return s.NextTimes(j, n), nil
}

// loadZone returns the time zone with this name. Zones that were loaded are kept.
func (s *Scheduler) loadZone(name string) (*time.Location, error) {
	if name == "" {
		return s.Zone, nil
	}
	if zone, ok := s.zones.Load(name); ok {
		return zone.(*time.Location), nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil {
		return nil, &Refusal{
			text: fmt.Sprintf("unknown timezone '%s'", name),
			say:  func(say texts.Refusals) string { return say.UnknownZone.With(name) },
		}
	}
	s.zones.Store(name, zone)
	return zone, nil
}
