// Package retention removes what is older than its owner wants to keep (P28), from
// all parts of the store that would grow for ever, and writes it to text files first
// if the owner wishes.
package retention

import (
	"context"
	"io"
	"log/slog"
	"time"

	"parley/store"
)

const (
	startDelay = 10 * time.Minute // after a start, which has other things to do
	nightHour  = 3                // at which the parts are trimmed, before memory is consolidated
	stepPause  = 5 * time.Millisecond
	// maxClockStep is how far the wall clock may have been set while the Keeper waited.
	maxClockStep = time.Hour
	// afterClockStep is how long somebody has to set it right again, and afterLongStep if
	// no machine would have slept for so long.
	afterClockStep = time.Hour
	longClockStep  = 30 * 24 * time.Hour
	afterLongStep  = 24 * time.Hour
)

// A Part is something that grows.
type Part struct {
	Name string // as the log, the metrics and the folders of the archive call it
	// Period returns how long it stays; 0 is for ever.
	Period func() time.Duration
	// Trim removes what is older.
	Trim func(context.Context, store.Trimming) error
}

// A Keeper trims parts.
type Keeper struct {
	Parts   []Part
	Zone    *time.Location // in which it is night
	Archive Archive
	Log     *slog.Logger
	// Removed is told of each step: how many entries of a part were removed.
	Removed func(part string, entries int)
	// After is called after each pass over all parts; may be nil.
	After func(context.Context, time.Time)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Run trims all parts a while after the start, and then every night, until ctx ends.
// If the clock was set meanwhile it waits for another hour: a clock that is wrong must not
// make everything old. A machine that slept looks the same, and may sleep every night.
func (k Keeper) Run(ctx context.Context) {
	if k.Now == nil {
		k.Now = time.Now
	}
	wait := startDelay
	for {
		began, clock := time.Now(), k.Now().Round(0)
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		now := k.Now()
		if step := now.Round(0).Sub(clock) - time.Since(began); step.Abs() > maxClockStep {
			wait = afterClockStep
			if step.Abs() > longClockStep {
				wait = afterLongStep
			}
			k.Log.Info("old entries are removed later, because the clock was set", "by", step, "wait", wait)
			continue
		}
		k.TrimAll(ctx, now)
		if k.After != nil {
			k.After(ctx, now)
		}
		wait = k.untilNight(k.Now())
	}
}

// untilNight returns how long it is from now to the next time for trimming.
func (k Keeper) untilNight(now time.Time) time.Duration {
	now = now.In(k.Zone)
	next := time.Date(now.Year(), now.Month(), now.Day(), nightHour, 0, 0, 0, k.Zone)
	if !next.After(now) {
		next = time.Date(now.Year(), now.Month(), now.Day()+1, nightHour, 0, 0, 0, k.Zone)
	}
	return next.Sub(now)
}

// TrimAll trims all parts once. A failure of one stops no other.
func (k Keeper) TrimAll(ctx context.Context, now time.Time) {
	for _, p := range k.Parts {
		period := p.Period()
		if period <= 0 || ctx.Err() != nil {
			continue
		}
		removed, err := k.trim(ctx, p, now.Add(-period))
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("old entries not removed", "part", p.Name, "err", err)
		}
		if removed > 0 {
			k.Log.Info("old entries removed", "part", p.Name, "entries", removed, "older", period)
		}
	}
}

// trim trims p and returns how many entries were removed.
func (k Keeper) trim(ctx context.Context, p Part, before time.Time) (removed int, err error) {
	t := store.Trimming{Before: before}
	t.Step = func(n int) error {
		if n > 0 {
			removed += n
			k.Removed(p.Name, n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(stepPause):
			return nil
		}
	}
	if k.Archive.Wanted() {
		t.Archive = func(name string, lines ...[]byte) error { return k.Archive.Add(p.Name, name, lines...) }
		t.ArchiveFile = func(name string, from io.Reader) error { return k.Archive.AddFile(p.Name, name, from) }
	}
	err = p.Trim(ctx, t)
	return removed, err
}
