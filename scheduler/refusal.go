package scheduler

import (
	"errors"
	"fmt"

	"parley/texts"
)

// A Refusal is an error about what was asked for, in words for models and
// programs (D-095). Say has it in words for people.
type Refusal struct {
	text string
	say  func(texts.Refusals) string // nil: only who makes or changes a job can bring it about
}

// refuse returns a Refusal that nobody brings about who only switches jobs on and off.
func refuse(format string, args ...any) *Refusal { return &Refusal{text: fmt.Sprintf(format, args...)} }

func (r *Refusal) Error() string { return r.text }

// Say returns why a job is not run or switched on, in the words of say; "" if err
// is not about that.
func Say(say texts.Refusals, err error) string {
	var r *Refusal
	if !errors.As(err, &r) || r.say == nil {
		return ""
	}
	return r.say(say)
}

// ErrOff is returned by Fire for a job that is switched off.
var ErrOff = &Refusal{"this job is switched off: enable it, or run it once with force", func(say texts.Refusals) string { return say.Off }}

var errRunning = &Refusal{"this job is running already", func(say texts.Refusals) string { return say.Running }}
