// Package panics turns a panic into an error of the work that it interrupted, so
// that one message, job or call cannot end the process (P8).
package panics

import (
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
)

// An Error is a panic that Try caught.
type Error struct {
	Value any // the argument of panic
	Stack []byte
}

func (e *Error) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Try calls f and returns its error, or an *Error if f panics. If f panics with an
// *Error, that is returned as it is: the original panic was caught in another
// goroutine.
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

// Stack returns the stack of the panic in err, for the log. If there is none, the
// attribute is empty, and handlers omit it.
func Stack(err error) slog.Attr {
	if caught, ok := errors.AsType[*Error](err); ok {
		return slog.String("stack", string(caught.Stack))
	}
	return slog.Attr{}
}
