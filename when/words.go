package when

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Words says in plain words when a job with this schedule is due, so that Parse reads
// them. A cron spec that has no such words is returned as it is.
func Words(s Schedule) string {
	switch {
	case s.Every > 0:
		return "every " + spanWords(s.Every)
	case s.Cron != "":
		return cronWords(s.Cron)
	}
	for _, layout := range []string{clockLayout, time.RFC3339} {
		if t, err := time.Parse(layout, s.At); err == nil {
			return t.Format("2 January 2006 at 15:04")
		}
	}
	return s.At
}

// spanWords returns a span in the largest unit that divides it.
func spanWords(d time.Duration) string {
	for _, u := range []string{"week", "day", "hour", "minute"} {
		if one := (span{1, u}).duration(); d%one == 0 {
			return span{int(d / one), u}.String()
		}
	}
	return span{int(d / time.Second), "second"}.String()
}

// cronWords returns a cron spec in words, or as it is.
func cronWords(spec string) string {
	fields := strings.Fields(spec)
	if len(fields) != 5 {
		return spec
	}
	days, ok := daysWords(fields[2], fields[3], fields[4])
	if !ok {
		return spec
	}
	minutes, ok1 := numbersOf(fields[0], 0, 59)
	hours, ok2 := numbersOf(fields[1], 0, 23)
	if !ok1 || !ok2 || len(minutes) != 1 {
		return spec
	}
	var clocks []string
	for _, hour := range hours {
		clocks = append(clocks, clock{hour, minutes[0]}.String())
	}
	return days + " at " + joinWords(clocks)
}

// daysWords says on which days a job is due.
func daysWords(dates, month, weekdays string) (string, bool) {
	onDates, ok1 := numbersOf(dates, 1, 31)
	inMonth, ok2 := numbersOf(month, 1, 12)
	switch {
	case dates == "*" && month == "*":
		return weekdaysWords(weekdays)
	case weekdays != "*" || !ok1:
		return "", false
	case ok2 && len(inMonth) == 1 && len(onDates) == 1:
		return fmt.Sprintf("every %d %v", onDates[0], time.Month(inMonth[0])), true
	case month != "*":
		return "", false
	}
	var ordinals []string
	for _, n := range onDates {
		ordinals = append(ordinals, ordinal(n))
	}
	return "on the " + joinWords(ordinals) + " of each month", true
}

func weekdaysWords(field string) (string, bool) {
	switch field {
	case "*", "0-6", "1-7":
		return "every day", true
	case "1-5":
		return "every weekday", true
	case "0,6", "6,0", "6,7", "6-7":
		return "every weekend", true
	}
	days, ok := numbersOf(field, 0, 7)
	if !ok {
		return "", false
	}
	for i, day := range days {
		days[i] = day % 7
	}
	slices.SortFunc(days, func(a, b int) int { return (a+6)%7 - (b+6)%7 }) // from Monday on
	var names []string
	for _, day := range slices.Compact(days) {
		names = append(names, strings.ToLower(time.Weekday(day).String()))
	}
	return "every " + joinWords(names), true
}

// numbersOf returns the numbers of a field of a cron spec that lists them.
func numbersOf(field string, least, most int) (all []int, ok bool) {
	for part := range strings.SplitSeq(field, ",") {
		n, err := strconv.Atoi(part)
		if err != nil || n < least || n > most || part[0] == '+' || part[0] == '-' {
			return nil, false
		}
		all = append(all, n)
	}
	return all, true
}

func ordinal(n int) string {
	ending := "th"
	if n < 11 || n > 13 {
		switch n % 10 {
		case 1:
			ending = "st"
		case 2:
			ending = "nd"
		case 3:
			ending = "rd"
		}
	}
	return strconv.Itoa(n) + ending
}

// joinWords returns "a, b and c".
func joinWords(all []string) string {
	last := len(all) - 1
	if last < 1 {
		return strings.Join(all, "")
	}
	return strings.Join(all[:last], ", ") + " and " + all[last]
}
