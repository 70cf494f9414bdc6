package backup

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"parley/store"
)

// The store is read through while it is used, from the start on and then once a
// day: a disk can lose what it holds at any time, and a clean shutdown proves
// nothing about that (P18).
const (
	verifyRate     = 8 << 20 // bytes per second
	verifyInterval = 24 * time.Hour
	maxPlaces      = 1000 // per pass
	reportedKey    = "damage told"
)

// A verifiable store can be read completely while it is in use.
type verifiable interface {
	Verify(ctx context.Context, bytesPerSecond int, report func(where string)) error
}

// A Verifier looks for damage in a store. Its methods may be called concurrently.
type Verifier struct {
	store  store.Store
	log    *slog.Logger
	mu     sync.Mutex
	places []string
}

// NewVerifier returns a Verifier of s.
func NewVerifier(s store.Store, log *slog.Logger) *Verifier { return &Verifier{store: s, log: log} }

// Damaged returns the places that are known to be damaged.
func (v *Verifier) Damaged() []string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return slices.Clone(v.places)
}

// add records a damaged place, and reports whether it is new.
func (v *Verifier) add(where string) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	if slices.Contains(v.places, where) || len(v.places) == maxPlaces {
		return false
	}
	v.places = append(v.places, where)
	return true
}

// replace sets the damaged places to those that one complete pass found.
func (v *Verifier) replace(places []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.places = places
}

// verifyOnce reads the store through and reports what it found.
func (v *Verifier) verifyOnce(
	ctx context.Context,
	s verifiable,
	tell func(ctx context.Context, fresh []string) error,
) error {
	if err := v.readThrough(ctx, s); err != nil {
		return err
	}
	return v.report(ctx, tell)
}

// Run reads the store again and again until ctx ends. It calls tell with the
// damaged places that were not reported before, by this or an earlier process.
func (v *Verifier) Run(ctx context.Context, tell func(ctx context.Context, fresh []string) error) {
	s, ok := v.store.(verifiable)
	if !ok {
		return
	}
	known, _ := v.reported(ctx) // with an error, places are reported again
	v.replace(known)
	for {
		if err := v.verifyOnce(ctx, s, tell); err != nil && ctx.Err() == nil {
			v.log.Warn("verification of the store failed", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(verifyInterval):
		}
	}
}

func (v *Verifier) readThrough(ctx context.Context, s verifiable) error {
	var found []string
	err := s.Verify(ctx, verifyRate, func(where string) {
		if len(found) < maxPlaces {
			found = append(found, where)
		}
		if v.add(where) {
			v.log.Error("damaged entry in the store", "where", where)
		}
	})
	if err != nil {
		return err
	}
	v.replace(found)
	return nil
}

func (v *Verifier) reports() store.Table[[]string] {
	return store.NewTable(v.store.Bucket(store.BucketGateway), store.Forget[[]string](v.log, "reported damage"))
}

// reported returns the places that were reported before.
func (v *Verifier) reported(ctx context.Context) ([]string, error) {
	places, _, err := v.reports().Get(ctx, reportedKey)
	return places, err
}

// report calls tell with the places that were not reported yet.
func (v *Verifier) report(ctx context.Context, tell func(ctx context.Context, fresh []string) error) error {
	places := v.Damaged()
	reported, err := v.reported(ctx)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return err
	}
	fresh := slices.DeleteFunc(slices.Clone(places), func(where string) bool {
		return slices.Contains(reported, where)
	})
	if len(fresh) > 0 {
		if err := tell(ctx, fresh); err != nil {
			return err
		}
	} else if len(reported) == len(places) {
		return nil
	}
	return v.reports().Set(ctx, reportedKey, places)
}
