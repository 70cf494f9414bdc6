package agent

import (
	"context"
	"encoding/json"
	"errors"
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
	kinds
)

func (k kind) String() string {
	return [...]string{"answers", "requests", "tokens", "money", "helpers"}[k]
}

// amounts are how much of each kind.
type amounts [kinds]float64

// A page of the ledger is what one payer took of a day.
type page struct {
	Spent  amounts     `json:"spent"`
	Raised []string    `json:"raised,omitempty"` // keys of the messages by which owners raised the limit
	Warned [kinds]bool `json:"warned"`           // of what it was said that it is running out
	told   bool        // that nothing is left
}

// A ledger tells what each payer took of today. It is in memory, and on disk a
// moment later: no turn waits for it, and a crash forgets no more than that.
type ledger struct {
	wake chan struct{} // a page is to be written

	mu    sync.Mutex
	day   string           // such as "2026-11-21"
	pages map[string]*page // of day, by payer
	dirty map[string]*page // to be written, by key in the store: day/payer
}

const (
	writeAfter = 2 * time.Second
	daysKept   = 40
)

// daysAgo names a day: 0 is today.
func (p *Pool) daysAgo(n int) string {
	return time.Now().In(p.Zone).AddDate(0, 0, -n).Format(time.DateOnly)
}

// page returns that of payer, of today. One that is damaged begins anew (P21).
// The ledger's mu is held.
func (p *Pool) page(ctx context.Context, payer string) *page {
	l := &p.ledger
	if day := p.daysAgo(0); day != l.day {
		l.day, l.pages = day, map[string]*page{}
	}
	if l.pages[payer] == nil {
		pg, _, err := store.Load[page](context.WithoutCancel(ctx), p.Store.Bucket("ledger"), l.day+"/"+payer)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			p.Log.Error("what was spent today cannot be read and counts from zero", "payer", payer, "err", err)
		}
		l.pages[payer] = &pg
	}
	return l.pages[payer]
}

// changed has today's page of payer written. l.mu is held.
func (l *ledger) changed(payer string) {
	l.dirty[l.day+"/"+payer] = l.pages[payer]
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
		for ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-p.ledger.wake:
			}
			select {
			case <-ctx.Done():
			case <-time.After(writeAfter):
			}
			bodies := map[string][]byte{}
			if err := p.insist(ctx, "write the ledger", func(ctx context.Context) error { return p.writeLedger(context.WithoutCancel(ctx), bodies) }); err != nil {
				p.Log.Error("what was spent last is not written down", "err", err)
			}
			p.warnOwners(ctx)
		}
	})
	return func() { cancel(); keeper.Wait() }
}

// writeLedger puts on disk bodies and what else is not there yet, and deletes what is old.
func (p *Pool) writeLedger(ctx context.Context, bodies map[string][]byte) error {
	p.ledger.mu.Lock()
	for key, pg := range p.ledger.dirty {
		bodies[key], _ = json.Marshal(pg) // it holds only what JSON can
	}
	clear(p.ledger.dirty)
	p.ledger.mu.Unlock()
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
	return all.Wait()
}
