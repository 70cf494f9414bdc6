package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"parley/store"
	"parley/texts"
)

// The store is read through while it is used, from the start on and then once a
// day: a disk can lose what it holds at any time, and a clean end says nothing
// of that (P18).
const (
	verifyRate  = 8 << 20 // bytes per second
	verifyEvery = 24 * time.Hour
	mostPlaces  = 1000 // that are kept of one reading
)

// verified is a store that can be read through while it is used.
type verified interface {
	Verify(ctx context.Context, bytesPerSecond int, report func(where string)) error
}

// A damage is what was found damaged in the store. It is safe for concurrent use.
type damage struct {
	mu     sync.Mutex
	places []string
}

func (d *damage) add(where string) (fresh bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slices.Contains(d.places, where) || len(d.places) == mostPlaces {
		return false
	}
	d.places = append(d.places, where)
	return true
}

func (d *damage) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.places)
}

// warnings tells of the damage in a sentence, if there is any.
func (d *damage) warnings(say texts.Report) []string {
	places := d.all()
	if len(places) == 0 {
		return nil
	}
	return []string{say.Damaged.With(len(places), places[0])}
}

// replace has d be places, which one reading found.
func (d *damage) replace(places []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.places = places
}

// knownDamage is what the owners were told of, by earlier starts, too.
func (h *house) knownDamage(ctx context.Context) ([]string, error) {
	told, _, err := store.Load[[]string](ctx, h.store.Bucket("gateway"), "damage told")
	return told, err
}

// keepVerifying reads the store through until ctx ends, and tells the owners
// once of what is damaged.
func (h *house) keepVerifying(ctx context.Context) {
	s, ok := h.store.(verified)
	if known, err := h.knownDamage(ctx); ok && err == nil {
		h.damage.replace(known)
	}
	for ok {
		var found []string
		err := s.Verify(ctx, verifyRate, func(where string) {
			if len(found) < mostPlaces {
				found = append(found, where)
			}
			if h.damage.add(where) {
				h.Log.Error("damaged entry in the store", "where", where)
			}
		})
		if err == nil {
			h.damage.replace(found)
			err = h.tellDamage(ctx)
		}
		if err != nil && ctx.Err() == nil {
			h.Log.Warn("the store was not read through", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(verifyEvery):
		}
	}
}

// tellDamage tells the owners of places that they have not been told of.
func (h *house) tellDamage(ctx context.Context) error {
	places := h.damage.all()
	told, err := h.knownDamage(ctx)
	fresh := slices.DeleteFunc(slices.Clone(places), func(where string) bool { return slices.Contains(told, where) })
	if len(fresh) == 0 {
		if len(told) != len(places) {
			_, err = store.Save(ctx, h.store.Bucket("gateway"), "damage told", places, store.Any)
		}
		if errors.Is(err, store.ErrNotFound) {
			err = nil
		}
		return err
	}
	say := h.texts.Gateway.Owners
	text := say.Damaged.Of(len(fresh)) + "\n"
	for _, where := range fresh[:min(len(fresh), 3)] {
		text += "- " + oneLine(where) + "\n"
	}
	text += say.DamagedAdvice
	if copies := safeCopies(h.Config); len(copies) > 0 {
		text += say.DamagedRestore.With(h.Config.command("restore", "--force", copies[0]))
	}
	if err := h.hub.TellOwners(ctx, "damage:"+strings.Join(fresh, ","), text); err != nil {
		return err
	}
	_, err = store.Save(ctx, h.store.Bucket("gateway"), "damage told", places, store.Any)
	return err
}
