package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/store"
)

// A kind is something of which a day has only so much.
type kind int

const (
	aTurn kind = iota
	aRound
	aToken
	someMoney
	aChild
	aByte // that a person sent or had written
	kinds
)

func (k kind) String() string {
	return [...]string{"answers", "requests", "tokens", "money", "helpers", "megabytes"}[k]
}

// amounts are how much of each kind.
type amounts [kinds]float64

// A page of the ledger is what one payer took of a day.
type page struct {
	Spent  amounts     `json:"spent"`
	Raised []string    `json:"raised,omitempty"` // keys of the messages by which owners raised the limit
	Warned [kinds]bool `json:"warned"`           // of what it was said that it is running out
	Told   bool        `json:"told,omitempty"`   // that nothing is left

	dirty bool // it is to be written
}

// A ledger tells what each payer took of a day. It is in memory, and on disk a
// moment later: no turn waits for it, and a crash forgets no more than that.
type ledger struct {
	wake chan struct{} // a page is to be written

	mu      sync.Mutex
	pages   map[string]*page // those in use, as in the store: "2026-11-21/person/owner"
	reading int              // how many are being read
}

const (
	writeAfter = 2 * time.Second
	daysKept   = 40
)

// zoneNow names the time zone of days as clocks do by now: "CET".
func (p *Pool) zoneNow() string { return time.Now().In(p.Zone).Format("MST") }

// daysAgo names a day: 0 is today.
func (p *Pool) daysAgo(n int) string {
	return time.Now().In(p.Zone).AddDate(0, 0, -n).Format(time.DateOnly)
}

// opened opens the ledger at today's pages of by, for nobody else until done is
// called. Nobody waits meanwhile for one to be read.
func (p *Pool) opened(ctx context.Context, by []payer) (done func()) {
	l, today := &p.ledger, p.daysAgo(0)
	l.mu.Lock()
	for i, b := range by {
		key := today + "/" + b.key
		pg := l.pages[key]
		if pg == nil {
			l.reading++
			l.mu.Unlock()
			read, err := p.page(ctx, key)
			l.mu.Lock()
			l.reading--
			if pg = cmp.Or(l.pages[key], read); err == nil { // else nobody writes it
				l.pages[key] = pg
			}
		}
		by[i].page = pg
	}
	return l.mu.Unlock
}

// page reads a page, and tries until it can or ctx ends. One that is damaged
// begins anew (P21).
func (p *Pool) page(ctx context.Context, key string) (pg *page, err error) {
	err = p.insist(ctx, "read the ledger", func(context.Context) error {
		read, _, err := store.Load[page](context.WithoutCancel(ctx), p.Store.Bucket("ledger"), key)
		if errors.Is(err, store.ErrDamaged) {
			p.Log.Error("what was spent today is damaged and counts from zero", "whose", key)
			err = nil
		}
		pg = &read
		return ignore(err, store.ErrNotFound)
	})
	return pg, err
}

// changed has pg written. l.mu is held.
func (l *ledger) changed(pg *page) {
	pg.dirty = true
	select {
	case l.wake <- struct{}{}:
	default: // it will see this one, too
	}
}

// keepLedger writes down what is spent until end is called.
func (p *Pool) keepLedger(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for last := false; !last; {
			select {
			case <-ctx.Done():
			case <-p.ledger.wake:
			}
			select {
			case <-ctx.Done():
			case <-time.After(writeAfter):
			}
			last = ctx.Err() != nil
			bodies := map[string][]byte{}
			if err := p.insist(ctx, "write the ledger", func(ctx context.Context) error { return p.writeLedger(context.WithoutCancel(ctx), bodies) }); err != nil {
				p.Log.Error("what was spent last is not written down", "err", err)
			}
			p.warnOwners(ctx)
		}
	})
	return func() { cancel(); keeper.Wait() }
}

// writeLedger puts on disk bodies and what else is not there yet, lets go of it
// and deletes what is old.
func (p *Pool) writeLedger(ctx context.Context, bodies map[string][]byte) error {
	l := &p.ledger
	l.mu.Lock()
	for key, pg := range l.pages {
		if pg.dirty {
			bodies[key], _ = json.Marshal(pg) // it holds only what JSON can
			pg.dirty = false
		}
	}
	l.mu.Unlock()
	var all errgroup.Group // they share a sync of the disk
	bucket := p.Store.Bucket("ledger")
	for key, body := range bodies {
		all.Go(func() error {
			_, err := bucket.Put(ctx, key, body, store.Any)
			return err
		})
	}
	for key, err := range bucket.Keys(ctx, "") {
		if err != nil || key >= p.daysAgo(daysKept) {
			break
		}
		all.Go(func() error { return bucket.Delete(ctx, key) })
	}
	err := all.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.reading == 0 { // else somebody may have read what it was before
		maps.DeleteFunc(l.pages, func(_ string, pg *page) bool { return !pg.dirty })
	}
	return err
}
