package llm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kindly tells the person who waits for an answer, in one sentence, why there
// is none. It shows the kind of err only, nothing of its text (P11, R-S26).
func Kindly(err error) string {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && kindly[e.Kind] != "":
		return strings.Replace(kindly[e.Kind], "{After}", inWords(e.After), 1)
	case errors.Is(err, context.Canceled):
		return "I was stopped before I could answer."
	case errors.Is(err, context.DeadlineExceeded):
		return "The answer took too long, so I gave up; please try again."
	}
	return "Something went wrong inside, so I have no answer; please try again."
}

// kindly is what people are told of a Kind.
var kindly = map[Kind]string{
	Auth:        "The model's provider does not accept my key; whoever runs me has to set a valid one.",
	Quota:       "The account at the model's provider is out of credit; whoever runs me has to top it up.",
	BadRequest:  "The model did not accept the request; whoever runs me finds the reason in the log.",
	TooLong:     "This conversation has become too long for the model; /new starts a fresh one.",
	RateLimited: "The model is rate limited right now; please try again in {After}.",
	Overloaded:  "The model is overloaded right now; please try again in {After}.",
	Cut:         "The model broke off in the middle of its answer; please try again.",
	TimedOut:    "The model took too long to answer; please try again.",
	Unreachable: "The model cannot be reached right now; please try again in a minute.",
}

func inWords(d time.Duration) string {
	switch minutes := int((d + time.Minute - 1) / time.Minute); {
	case minutes <= 1:
		return "a minute"
	case minutes < 60:
		return fmt.Sprintf("%d minutes", minutes)
	}
	return "an hour or more"
}
