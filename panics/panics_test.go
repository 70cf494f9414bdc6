package panics_test

import (
	"errors"
	"strings"
	"testing"

	"parley/panics"
)

// P8: a panic is an error with the stack of where it was, also when it is passed
// on to another goroutine; any other error stays as it is.
func TestTry(t *testing.T) {
	cause := errors.New("no such file")
	if err := panics.Try(func() error { return cause }); !errors.Is(err, cause) || panics.Stack(err).Key != "" {
		t.Errorf("an error became %v with %v", err, panics.Stack(err))
	}
	inner := panics.Try(func() error { panic("oh dear") })
	outer := panics.Try(func() error { panic(inner) })
	if !errors.Is(outer, inner) || inner.Error() != "panic: oh dear" {
		t.Errorf("the panic became %v, passed on %v", inner, outer)
	}
	if stack := panics.Stack(outer).Value.String(); !strings.Contains(stack, "TestTry") {
		t.Errorf("the stack is %s", stack)
	}
}
