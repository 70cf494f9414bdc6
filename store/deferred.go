package store

import (
	"context"
	"time"
)

// DeferLimit is how long a deferred change may be missing on disk.
const DeferLimit = time.Second

// Deferred returns a ctx with which changes do not wait for the disk. All who use the
// Store see such a change when the call returns. It is on disk with the next change that
// is made without this ctx, before that one is acknowledged; if none is, it is after
// DeferLimit, or when Close has returned. It causes no write of its own as long as there
// are other changes to share one with.
//
// Changes reach the disk in the order in which they were made. So a crash undoes the
// last deferred changes and nothing else, as if the process had ended a moment before.
// What must not be done twice must therefore not depend on a deferred change until a
// later one has been acknowledged.
//
// A Store may make deferred changes as it makes others. It does so when more than a few
// megabytes of them are not on disk: so they are refused if that is full.
func Deferred(ctx context.Context) context.Context {
	return context.WithValue(ctx, deferredKey{}, true)
}

// IsDeferred reports whether ctx comes from Deferred. It is for drivers.
func IsDeferred(ctx context.Context) bool {
	deferred, _ := ctx.Value(deferredKey{}).(bool)
	return deferred
}

type deferredKey struct{}
