package store

import "context"

// A Driver makes the Store of one type: it is what "store" in config.json says. The
// keys are its fields with a json tag, and the gateway reads and checks them by their
// tags (see package config).
type Driver interface {
	Open(ctx context.Context) (Store, error)
}
