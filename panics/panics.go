// Package panics makes a panic an error of the work that it broke off, so that
// one message, job or call does not end the process (P8).
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// An Error is a panic that Try caught.
type Error struct {
	Value any // what panic was called with
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Try calls f and returns its error, or an *Error if it panics. An *Error that f
// panics with is returned as it is: the panic was caught in another goroutine.
func Try(f func() error) (err error) {
	defer func() {
		switch value := recover().(type) {
		case nil:
		case *Error:
			err = value
		default:
			err = &Error{value, debug.Stack()}
		}
	}()
	return f()
}

// Stack says, for the log, where the panic in err came from. If there is none in
// it, the attribute is empty, and handlers leave it out.
func Stack(err error) slog.Attr {
	if caught, ok := errors.AsType[*Error](err); ok {
		return slog.String("stack", string(caught.Stack))
	}
	return slog.Attr{}
}
