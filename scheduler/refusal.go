package scheduler

import (
	"errors"
	"fmt"

	"parley/texts"
)

// A Refusal is an error in the request itself, worded for models and programs
// (D-095). Say returns the wording for people.
type Refusal struct {
	text string
	say  func(texts.Refusals) string // nil: only adding or changing a job can cause it
}

// refuse returns a Refusal that switching a job on or off, or running it, cannot cause.
func refuse(format string, args ...any) *Refusal {
	return &Refusal{text: fmt.Sprintf(format, args...)}
}

func (r *Refusal) Error() string { return r.text }

// Say returns, in the wording of say, why a job cannot be run or switched on. It
// returns "" if err has another cause.
func Say(say texts.Refusals, err error) string {
	var r *Refusal
	if !errors.As(err, &r) || r.say == nil {
		return ""
	}
	return r.say(say)
}

// ErrOff is returned by Fire for a job that is switched off.
var ErrOff = &Refusal{
	text: "this job is switched off: enable it, or run it once with force",
	say:  func(say texts.Refusals) string { return say.Off },
}

var errRunning = &Refusal{
	text: "this job is running already",
	say:  func(say texts.Refusals) string { return say.Running },
}
