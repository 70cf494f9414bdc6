package llm

import (
	"errors"
	"fmt"
	"time"
)

// ErrLimit is the error of a request that was not made because whoever it would be made for has used all
// that they may use.
var ErrLimit = errors.New("a limit of use is reached")

// An Error says why a model did not answer a request.
type Error struct {
	Kind   Kind
	Status int           // of HTTP, 0 if there was none
	After  time.Duration // how long the provider asks to wait before another attempt, 0 if it does not say
	Err    error         // the cause, without secrets
}

// Error implements error.
func (e *Error) Error() string {
	if e.Status != 0 {
		return fmt.Sprintf("model %s (%d): %v", e.Kind, e.Status, e.Err)
	}
	return fmt.Sprintf("model %s: %v", e.Kind, e.Err)
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// Temporary reports whether the same request may be answered later (P11).
func (e *Error) Temporary() bool {
	switch e.Kind {
	case Auth, Quota, BadRequest, TooLong:
		return false
	}
	return true
}

// A Kind classifies an Error, in words for the operator.
type Kind string

// The kinds.
const (
	Auth        Kind = "refused the key"      // 401, 403: only a new key helps
	Quota       Kind = "is out of credit"     // 402, or 429 that says the account is empty
	BadRequest  Kind = "refused the request"  // 400, 404, 422
	TooLong     Kind = "was given too much"   // 400, 413: the context window is exceeded
	RateLimited Kind = "is rate limited"      // 429
	Overloaded  Kind = "is overloaded"        // 408, 409, 5xx
	Cut         Kind = "broke off its answer" // the stream ended before the answer did
	TimedOut    Kind = "took too long"        // between two pieces, or in all
	Unreachable Kind = "cannot be reached"    // no connection
)
