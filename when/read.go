package when

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"parley/lazyregexp"
)

var weekdays = map[string]int{
	"sunday": 0, "monday": 1, "tuesday": 2, "wednesday": 3, "thursday": 4, "friday": 5, "saturday": 6,
	"sun": 0, "mon": 1, "tue": 2, "tues": 2, "wed": 3, "thu": 4, "thur": 4, "thurs": 4, "fri": 5, "sat": 6,
}

// daySets are several days of the week; the plural says that they are those of every week.
var daySets = map[string][]int{
	"weekday": {1, 2, 3, 4, 5}, "workday": {1, 2, 3, 4, 5}, "weekend": {0, 6},
}

var months = map[string]int{
	"january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8,
	"september": 9, "october": 10, "november": 11, "december": 12,
	"jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sep": 9, "sept": 9, "oct": 10,
	"nov": 11, "dec": 12,
}

var units = map[string]string{
	"s": "second", "sec": "second", "m": "minute", "min": "minute", "h": "hour", "hr": "hour",
	"second": "second", "minute": "minute", "hour": "hour", "day": "day", "week": "week", "month": "month",
	"year": "year",
}

var numbers = map[string]int{
	"a": 1, "an": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8,
	"nine": 9, "ten": 10, "eleven": 11, "twelve": 12, "fifteen": 15, "twenty": 20, "thirty": 30, "forty": 40,
	"sixty": 60, "ninety": 90,
}

// dayParts are the times of day that words stand for. Nobody knows when the afternoon is.
var dayParts = map[string]clock{"morning": {9, 0}, "evening": {18, 0}, "afternoon": {-1, 0}}

var namedClocks = map[string]clock{"noon": {12, 0}, "midday": {12, 0}, "midnight": {0, 0}}

var (
	ordinalForm = lazyregexp.New(`^(\d{1,2})(?:st|nd|rd|th)$`)
	clockForm   = lazyregexp.New(`^(\d{1,2})(?:[:.](\d\d))?(am|pm)?$`)
	dateForm    = lazyregexp.New(`^(\d{4})-(\d\d)-(\d\d)(?:t(\d\d:\d\d)(?::00)?)?$`)
	dottedForm  = lazyregexp.New(`^(\d{1,2})\.(\d{1,2})\.(\d{4})$`)
	slashForm   = lazyregexp.New(`^\d{1,4}/\d{1,2}(?:/\d{1,4})?$`)
	spanForm    = lazyregexp.New(`^(\d+)(s|secs?|m|mins?|h|hrs?|hours?|minutes?|seconds?|days?|weeks?)$`)
	daysForm    = lazyregexp.New(`^([a-z]+)-([a-z]+)$`)
)

// unit returns the unit that a word names, or "".
func unit(word string) string {
	if u, ok := units[word]; ok {
		return u
	}
	return units[strings.TrimSuffix(word, "s")]
}

// number returns the number that a word is.
func number(word string) (int, bool) {
	if n, ok := numbers[word]; ok {
		return n, true
	}
	n, err := strconv.Atoi(word)
	return n, err == nil && n >= 0 && n <= 1_000_000
}

// readDay reads a day, a date or a time of day.
func (r *reader) readDay() error {
	w := r.peek()
	if days, ok := r.weekdays(); ok {
		return r.addDays(days)
	}
	if _, ok := dayParts[w]; ok {
		r.next()
		if r.part != "" {
			return twice("part of the day")
		}
		r.part = w
		return nil
	}
	if ok, err := r.date(); ok {
		return err
	}
	switch w {
	case "today":
		r.next()
		return r.setOffset(1)
	case "tomorrow":
		r.next()
		return r.setOffset(2)
	case "day":
		if len(r.words) >= 3 && r.words[1] == "after" && r.words[2] == "tomorrow" {
			r.words = r.words[3:]
			return r.setOffset(3)
		}
	}
	if slashForm.MatchString(w) {
		return ambiguous(fmt.Sprintf("%q can be two days", w), `the name of the month, as in "24 december at 18:00"`)
	}
	_, plain := number(w)
	named := len(r.words) > 1 && slices.Contains([]string{"am", "pm", "a.m", "p.m", "o'clock", "oclock"}, r.words[1])
	if plain && !named && len(r.words) > 1 && isMisspelt(r.words[1]) {
		return notUnderstood(r.words[1])
	}
	if plain && !named {
		return notUnderstood(w) // "9" may be anything unless "at" says that it is an hour
	}
	return r.readTimes()
}

// isMisspelt reports whether a word after a number is none that can stand there: in
// "every 5 minuts" the number is not what is wrong.
func isMisspelt(w string) bool {
	singular := strings.TrimSuffix(w, "s")
	_, isDay := weekdays[singular]
	_, isSet := daySets[singular]
	_, isPart := dayParts[singular]
	_, isDate := months[w]
	leads := slices.Contains([]string{
		"and", "the", "from", "to", "until", "till", "every", "each", "today", "tomorrow", "past", "half", "quarter",
	}, w)
	return len(w) > 2 && strings.Trim(w, "abcdefghijklmnopqrstuvwxyz") == "" && unit(w) == "" &&
		!isDay && !isSet && !isPart && !isDate && !leads
}

func twice(what string) error { return errors.New("that names more than one " + what) }

func (r *reader) setOffset(n int) error {
	if r.offset != 0 {
		return twice("day")
	}
	r.offset = n
	return nil
}

func (r *reader) addDays(days []int) error {
	for {
		for _, day := range days {
			if !slices.Contains(r.days, day) {
				r.days = append(r.days, day)
			}
		}
		more, ok := joined(r, (*reader).weekdays)
		if !ok {
			slices.Sort(r.days)
			return nil
		}
		days = more
	}
}

// weekdays takes the next words if they name days of the week.
func (r *reader) weekdays() (days []int, ok bool) {
	w := r.peek()
	if set, ok := daySets[strings.TrimSuffix(w, "s")]; ok {
		r.next()
		r.repeats = r.repeats || strings.HasSuffix(w, "s")
		return set, true
	}
	if m := daysForm.FindStringSubmatch(w); m != nil {
		from, ok := weekdays[m[1]]
		to, ok2 := weekdays[m[2]]
		if ok && ok2 {
			r.next()
			r.repeats = true
			return dayRange(from, to), true
		}
		return nil, false
	}
	from, plural, ok := r.weekday()
	if !ok {
		return nil, false
	}
	r.repeats = r.repeats || plural
	saved := r.words
	if r.skip("to", "through", "until", "till", "-") {
		if to, _, ok := r.weekday(); ok {
			r.repeats = true
			return dayRange(from, to), true
		}
		r.words = saved
	}
	return []int{from}, true
}

// dayRange returns the days of the week between two.
func dayRange(from, to int) []int {
	days := []int{from}
	for day := from; day != to; {
		day = (day + 1) % 7
		days = append(days, day)
	}
	return days
}

// weekday takes the next word if it is a day of the week.
func (r *reader) weekday() (day int, plural, ok bool) {
	w := r.peek()
	if day, ok = weekdays[w]; !ok {
		day, ok = weekdays[strings.TrimSuffix(w, "s")]
		plural = ok
	}
	if ok {
		r.next()
	}
	return day, plural, ok
}

// date reads a day of the month or of a year. ok says that the next word is one.
func (r *reader) date() (ok bool, err error) {
	w := r.peek()
	if m := dateForm.FindStringSubmatch(w); m != nil {
		r.next()
		return true, r.readISO(m)
	}
	if m := dottedForm.FindStringSubmatch(w); m != nil {
		r.next()
		return true, errors.Join(r.setDate(atoi(m[1])), r.setMonth(atoi(m[2]), atoi(m[3])))
	}
	if month, ok := months[w]; ok {
		r.next()
		if day, ok := r.dayOfMonth(); ok {
			err = r.setDate(day)
		}
		return true, errors.Join(err, r.setMonth(month, r.yearHere()))
	}
	if !ordinalForm.MatchString(w) && (len(r.words) < 2 || months[r.words[1]] == 0) {
		return false, nil
	}
	day, ok := r.dayOfMonth()
	for ok && err == nil {
		err = r.setDate(day)
		day, ok = joined(r, (*reader).dayOfMonth)
	}
	r.skip("of")
	switch month, named := months[r.peek()]; {
	case err != nil:
	case named:
		r.next()
		err = r.setMonth(month, r.yearHere())
	case slices.Contains([]string{"each", "every", "the", "a"}, r.peek()) && len(r.words) > 1 && r.words[1] == "month":
		err = r.readMonthOf()
	}
	return true, err
}

// readISO reads the parts of a date such as 2026-12-24T18:00.
func (r *reader) readISO(m []string) error {
	err := errors.Join(r.setDate(atoi(m[3])), r.setMonth(atoi(m[2]), atoi(m[1])))
	if m[4] == "" {
		return err
	}
	hour, minute, _ := strings.Cut(m[4], ":")
	c := clock{atoi(hour), atoi(minute)}
	if c.hour > 23 || c.minute > 59 {
		return notAClock(m[4])
	}
	r.times = append(r.times, c)
	return err
}

// dayOfMonth takes the next word if it is an ordinal, or a number beside a month.
func (r *reader) dayOfMonth() (int, bool) {
	saved := r.words
	r.skip("the")
	w := r.next()
	if m := ordinalForm.FindStringSubmatch(w); m != nil {
		return atoi(m[1]), true
	}
	n, err := strconv.Atoi(w)
	if err == nil && n >= 1 && n <= 31 && !slices.Contains([]string{"am", "pm"}, r.peek()) {
		return n, true
	}
	r.words = saved
	return 0, false
}

// yearHere takes the next word if it is a year; else it returns 0.
func (r *reader) yearHere() int {
	if n, err := strconv.Atoi(r.peek()); err == nil && n >= 1000 && n <= 9999 {
		r.next()
		return n
	}
	return 0
}

func (r *reader) setDate(day int) error {
	if day < 1 || day > 31 {
		return fmt.Errorf("no month has a day %d", day)
	}
	if !slices.Contains(r.dates, day) {
		r.dates = append(r.dates, day)
		slices.Sort(r.dates)
	}
	return nil
}

func (r *reader) setMonth(month, year int) error {
	switch {
	case month < 1 || month > 12:
		return fmt.Errorf("there is no month %d", month)
	case r.month != 0:
		return twice("month")
	}
	r.month = month
	r.year = year
	return nil
}

func atoi(digits string) int {
	n, _ := strconv.Atoi(digits)
	return n
}

func notAClock(text string) error { return fmt.Errorf("%q is not a time of day", text) }

// readTimes reads times of day.
func (r *reader) readTimes() error {
	if _, ok := daySets[strings.TrimSuffix(r.peek(), "s")]; ok { // "at weekends"
		return r.readDay()
	}
	c, ok := r.clock()
	if !ok && r.fault == nil {
		return notUnderstood(r.peek())
	}
	for ok {
		if !slices.Contains(r.times, c) {
			r.times = append(r.times, c)
		}
		c, ok = joined(r, (*reader).clock)
	}
	return r.fault
}

// clock takes the next words if they are a time of day.
func (r *reader) clock() (clock, bool) {
	w := r.peek()
	if c, ok := namedClocks[w]; ok {
		r.next()
		return c, true
	}
	if w == "half" || w == "quarter" {
		return r.clockInWords()
	}
	m := clockForm.FindStringSubmatch(w)
	if m == nil {
		return clock{}, false
	}
	saved := r.words
	r.next()
	half := m[3]
	if half == "" && slices.Contains([]string{"am", "pm", "a.m", "p.m"}, r.peek()) {
		half = strings.ReplaceAll(r.next(), ".", "")
	}
	r.skip("o'clock", "oclock")
	c := clock{atoi(m[1]), atoi(m[2])}
	switch {
	case c.hour > 23 || c.minute > 59 || half != "" && (c.hour < 1 || c.hour > 12):
		r.fault = notAClock(w + strings.TrimPrefix(half, m[3]))
		r.words = saved
		return c, false
	case half == "pm":
		c.hour = c.hour%12 + 12
	case half == "am":
		c.hour %= 12
	}
	return c, true
}

// clockInWords takes "half past nine" and "quarter to nine".
func (r *reader) clockInWords() (clock, bool) {
	saved := r.words
	minutes := map[string]int{"half": 30, "quarter": 15}[r.next()]
	before := minutes == 15 && r.skip("to")
	if before || r.skip("past") {
		if hour, ok := number(r.peek()); ok && hour <= 23 {
			r.next()
			if before {
				return clock{(hour + 23) % 24, 45}, true
			}
			return clock{hour, minutes}, true
		}
	}
	r.words = saved
	return clock{}, false
}
