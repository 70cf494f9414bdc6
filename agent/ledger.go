package agent

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"sync"
	"time"

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

	key string // in the ledger: "2026-11-21/person/owner"
}

// A ledger tells what each payer took of a day. It is in memory, and on disk a
// moment later: no turn waits for it, and a crash forgets no more than that.
type ledger struct {
	disk *store.WriteBehind

	mu    sync.Mutex
	pages map[string]*page // today's, by their keys
}

// daysKept is for how many days pages are kept.
const daysKept = 40

func newLedger(bucket store.Bucket, log *slog.Logger) ledger {
	return ledger{disk: store.NewWriteBehind(bucket, log, "ledger"), pages: map[string]*page{}}
}

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
			l.mu.Unlock()
			read, err := p.page(ctx, key)
			l.mu.Lock()
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
		read, _, err := p.pages.Get(context.WithoutCancel(ctx), key)
		pg = &read
		pg.key = key
		return ignore(err, store.ErrNotFound)
	})
	return pg, err
}

// changed has pg written. l.mu is held.
func (l *ledger) changed(pg *page) {
	body, _ := json.Marshal(pg) // it holds only what JSON can
	l.disk.Set(pg.key, body)
}

// keepLedger writes down what is spent until end is called.
func (p *Pool) keepLedger(ctx context.Context) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var keeper sync.WaitGroup
	keeper.Go(func() {
		p.ledger.disk.Run(ctx, func() {
			p.warnOwners(ctx)
			p.tidyLedger(context.WithoutCancel(ctx))
		})
	})
	return func() { cancel(); keeper.Wait() }
}

// tidyLedger lets go of the pages of earlier days, and deletes old ones from the
// disk.
func (p *Pool) tidyLedger(ctx context.Context) {
	l, today := &p.ledger, p.daysAgo(0)
	l.mu.Lock()
	maps.DeleteFunc(l.pages, func(key string, _ *page) bool { return key < today })
	l.mu.Unlock()
	for key, err := range p.pages.Keys(ctx, "") {
		if err != nil || key >= p.daysAgo(daysKept) {
			break
		}
		l.disk.Set(key, nil)
	}
}
