// Package texts is the catalogue of what Parley tells people in chats, in one language.
//
// A [Catalogue] is one language: English is the one there is. Another is another
// value of that type, which cmd/gateway hands down instead. What models are told,
// the command line, logs and the pages of the web are not in it.
package texts

import (
	"fmt"
	"strings"
	"time"
)

// A Catalogue is all texts in one language. Of each area a package has its own struct.
type Catalogue struct {
	Agent     Agent
	Channels  Channels
	Tools     Tools
	Gateway   Gateway
	Memory    Memory
	Scheduler Scheduler
}

// A Format is a text with verbs as in package fmt. The comment of its field names
// what they stand for, in this order; a language that needs another order writes
// %[2]s before %[1]s.
type Format string

// With returns f with args in the places of its verbs. What has no verb leaves args out.
func (f Format) With(args ...any) string {
	if !strings.Contains(string(f), "%") {
		return string(f)
	}
	return fmt.Sprintf(string(f), args...)
}

// A Count is a text about a number of things: it returns the form that its
// language has for n. Each form takes the number as %[1]d, and what else it holds
// begins at %[2]; one that is for a single number may leave the number out.
type Count func(n int) Format

// oneOrMany is a [Count] of a language that has one form for one thing and
// another for any other number of them, such as English.
func oneOrMany(one, many Format) Count {
	return func(n int) Format {
		if n == 1 {
			return one
		}
		return many
	}
}

// Of returns the text about n things.
func (c Count) Of(n int, args ...any) string {
	return c(n).With(append([]any{n}, args...)...)
}

// A Span is a length of time as people say it, in the largest whole unit.
type Span struct {
	Days, Hours, Minutes, Seconds Count
	Moment                        string // less than a second
}

// Of returns d as people say it.
func (s Span) Of(d time.Duration) string {
	for _, u := range []struct {
		unit time.Duration
		text Count
	}{{24 * time.Hour, s.Days}, {time.Hour, s.Hours}, {time.Minute, s.Minutes}, {time.Second, s.Seconds}} {
		if n := int(d / u.unit); n > 0 {
			return u.text.Of(n)
		}
	}
	return s.Moment
}

// English returns the catalogue in English.
func English() *Catalogue {
	return &Catalogue{
		Agent:     englishAgent(),
		Channels:  englishChannels(),
		Tools:     englishTools(),
		Gateway:   englishGateway(),
		Memory:    englishMemory(),
		Scheduler: englishScheduler(),
	}
}

func englishSpan() Span {
	return Span{
		Days:    oneOrMany("a day", "%[1]d days"),
		Hours:   oneOrMany("an hour", "%[1]d hours"),
		Minutes: oneOrMany("a minute", "%[1]d minutes"),
		Seconds: oneOrMany("a second", "%[1]d seconds"),
		Moment:  "a moment",
	}
}
