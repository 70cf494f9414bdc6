package when

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	maxSpan  = 366 * 24 * time.Hour      // between two runs
	maxDelay = 10 * 366 * 24 * time.Hour // of a job that runs once
)

// schedule makes a schedule of what was read.
func (r *reader) schedule(now time.Time) (Schedule, error) {
	times, err := r.clocks()
	switch {
	case r.fault != nil:
		return Schedule{}, r.fault
	case err != nil:
		return Schedule{}, err
	case r.delay != nil:
		return r.delayed(now, times)
	case r.repeats:
		return r.recurring(times)
	}
	return r.once(now, times)
}

// clocks returns the times of day, in the part of the day that was named.
func (r *reader) clocks() ([]clock, error) {
	usual, named := dayParts[r.part]
	if !named {
		return r.times, nil
	}
	if len(r.times) == 0 && usual.hour < 0 {
		return nil, ambiguous(fmt.Sprintf("%q does not say when", r.part), `a time, such as "tomorrow at 15:00"`)
	}
	if len(r.times) == 0 {
		return []clock{usual}, nil
	}
	var times []clock
	for _, c := range r.times {
		if r.part != "morning" && c.hour < 12 {
			c.hour += 12
		}
		if r.part == "morning" && c.hour >= 12 {
			return nil, fmt.Errorf("%v is not in the morning", c)
		}
		times = append(times, c)
	}
	return times, nil
}

// delayed is a job that runs once, some time from now.
func (r *reader) delayed(now time.Time, times []clock) (Schedule, error) {
	d := r.delay
	byDay := d.unit == "day" || d.unit == "week"
	switch {
	case r.repeats || r.offset != 0 || len(r.days)+len(r.dates) > 0 || r.month != 0 || r.from != nil:
		return Schedule{}, fmt.Errorf("in %v, and another day besides: write one of them", d)
	case d.n < 1 || d.duration() > maxDelay:
		return Schedule{}, fmt.Errorf("in %v is not a time that a job can have", d)
	case len(times) > 1 || len(times) == 1 && !byDay:
		return Schedule{}, fmt.Errorf(`in %v, and at %v: write one of them`, d, times[0])
	case !byDay:
		due := now.Add(d.duration() + time.Second - 1).Truncate(time.Second)
		return Schedule{At: due.Format(time.RFC3339)}, nil
	}
	days := d.n
	if d.unit == "week" {
		days *= 7
	}
	c := clock{now.Hour(), now.Minute()}
	if len(times) == 1 {
		c = times[0]
	}
	return Schedule{At: atClock(now, days, c).Format(clockLayout)}, nil
}

// atClock returns a time some days after now, on the clock of people. It is in no zone:
// the scheduler knows what the clock shows then.
func atClock(now time.Time, days int, c clock) time.Time {
	return time.Date(now.Year(), now.Month(), now.Day()+days, c.hour, c.minute, 0, 0, time.UTC)
}

// onClock returns what the clock shows at t, in no zone.
func onClock(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// recurring is a job that runs again and again.
func (r *reader) recurring(times []clock) (Schedule, error) {
	e := span{}
	if r.every != nil {
		e = *r.every
	}
	short := e.unit == "second" || e.unit == "minute" || e.unit == "hour"
	switch {
	case r.offset != 0 || r.year != 0:
		return Schedule{}, errors.New("once, or again and again? Write one of them: " + suggestion())
	case r.from != nil && e.unit != "hour":
		return Schedule{}, errors.New(`hours between two others: write "every 2 hours from 9 to 17"`)
	case short && (len(times) > 0 || len(r.dates) > 0 || r.month != 0):
		what := fmt.Sprintf("every %v, and at a time besides", e)
		return Schedule{}, ambiguous(what, `"every hour from 9 to 17", or the time alone`)
	case short && (r.from != nil || len(r.days) > 0):
		return r.withinDays(e)
	case short || e.n > 1 && (e.unit == "day" || e.unit == "week"):
		return r.interval(e, times)
	case e.unit == "week" && len(r.days) == 0 && len(r.dates) == 0 && len(times) == 0:
		return r.interval(e, times)
	}
	return r.calendar(e, times)
}

// interval is a job that runs every so often, whatever the clock shows.
func (r *reader) interval(e span, times []clock) (Schedule, error) {
	switch {
	case e.n < 1 || e.duration() > maxSpan:
		return Schedule{}, fmt.Errorf("every %v is not a time that a job can have", e)
	case len(times) > 0 || len(r.days) > 0 || len(r.dates) > 0 || r.month != 0:
		const text = `every %v begins when the job is made, and has no time of day or day of its own; ` +
			`write "every %[1]v", or days, as in "every monday and thursday at 9"`
		return Schedule{}, fmt.Errorf(text, e)
	}
	return Schedule{Every: e.duration()}, nil
}

// withinDays is a job that runs every so often on some days, or between two hours.
func (r *reader) withinDays(e span) (Schedule, error) {
	steps := map[string]int{"minute": 60, "hour": 24}[e.unit]
	if steps == 0 || e.n < 1 || e.n >= steps || steps%e.n != 0 && r.from == nil {
		return Schedule{}, fmt.Errorf("every %v does not divide the day into equal parts; %s", e, suggestion())
	}
	step := "*"
	if e.n > 1 {
		step = "*/" + strconv.Itoa(e.n)
	}
	days := cronList(r.days, "*")
	if e.unit == "minute" {
		return Schedule{Cron: step + " * * * " + days}, nil
	}
	if r.from != nil {
		step = strings.Replace(step, "*", fmt.Sprintf("%d-%d", r.from.hour, r.to.hour), 1)
	}
	return Schedule{Cron: "0 " + step + " * * " + days}, nil
}

// calendar is a job that runs at times of day, on days of the week, month or year.
func (r *reader) calendar(e span, times []clock) (Schedule, error) {
	byMonth := len(r.dates) > 0
	month := "*"
	switch {
	case e.n > 1:
		return Schedule{}, fmt.Errorf("every %v is not a time that jobs have; %s", e, suggestion())
	case len(r.days) > 0 && (byMonth || r.month != 0):
		return Schedule{}, errors.New("a day of the week and a date: write one of them")
	case len(r.days) > 0 && (e.unit == "day" || e.unit == "month" || e.unit == "year"):
		return Schedule{}, fmt.Errorf("every %v, and on some days of the week: write one of them", e)
	case byMonth && (e.unit == "day" || e.unit == "week"):
		return Schedule{}, fmt.Errorf("every %v, and on a date: write one of them", e)
	case r.month != 0 && (!byMonth || e.unit == "month"), e.unit == "year" && r.month == 0:
		return Schedule{}, errors.New(`on which day? Write, for example: every year on 24 december at 18:00`)
	case e.unit == "month" && !byMonth:
		return Schedule{}, errors.New(`on which day of the month? Write, for example: on the 1st of each month at 8`)
	case e.unit == "week" && len(r.days) == 0:
		return Schedule{}, errors.New(`on which day? Write, for example: every monday at 9`)
	case r.month != 0:
		month = strconv.Itoa(r.month)
		last := time.Date(2028, time.Month(r.month)+1, 0, 0, 0, 0, 0, time.UTC).Day() // of a leap year
		if r.dates[len(r.dates)-1] > last {
			return Schedule{}, fmt.Errorf("%s has %d days", time.Month(r.month), last)
		}
	}
	minute, hours, err := cronClocks(times)
	if err != nil {
		return Schedule{}, err
	}
	fields := []string{minute, hours, cronList(r.dates, "*"), month, cronList(r.days, "*")}
	return Schedule{Cron: strings.Join(fields, " ")}, nil
}

// cronClocks returns the first two fields of a cron spec.
func cronClocks(times []clock) (minute, hours string, err error) {
	if len(times) == 0 {
		return "", "", errors.New(`at what time? Add it, as in "every day at 9" or "every monday at 18:30"`)
	}
	var all []int
	for _, c := range times {
		if c.minute != times[0].minute {
			return "", "", fmt.Errorf("%v and %v are two jobs: make one for each", times[0], c)
		}
		if !slices.Contains(all, c.hour) {
			all = append(all, c.hour)
		}
	}
	slices.Sort(all)
	return strconv.Itoa(times[0].minute), cronList(all, "*"), nil
}

// cronList returns a field of a cron spec: sorted numbers, or what stands for all.
func cronList(numbers []int, all string) string {
	switch {
	case len(numbers) == 0 || len(numbers) == 7 && numbers[0] == 0 && numbers[6] == 6:
		return all
	case slices.Equal(numbers, daySets["weekday"]):
		return "1-5"
	}
	var texts []string
	for _, n := range numbers {
		texts = append(texts, strconv.Itoa(n))
	}
	return strings.Join(texts, ",")
}

// once is a job that runs one time.
func (r *reader) once(now time.Time, times []clock) (Schedule, error) {
	kinds := 0
	for _, named := range []bool{r.offset != 0, len(r.days) > 0, len(r.dates) > 0 || r.month != 0} {
		if named {
			kinds++
		}
	}
	switch {
	case kinds > 1:
		return Schedule{}, twice("day")
	case r.from != nil:
		return Schedule{}, errors.New(`how often? Write, for example: every hour from 9 to 17`)
	case len(r.days) > 1:
		return Schedule{}, ambiguous("once, or every week?", `"every monday and friday at 7:15", or one day`)
	case r.month == 0 && len(r.dates) > 0:
		return Schedule{}, ambiguous("of which month?", `"on the 1st of each month at 8", or "on 1 march at 8"`)
	case len(r.dates) > 1:
		return Schedule{}, twice("day")
	case r.month != 0 && len(r.dates) == 0:
		return Schedule{}, errors.New(`on which day of the month? Write, for example: on 24 december at 18:00`)
	case len(times) == 0:
		return Schedule{}, errors.New(`at what time? Add it, as in "tomorrow at 18:30"`)
	case len(times) > 1:
		return Schedule{}, fmt.Errorf("%v and %v are two jobs: make one for each", times[0], times[1])
	}
	due, err := r.day(now, times[0])
	if err != nil {
		return Schedule{}, err
	}
	return Schedule{At: due.Format(clockLayout)}, nil
}

// day returns when a job is due that runs once, at c.
func (r *reader) day(now time.Time, c clock) (time.Time, error) {
	wall := onClock(now)
	switch {
	case r.offset != 0:
		due := atClock(now, r.offset-1, c)
		if !due.After(wall) {
			return due, fmt.Errorf("%v is over today; write \"tomorrow at %[1]v\"", c)
		}
		return due, nil
	case len(r.days) == 1:
		days := (r.days[0] - int(now.Weekday()) + 7) % 7
		if due := atClock(now, days, c); due.After(wall) {
			return due, nil
		}
		return atClock(now, days+7, c), nil
	case r.month == 0:
		if due := atClock(now, 0, c); due.After(wall) {
			return due, nil
		}
		return atClock(now, 1, c), nil
	}
	year := r.year
	for tries := 0; ; tries++ {
		if r.year == 0 {
			year = now.Year() + tries
		}
		due := time.Date(year, time.Month(r.month), r.dates[0], c.hour, c.minute, 0, 0, time.UTC)
		switch {
		case due.Day() == r.dates[0] && due.After(wall):
			return due, nil
		case r.year != 0 && due.Day() != r.dates[0], tries > 8:
			return due, fmt.Errorf("%s has no day %d", time.Month(r.month), r.dates[0])
		case r.year != 0:
			return due, fmt.Errorf("%s is over", due.Format("2 January 2006 at 15:04"))
		}
	}
}
