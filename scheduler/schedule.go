package scheduler

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"parley/texts"
)

// A Schedule says when a job is due: one of Every, Cron and At is set.
type Schedule struct {
	Every time.Duration `json:"every,omitempty"` // counted from when the job was made
	Cron  string        `json:"cron,omitempty"`  // five fields, or "@daily" and the like
	At    time.Time     `json:"at,omitzero"`     // once
	Zone  string        `json:"zone,omitempty"`  // of Cron, such as "Europe/Berlin"; "" is the house's
}

// String says the schedule as people do: "every 1h", "0 9 * * * (Europe/Berlin)", "at 2026-12-24 18:00".
func (s Schedule) String() string {
	switch {
	case s.Every > 0:
		return "every " + strings.NewReplacer("h0m0s", "h", "m0s", "m").Replace(s.Every.String())
	case !s.At.IsZero():
		return "at " + minute(s.At)
	case s.Zone != "":
		return s.Cron + " (" + s.Zone + ")"
	}
	return s.Cron
}

func minute(t time.Time) string { return t.Format("2006-01-02 15:04") }

// ParseAt reads a time in ISO 8601 and returns it in zone, of which it is if it
// names none. Errors are for people and models (D-095).
func ParseAt(text string, zone *time.Location) (time.Time, error) {
	text = strings.TrimSpace(text)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return t.In(zone), nil
	}
	for _, layout := range []string{"2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly} {
		if wall, err := time.Parse(layout, text); err == nil {
			return instant(wall, zone), nil
		}
	}
	return time.Time{}, refuse("invalid ISO datetime format '%s'. Expected format: YYYY-MM-DDTHH:MM:SS", text)
}

// A plan is a Schedule that is ready to be asked.
type plan struct {
	Schedule
	from time.Time          // what Every counts from
	spec *cron.SpecSchedule // of Cron
	wild bool               // Cron is due whatever the hour, or every few hours
	zone *time.Location
}

// next returns when the schedule is due for the first time after t, or zero.
func (p *plan) next(t time.Time) (next time.Time) {
	switch {
	case p.Every > 0: // the same times on both sides of from: a clock may go back behind it
		next = p.from.Add(t.Sub(p.from) / p.Every * p.Every)
		if !next.After(t) {
			next = next.Add(p.Every)
		}
	case p.At.After(t):
		next = p.At
	case p.wild:
		next = p.nextWild(t)
	case p.spec != nil:
		next = p.nextFixed(t)
	}
	if !next.IsZero() {
		next = next.In(p.zone)
	}
	return next
}

// nextFixed is next of a spec that names hours. It is asked for times on the
// clock's face: one that the clock passes over is due right after, and of one
// that comes twice the first is due (P13).
func (p *plan) nextFixed(t time.Time) time.Time {
	_, shift := t.In(p.zone).Zone()
	for wall := p.spec.Next(t.UTC().Add(seconds(shift))); !wall.IsZero(); wall = p.spec.Next(wall) {
		if due := instant(wall, p.zone); due.After(t) {
			return due
		}
	}
	return time.Time{}
}

// nextWild is next of a spec for any hour: it is due whenever the clock's face
// fits, so every five minutes goes on while the clock is changed.
func (p *plan) nextWild(t time.Time) time.Time {
	for stretch := t.In(p.zone); ; {
		_, shift := stretch.Zone()
		_, end := stretch.ZoneBounds()
		wall := p.spec.Next(t.UTC().Add(seconds(shift)))
		if wall.IsZero() {
			return wall
		}
		if due := wall.Add(-seconds(shift)); end.IsZero() || due.Before(end) {
			return due
		}
		stretch, t = end, end.Add(-1)
	}
}

// instant returns when clocks of zone show wall, for the first time or, if they
// pass over it, right after.
func instant(wall time.Time, zone *time.Location) time.Time {
	stretch := wall.Add(-26 * time.Hour).In(zone) // of time with one offset
	for {
		_, shift := stretch.Zone()
		begin, end := stretch.ZoneBounds()
		t := wall.Add(-seconds(shift)).In(zone)
		if t.Before(begin) {
			return begin
		} else if end.IsZero() || t.Before(end) {
			return t
		}
		stretch = end
	}
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }

// passed returns how often the schedule was due from first to now, and the last
// two of these times. Of very many it counts only a part.
func (p *plan) passed(first, now time.Time) (n int, before, last time.Time) {
	for t := first; !t.IsZero() && !t.After(now); t = p.next(t) {
		n, before, last = n+1, last, t
		if recent := now.Add(-catchUp); n == many && recent.After(t) {
			t = recent
		}
	}
	return n, before, last
}

// astray says whether next, in the future, is not to be waited for: the house has
// another zone since it was reckoned, or the clock was put back, past more than
// one time that the schedule is due. What is repeated by then is better than a
// job that stands still (P23).
func (p *plan) astray(next, now time.Time) bool {
	one := p.next(now)
	if one.IsZero() {
		return false
	}
	two := p.next(one)
	return !two.IsZero() && next.After(two) || next.After(now) && !p.next(next.Add(-1)).Equal(next)
}

// many times that were missed are not counted one by one.
const many = 1000

// parse reads a cron spec (D-094), and says whether it is wild.
func parse(text string) (spec *cron.SpecSchedule, wild bool, err error) {
	switch {
	case len(text) > 200:
		return nil, false, errors.New("it is too long")
	case strings.Contains(text, "="):
		return nil, false, errors.New("the time zone goes into tz")
	}
	fields := strings.Fields(text)
	if len(fields) == 5 {
		fields[4] = sundays(fields[4])
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
	return spec, fields[0] == "@hourly" || len(fields) == 5 && strings.ContainsAny(fields[1], "*?"), nil
}

// sundays makes 0 of each 7 in the field of weekdays, as crontab takes it, which
// the parser does not.
func sundays(field string) string {
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

// Valid says what is wrong with text as the five fields of a cron schedule.
func Valid(text string) error {
	_, _, err := parse(text)
	return err
}

// plan makes the schedule of a job made at from ready, or says what is wrong
// with it, in words for people and models (D-095).
func (s *Scheduler) plan(sch Schedule, from time.Time) (*plan, error) {
	kinds := 0
	for _, is := range []bool{sch.Every != 0, sch.Cron != "", !sch.At.IsZero()} {
		if is {
			kinds++
		}
	}
	switch {
	case kinds == 0:
		return nil, refuse("either every_seconds, cron_expr, or at is required")
	case kinds > 1:
		return nil, refuse("only one of every_seconds, cron_expr, and at can be used")
	case sch.Zone != "" && sch.Cron == "":
		return nil, refuse("tz can only be used with cron_expr")
	}
	zone, err := s.zone(sch.Zone)
	if err != nil {
		return nil, err
	}
	p := &plan{Schedule: sch, from: from, zone: zone}
	if sch.Cron != "" {
		if p.spec, p.wild, err = parse(sch.Cron); err != nil {
			return nil, &Refusal{fmt.Sprintf("invalid cron_expr '%s': %v", sch.Cron, err), func(say texts.Refusals) string { return say.UnknownFields.With(sch.Cron) }}
		}
	}
	return p, nil
}

// fits says what is wrong with the schedule of a job that is to begin now.
func (s *Scheduler) fits(p *plan, now time.Time) error {
	switch {
	case p.Every != 0 && p.Every < s.Least:
		return s.tooOften(fmt.Sprintf("every_seconds must be at least %d", s.Least/time.Second))
	case !p.At.IsZero() && !p.At.After(now):
		return &Refusal{fmt.Sprintf("at is in the past: it is %s now", now.In(p.zone).Format("2006-01-02T15:04:05")), func(say texts.Refusals) string { return say.Past }}
	case p.spec == nil || s.Least <= time.Minute:
		return nil
	}
	for one, i := p.next(now), 0; i < 60; i++ { // the hour may begin anywhere among them
		two := p.next(one)
		if two.Sub(one) < s.Least && !two.IsZero() {
			return s.tooOften(fmt.Sprintf("cron_expr '%s' is due more often than every %d seconds", p.Cron, s.Least/time.Second))
		}
		one = two
	}
	return nil
}

// tooOften refuses a schedule, with text for models.
func (s *Scheduler) tooOften(text string) error {
	return &Refusal{text, func(say texts.Refusals) string { return say.TooOften.With(s.Least / time.Second) }}
}

// Soon returns when j is due next, at most n times, in the zone of its schedule.
func (s *Scheduler) Soon(j Job, n int) (times []time.Time) {
	p, err := s.plan(j.Schedule, j.Created)
	for t := j.Next; err == nil && !j.Off && !t.IsZero() && len(times) < n; t = p.next(t) {
		times = append(times, t.In(p.zone))
	}
	return times
}

// zone returns the zone of that name. A name that was looked up is remembered.
func (s *Scheduler) zone(name string) (*time.Location, error) {
	if name == "" {
		return s.Zone, nil
	}
	if z, ok := s.zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := time.LoadLocation(name)
	if err != nil {
		return nil, &Refusal{fmt.Sprintf("unknown timezone '%s'", name), func(say texts.Refusals) string { return say.UnknownZone.With(name) }}
	}
	s.zones.Store(name, z)
	return z, nil
}
