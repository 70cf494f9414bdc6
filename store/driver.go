package store

import (
	"context"
	"log/slog"
)

// A Driver opens the Store of one type: it is "store" in config.json. The keys are its
// fields with a json tag, and the gateway reads and checks them by their tags (see
// package config).
type Driver interface {
	// Open returns the Store, which the caller closes.
	Open(ctx context.Context, host Host) (Store, error)
}

// A Host is what a Driver is told of the process that opens its Store.
type Host struct {
	Log *slog.Logger // nil: log nothing
	// Brief says that the process is a command that soon ends: it does not wait until
	// a gateway on another machine lets go of the Store.
	Brief bool
	// Waiting is called if Open has to wait for the gateway on another machine that holder describes, and again when
	// it waits for yet another one; may be nil.
	Waiting func(holder string)
	// Stopped is called at most once, and must not block, when the Store cannot be used
	// any more until it is opened again; may be nil.
	Stopped func(error)
}

// An Examiner is a Driver that can tell how its Store is without opening it.
type Examiner interface {
	// Examine returns what is well, in a few words, or an error that says what to do. It changes nothing.
	Examine(ctx context.Context) (text string, err error)
}
