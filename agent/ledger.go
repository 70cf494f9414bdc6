package agent

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/chat"
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
	aNotice // that nothing is left, of which jobs get one
)

func (k kind) String() string {
	return [...]string{"answers", "requests", "tokens", "money", "helpers"}[k]
}

// amounts are how much of each kind.
type amounts [kinds]float64

// A page of the ledger is what one payer took of a day.
type page struct {
	Spent  amounts           `json:"spent"`
	Raised []string          `json:"raised,omitempty"` // keys of the messages by which owners raised the limit
	Warned [aNotice + 1]bool `json:"warned"`           // of what it was said that it is running out
}

// A ledger tells what each payer took of today. It is in memory, and on disk a
// moment later: no turn waits for it, and a crash forgets no more than that.
type ledger struct {
	bucket  store.Bucket // by day and payer: "2026-11-21/person/owner"
	zone    *time.Location
	log     *slog.Logger
	root    func(chat.SessionID) chat.SessionID // who pays for a helper: the session that it works for
	wake    chan struct{}                       // a page is to be written
	writing sync.Mutex

	mu    sync.Mutex
	day   string
	pages map[string]*page // of day, by payer
	dirty map[string]*page // not on disk yet, by key in bucket
}

const (
	writeAfter = 2 * time.Second
	daysKept   = 40
)

func newLedger(c Config) ledger {
	return ledger{
		bucket: c.Store.Bucket("ledger"), zone: c.Zone, log: c.Log, wake: make(chan struct{}, 1),
		root: func(id chat.SessionID) chat.SessionID { return id }, dirty: map[string]*page{},
	}
}

// page returns that of payer, of today. One that is damaged begins anew (P21).
// l.mu is held.
func (l *ledger) page(ctx context.Context, payer string) *page {
	if day := time.Now().In(l.zone).Format(time.DateOnly); day != l.day {
		l.day, l.pages = day, map[string]*page{}
	}
	key := l.day + "/" + payer
	if l.pages[payer] == nil {
		l.pages[payer] = l.dirty[key] // of a day to which the clock was set back
	}
	if l.pages[payer] == nil {
		pg, _, err := store.Load[page](context.WithoutCancel(ctx), l.bucket, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			l.log.Error("what was spent today cannot be read and counts from zero", "payer", payer, "err", err)
		}
		l.pages[payer] = &pg
	}
	return l.pages[payer]
}

// first says whether payer gets its notice for the first time today.
func (l *ledger) first(ctx context.Context, payer string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed(payer)
	pg := l.page(ctx, payer)
	before := pg.Warned[aNotice]
	pg.Warned[aNotice] = true
	return !before
}

// changed has today's page of payer written. l.mu is held.
func (l *ledger) changed(payer string) {
	l.dirty[l.day+"/"+payer] = l.pages[payer]
	select {
	case l.wake <- struct{}{}:
	default: // something is to be written already
	}
}

// write puts on disk what is not there yet, and deletes what is old.
func (l *ledger) write(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	dirty, bodies := l.dirty, map[string][]byte{}
	l.dirty = map[string]*page{}
	for key, pg := range dirty {
		bodies[key], _ = json.Marshal(pg) // it holds only what JSON can
	}
	l.mu.Unlock()
	var all errgroup.Group // they share a sync of the disk
	for key, body := range bodies {
		all.Go(func() error {
			_, err := l.bucket.Put(ctx, key, body, store.Any)
			if err != nil {
				l.mu.Lock()
				defer l.mu.Unlock()
				l.dirty[key] = dirty[key]
			}
			return err
		})
	}
	first := time.Now().In(l.zone).AddDate(0, 0, -daysKept).Format(time.DateOnly)
	for key, err := range l.bucket.Keys(ctx, "") {
		if err != nil || key >= first {
			break
		}
		all.Go(func() error { return l.bucket.Delete(ctx, key) })
	}
	return all.Wait()
}

// keepLedger writes down what is spent until end is called.
func (p *Pool) keepLedger(ctx context.Context) (end func()) {
	forever := context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancel(forever)
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
			if err := p.insist(ctx, "write the ledger", func(context.Context) error { return p.ledger.write(forever) }); err != nil {
				p.Log.Error("what was spent last is not written down", "err", err)
			}
			p.warnOwners(ctx)
		}
	})
	return func() { cancel(); keeper.Wait() }
}
