// Package when reads times that people write in plain words, such as "every weekday at
// 9", and writes schedules in such words.
package when

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// A Schedule is what the words mean, in one of the forms that scheduled jobs have:
// exactly one field is set.
type Schedule struct {
	Every time.Duration
	Cron  string // five fields
	At    string // once: on the clock of people, or with an offset for "in two hours"
}

// Examples are texts that Parse reads.
var Examples = []string{
	"every weekday at 9", "every 2 hours", "tomorrow at 18:30", "on the 1st of each month at 8",
	"every monday and friday at 7:15", "in 20 minutes",
}

// clockLayout is the form of Schedule.At without an offset.
const clockLayout = "2006-01-02T15:04:05"

const maxText = 200 // bytes

// Parse reads text; now is the present time, in the zone of the people. The error says
// what is not understood or could mean two things, and what to write instead.
func Parse(text string, now time.Time) (Schedule, error) {
	if fields := strings.Fields(text); len(text) <= maxText && isCron(fields) {
		return Schedule{Cron: strings.Join(fields, " ")}, nil
	}
	words := wordsOf(text)
	switch {
	case len(text) > maxText:
		return Schedule{}, errors.New("that is too long; " + suggestion())
	case len(words) == 0:
		return Schedule{}, errors.New(suggestion())
	}
	if _, ok := dayParts[words[0]]; ok {
		return Schedule{}, notUnderstood(words[0]) // the "morning" of "good morning every day" says nothing
	}
	r := reader{words: words}
	for len(r.words) > 0 {
		if err := r.readPart(); err != nil {
			return Schedule{}, err
		}
	}
	return r.schedule(now)
}

// suggestion says what can be written.
func suggestion() string { return "write, for example: " + strings.Join(Examples, "; ") }

// isCron reports whether fields are those of a cron spec, which means itself.
func isCron(fields []string) bool {
	if len(fields) == 1 {
		return slices.Contains([]string{"@hourly", "@daily", "@weekly", "@monthly", "@yearly"}, fields[0])
	}
	if len(fields) != 5 {
		return false
	}
	for i, f := range fields {
		named := i >= 3 && strings.IndexFunc(f, func(c rune) bool { return !isLetter(c) && c != '-' && c != ',' }) < 0
		if !named && strings.Trim(f, "0123456789*/,-") != "" {
			return false
		}
	}
	return true
}

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// wordsOf splits a text into words, in lower case and without what ends sentences.
func wordsOf(text string) []string {
	text = strings.TrimRight(strings.ToLower(text), " ,.!?;")
	text = strings.NewReplacer(",", " , ", "@", " at ", "–", "-").Replace(text)
	var words []string
	for _, w := range strings.Fields(text) {
		w = strings.TrimRight(w, ".!?;")
		if w == "," {
			w = "and"
		}
		repeated := w == "and" && len(words) > 0 && words[len(words)-1] == "and" // "monday, and friday"
		if m := spanForm.FindStringSubmatch(w); m != nil {                       // "2h" is "2 h"
			words = append(words, m[1], m[2])
		} else if w != "" && !repeated {
			words = append(words, w)
		}
	}
	return words
}

// A clock is a time of day.
type clock struct{ hour, minute int }

// String returns c as in "9:05".
func (c clock) String() string { return fmt.Sprintf("%d:%02d", c.hour, c.minute) }

// span is a number of units, such as 2 hours.
type span struct {
	n    int
	unit string // "second", "minute", "hour", "day", "week", "month" or "year"
}

func (s span) duration() time.Duration {
	one := map[string]time.Duration{
		"second": time.Second, "minute": time.Minute, "hour": time.Hour,
		"day": 24 * time.Hour, "week": 7 * 24 * time.Hour,
	}[s.unit]
	if one > 0 && s.n > int(math.MaxInt64/one) {
		return math.MaxInt64
	}
	return time.Duration(s.n) * one
}

// String returns s as in "2 hours".
func (s span) String() string {
	if s.n == 1 {
		return s.unit
	}
	return fmt.Sprintf("%d %ss", s.n, s.unit)
}

// A reader reads the parts of a text in any order: what was said of the days, of the
// time of day and of how often.
type reader struct {
	words []string // that are left

	repeats bool   // it was said that it is more than once
	every   *span  // how often
	delay   *span  // from now
	days    []int  // days of the week, Sunday is 0
	dates   []int  // days of the month
	month   int    // 1 to 12
	year    int    // of one date
	offset  int    // 1: today, 2: tomorrow and so on
	part    string // of the day, such as "morning"
	times   []clock
	from    *clock // between two hours
	to      *clock
	fault   error // of a time that is none
}

// next takes the next word; "" if there is none.
func (r *reader) next() string {
	if len(r.words) == 0 {
		return ""
	}
	w := r.words[0]
	r.words = r.words[1:]
	return w
}

// peek returns the next word without taking it.
func (r *reader) peek() string {
	if len(r.words) == 0 {
		return ""
	}
	return r.words[0]
}

// skip takes the next word if it is one of these.
func (r *reader) skip(any ...string) bool {
	if !slices.Contains(any, r.peek()) || len(r.words) == 0 {
		return false
	}
	r.next()
	return true
}

// joined takes "and" if what follows it is read by f, as in "monday and friday".
func joined[T any](r *reader, f func(*reader) (T, bool)) (v T, ok bool) {
	saved := r.words
	if !r.skip("and", "&") {
		return v, false
	}
	if v, ok = f(r); !ok {
		r.words = saved
	}
	return v, ok
}

func notUnderstood(word string) error {
	return fmt.Errorf("%q is not understood; %s", word, suggestion())
}

// ambiguous says that a text can mean two things, and what to write.
func ambiguous(what, instead string) error { return fmt.Errorf("%s; write %s", what, instead) }

// readPart reads the next part.
func (r *reader) readPart() error {
	switch w := r.peek(); w {
	case "every", "each":
		r.next()
		return r.readEvery()
	case "hourly", "daily", "weekly", "monthly", "yearly":
		r.next()
		units := map[string]string{
			"hourly": "hour", "daily": "day", "weekly": "week", "monthly": "month", "yearly": "year",
		}
		return r.setEvery(span{1, units[w]})
	case "at", "around":
		r.next()
		return r.readTimes()
	case "in", "after":
		r.next()
		return r.readDelay()
	case "from", "between":
		r.next()
		return r.readRange()
	case "on", "the", "this", "and", "of":
		return r.readDayAfter(r.next())
	case "next", "tonight", "later", "soon", "sometimes":
		return r.refuseVague(w)
	}
	return r.readDay()
}

// refuseVague refuses a word that says no time that people agree on.
func (r *reader) refuseVague(w string) error {
	switch w {
	case "next":
		return ambiguous(`"next" can mean two days`, `the day alone, such as "friday at 9", or the date`)
	case "tonight":
		return ambiguous(`"tonight" does not say when`, `"today at 20:00"`)
	}
	return ambiguous(fmt.Sprintf("%q does not say when", w), `a time, such as "tomorrow at 15:00"`)
}

// readDayAfter reads what follows a word that only leads to it.
func (r *reader) readDayAfter(lead string) error {
	_, isNumber := number(r.peek())
	last := r.peek() == "last" || r.peek() == "the" && len(r.words) > 1 && r.words[1] == "last"
	switch {
	case last:
		return ambiguous("the last day of a month is not a time that jobs have", `"on the 28th of each month at 8"`)
	case r.peek() == "":
		return notUnderstood(lead)
	case lead == "and" && !isNumber:
		return r.readPart()
	case lead == "of":
		return r.readMonthOf()
	}
	r.skip("the")
	return r.readDay()
}

// readMonthOf reads what a day of the month is of: "each month", or a month's name.
func (r *reader) readMonthOf() error {
	if r.skip("each", "every", "the", "a") {
		if !r.skip("month") {
			return notUnderstood(strings.TrimSpace("of " + r.peek()))
		}
		return r.setEvery(span{1, "month"})
	}
	return r.readDay()
}

// readEvery reads what follows "every".
func (r *reader) readEvery() error {
	r.repeats = true
	n := 1
	if r.skip("other") || r.peek() == "second" && len(r.words) > 1 && unit(r.words[1]) != "" {
		r.skip("second")
		n = 2
	} else if k, ok := number(r.peek()); ok && len(r.words) > 1 && unit(r.words[1]) != "" {
		n = k
		r.next()
	} else if r.peek() == "half" {
		return r.readHalf(r.setEvery)
	}
	switch w := r.peek(); {
	case unit(w) != "":
		r.next()
		return r.setEvery(span{n, unit(w)})
	case n != 1:
		return ambiguous(fmt.Sprintf("every other %s is not a time that jobs have", w), `"every 2 weeks", or two days`)
	case w == "morning" || w == "evening" || w == "afternoon":
		return errors.Join(r.setEvery(span{1, "day"}), r.readDay())
	case namedClocks[w] != clock{} || w == "midnight":
		return errors.Join(r.setEvery(span{1, "day"}), r.readTimes())
	case w == "":
		return notUnderstood("every")
	}
	r.skip("the")
	return r.readDay()
}

// readHalf reads "half an hour" and "half a minute".
func (r *reader) readHalf(set func(span) error) error {
	r.next()
	r.skip("a", "an")
	switch unit(r.next()) {
	case "hour":
		return set(span{30, "minute"})
	case "minute":
		return set(span{30, "second"})
	case "day":
		return set(span{12, "hour"})
	}
	return notUnderstood("half")
}

func (r *reader) setEvery(s span) error {
	r.repeats = true
	if r.every != nil && *r.every != s {
		return fmt.Errorf("every %v and every %v are two jobs", *r.every, s)
	}
	r.every = &s
	return nil
}

// readDelay reads what follows "in": a span, or a part of the day.
func (r *reader) readDelay() error {
	if r.skip("the") { // "at 9 in the evening"
		if _, ok := dayParts[r.peek()]; !ok {
			return notUnderstood(strings.TrimSpace("in the " + r.peek()))
		}
		return r.readDay()
	}
	set := func(s span) error {
		if r.delay != nil {
			return errors.New("that says twice how long it takes")
		}
		r.delay = &s
		return nil
	}
	if r.peek() == "half" {
		return r.readHalf(set)
	}
	if _, isMonth := months[r.peek()]; isMonth {
		return r.readDay()
	}
	n, ok := number(r.peek())
	if !ok || len(r.words) < 2 {
		return notUnderstood(strings.TrimSpace("in " + r.peek()))
	}
	r.next()
	word := r.next()
	u := unit(word)
	switch {
	case u == "":
		return notUnderstood(word)
	case u == "month" || u == "year":
		return fmt.Errorf("in %v: write the date, such as %q", span{n, u}, "24 december at 18:00")
	}
	return set(span{n, u})
}

// readRange reads two hours: "9 to 17".
func (r *reader) readRange() error {
	from, ok := r.clock()
	if !ok || !r.skip("to", "until", "till", "and", "-") {
		return errors.New(`between which hours? Write, for example: every hour from 9 to 17`)
	}
	to, ok := r.clock()
	if !ok || from.minute != 0 || to.minute != 0 || from.hour >= to.hour || r.from != nil {
		return errors.New(`from an hour to a later one of the same day: every hour from 9 to 17`)
	}
	r.from = &from
	r.to = &to
	return nil
}
