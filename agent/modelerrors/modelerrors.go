// Package modelerrors tells people, in one sentence, why a model did not answer.
package modelerrors

import (
	"context"
	"errors"
	"slices"
	"time"

	"parley/llm"
	"parley/texts"
)

// Kindly tells the person who waits for an answer, in one sentence, why there
// is none. It shows the kind of err only, nothing of its text (P11, R-S26).
func Kindly(say texts.Model, err error) string {
	var e *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e) && kindly(say, e) != "":
		return kindly(say, e)
	case errors.Is(err, context.Canceled):
		return say.Stopped
	case errors.Is(err, context.DeadlineExceeded):
		return say.TookTooLong
	}
	return say.Unknown
}

// kindly is what people are told of a Kind, "" if there is nothing to tell.
func kindly(say texts.Model, e *llm.Error) string {
	switch e.Kind {
	case llm.RateLimited:
		return say.RateLimited.With(soon(say.Soon, e.After))
	case llm.Overloaded:
		return say.Overloaded.With(soon(say.Soon, e.After))
	}
	return map[llm.Kind]string{
		llm.Auth: say.Auth, llm.Quota: say.Quota, llm.BadRequest: say.BadRequest, llm.TooLong: say.TooLong,
		llm.Cut: say.Cut, llm.TimedOut: say.TimedOut, llm.Unreachable: say.Unreachable,
	}[e.Kind]
}

// IsOutage reports whether an error of that kind is of a model that may be back later.
func IsOutage(kind llm.Kind) bool {
	return slices.Contains([]llm.Kind{llm.Overloaded, llm.RateLimited, llm.Unreachable, llm.TimedOut, llm.Cut}, kind)
}

// OutageText tells that the answer comes once a model is back that is out of reach.
func OutageText(texts *texts.Agent, kind llm.Kind) string {
	say := texts.Model.Away
	why := map[llm.Kind]string{
		llm.RateLimited: say.RateLimited, llm.Overloaded: say.Overloaded, llm.Cut: say.Cut,
		llm.TimedOut: say.TimedOut, llm.Unreachable: say.Unreachable,
	}[kind]
	return texts.Turn.Later.With(why)
}

func soon(say texts.Soon, d time.Duration) string {
	if minutes := max(1, int((d+time.Minute-1)/time.Minute)); minutes < 60 {
		return say.Minutes.Of(minutes)
	}
	return say.Hour
}
