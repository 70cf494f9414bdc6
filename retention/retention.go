// Package retention removes what is older than its owner wants to keep (P28), from
// all parts of the store that would grow for ever, and writes it to text files first
// if the owner wishes.
package retention

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"parley/store"
)

const (
	startDelay = 10 * time.Minute // after a start, which has other things to do
	nightHour  = 3                // at which the parts are trimmed, before memory is consolidated
	stepPause  = 5 * time.Millisecond
	// limitInterval is how often it is looked for what is more than a limit.
	limitInterval = 10 * time.Minute
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
	// Limit removes what is more than there may be, however young it is; nil: there may be
	// any number. It may be called while Trim is.
	Limit func(context.Context, store.Trimming) error
}

// A Keeper trims parts.
type Keeper struct {
	Parts   []Part
	Zone    *time.Location // in which it is night
	Archive Archive
	Log     *slog.Logger
	// Removed is told of each step: how many entries of a part were removed. It may be called
	// concurrently.
	Removed func(part string, entries int)
	Faults  *Faults // of the archive
	// After is called after each pass over all parts; may be nil.
	After func(context.Context, time.Time)
	// Now tells the time; nil is time.Now.
	Now func() time.Time
}

// Run trims all parts a while after the start, and then every night, until ctx ends. What is
// more than a limit is removed every ten minutes.
// If the clock was set meanwhile it waits for another hour: a clock that is wrong must not
// make everything old. A machine that slept looks the same, and may sleep every night.
func (k Keeper) Run(ctx context.Context) {
	if k.Now == nil {
		k.Now = time.Now
	}
	var limits sync.WaitGroup
	defer limits.Wait()
	limits.Go(func() { k.keepLimits(ctx) })
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

// keepLimits removes what is more than a limit, now and then, until ctx ends.
func (k Keeper) keepLimits(ctx context.Context) {
	next := time.NewTicker(limitInterval)
	defer next.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-next.C:
		}
		for _, p := range k.Parts {
			if p.Limit == nil {
				continue
			}
			removed, archived, err := k.pass(ctx, p.Name, store.Trimming{}, p.Limit)
			if err != nil && ctx.Err() == nil {
				k.Log.Warn("entries beyond the limit not removed", "part", p.Name, "err", err)
			}
			if removed > 0 {
				k.Log.Info("entries beyond the limit removed", "part", p.Name, "entries", removed)
			}
			if archived.err != nil || err == nil {
				k.Faults.set(cause{p.Name, true}, archived.err)
			}
		}
	}
}

// TrimAll trims all parts once. A failure of one stops no other.
func (k Keeper) TrimAll(ctx context.Context, now time.Time) {
	for _, p := range k.Parts {
		period := p.Period()
		if ctx.Err() != nil {
			return
		}
		if period <= 0 {
			k.Faults.set(cause{p.Name, false}, nil)
			continue
		}
		removed, archived, err := k.pass(ctx, p.Name, store.Trimming{Before: now.Add(-period)}, p.Trim)
		if err != nil && ctx.Err() == nil {
			k.Log.Warn("old entries not removed", "part", p.Name, "err", err)
		}
		if removed > 0 {
			k.Log.Info("old entries removed", "part", p.Name, "entries", removed, "older", inDays(period))
		}
		if archived.err != nil || err == nil {
			k.Faults.set(cause{p.Name, false}, archived.err)
		}
	}
}

// inDays returns a period as the config spells it.
func inDays(period time.Duration) string {
	const day = 24 * time.Hour
	if period%day != 0 {
		return period.String()
	}
	return fmt.Sprintf("%dd", period/day)
}

// An archiving is what became of what a pass wanted to archive.
type archiving struct{ err error } // the first one

// note notes how it went to archive something.
func (a *archiving) note(err error) error {
	a.err = cmp.Or(a.err, err)
	return err
}

// A source is a file that is to be archived. It keeps the error of its Reader: a file that
// cannot be read is no fault of the archive.
type source struct {
	io.Reader
	err error
}

// Read implements [io.Reader].
func (s *source) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		s.err = err
	}
	return n, err
}

// pass has trim remove what t says from a part, and returns how many entries were removed.
func (k Keeper) pass(
	ctx context.Context, part string, t store.Trimming, trim func(context.Context, store.Trimming) error,
) (removed int, archived archiving, err error) {
	t.Step = func(n int) error {
		if n > 0 {
			removed += n
			k.Removed(part, n)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(stepPause):
			return nil
		}
	}
	if k.Archive.Wanted() {
		t.Archive = func(name string, lines ...[]byte) error {
			return archived.note(k.Archive.Add(part, name, lines...))
		}
		t.ArchiveFile = func(name string, from io.Reader) error {
			s := &source{Reader: from}
			err := k.Archive.AddFile(part, name, s)
			if s.err != nil {
				return err
			}
			return archived.note(err)
		}
	}
	err = trim(ctx, t)
	return removed, archived, err
}
