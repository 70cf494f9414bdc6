package store

import "context"

// A Driver opens the Store of one type: it is "store" in config.json. The keys are its
// fields with a json tag, and the gateway reads and checks them by their tags (see
// package config).
type Driver interface {
	// Open returns the Store, which the caller closes.
	Open(ctx context.Context) (Store, error)
}
