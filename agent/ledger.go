package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"parley/chat"
	"parley/store"
)

// A kind is something of which a day has only so much, in the words that people read.
type kind string

const (
	aTurn     kind = "answers"
	aRound    kind = "requests"
	aToken    kind = "tokens"
	someMoney kind = "money"
	aChild    kind = "helpers"
)

// amounts are how much of each kind.
type amounts map[kind]float64

// A page of the ledger is what one payer took of a day.
type page struct {
	Spent  amounts       `json:"spent"`
	Raised []string      `json:"raised,omitempty"` // keys of the messages by which owners raised the limit
	Warned map[kind]bool `json:"warned,omitempty"` // of what somebody was told that it is running out, or out
}

// most is how much of k the page may hold; 0 is no limit.
func (pg *page) most(l Limit, k kind) float64 { return l.of(k) * float64(1+len(pg.Raised)) }

// out says whether nothing is left of k.
func (pg *page) out(l Limit, k kind) bool {
	most := pg.most(l, k)
	return most > 0 && pg.Spent[k] >= most
}

// Whoever has spent so many percent of a limit is warned.
const warnAt = 80

// low says whether k is running out.
func (pg *page) low(l Limit, k kind) bool {
	most := pg.most(l, k)
	return most > 0 && pg.Spent[k] >= most*warnAt/100
}

// anyLow says whether anything is running out.
func (pg *page) anyLow(l Limit) bool {
	return slices.ContainsFunc(kinds, func(k kind) bool { return pg.low(l, k) })
}

// number returns x with as many of four decimals as it needs.
func number(x float64) string { return strconv.FormatFloat(math.Round(x*1e4)/1e4, 'f', -1, 64) }

// share says how much of k is spent.
func (pg *page) share(l Limit, k kind) string {
	return fmt.Sprintf("%s of %s %s", number(pg.Spent[k]), number(pg.most(l, k)), k)
}

// standing says how much of its limits b has spent, "" if it has none.
func (pg *page) standing(b payer) string {
	var all []string
	for _, k := range kinds {
		if b.limit.of(k) > 0 {
			all = append(all, pg.share(b.limit, k))
		}
	}
	if len(all) == 0 {
		return ""
	}
	return capital(b.whose) + ": " + strings.Join(all, ", ")
}

// mark says whether this is the first time today that k is marked.
func (pg *page) mark(k kind) bool {
	if pg.Warned == nil {
		pg.Warned = map[kind]bool{}
	}
	before := pg.Warned[k]
	pg.Warned[k] = true
	return !before
}

// A ledger tells what each payer took of today. It is in memory, and on disk a
// moment later: no turn waits for it, and a crash forgets no more than that.
type ledger struct {
	root    func(chat.SessionID) chat.SessionID // who pays for a helper's session: that of whom it helps
	bucket  store.Bucket                        // by day and payer, such as "2026-11-21/person/owner"
	zone    *time.Location
	log     *slog.Logger
	wake    chan struct{} // a page waits to be written
	writing sync.Mutex

	mu     sync.Mutex
	day    string
	pages  map[string]*page // of day, by payer
	dirty  map[string]*page // not on disk yet, by key in bucket
	tidied string           // the day on which old pages were deleted last
}

const (
	writeAfter = 2 * time.Second
	daysKept   = 40
)

func newLedger(c Config) ledger {
	return ledger{
		root:   func(id chat.SessionID) chat.SessionID { return id },
		bucket: c.Store.Bucket("ledger"), zone: c.Zone, log: c.Log, wake: make(chan struct{}, 1), dirty: map[string]*page{},
	}
}

// page returns that of payer, of today. One that cannot be read begins anew
// (P21). l.mu is held.
func (l *ledger) page(ctx context.Context, payer string) *page {
	if day := time.Now().In(l.zone).Format(time.DateOnly); day != l.day {
		l.day, l.pages = day, map[string]*page{}
	}
	pg, key := l.pages[payer], l.day+"/"+payer
	if pg == nil {
		pg = l.dirty[key] // the clock was set back
	}
	if pg == nil {
		read, _, err := store.Load[page](context.WithoutCancel(ctx), l.bucket, key)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			l.log.Error("what was spent today cannot be read and counts from zero", "payer", payer, "err", err)
		}
		pg = &read
	}
	l.pages[payer] = pg
	return pg
}

// add counts plus for payer. l.mu is held.
func (l *ledger) add(ctx context.Context, payer string, plus amounts) {
	pg := l.page(ctx, payer)
	if pg.Spent == nil {
		pg.Spent = amounts{}
	}
	for k, n := range plus {
		pg.Spent[k] += n
		l.changed(payer)
	}
}

// mark marks k on the page of payer, and says whether this is the first time today.
func (l *ledger) mark(ctx context.Context, payer string, k kind) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.changed(payer)
	return l.page(ctx, payer).mark(k)
}

// changed has the page of payer written. l.mu is held.
func (l *ledger) changed(payer string) {
	l.dirty[l.day+"/"+payer] = l.pages[payer]
	select {
	case l.wake <- struct{}{}:
	default: // it is to be written already
	}
}

// write puts on disk what is not there yet.
func (l *ledger) write(ctx context.Context) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	l.mu.Lock()
	dirty, tidy, day := l.dirty, l.tidied != l.day, l.day
	l.dirty, l.tidied = map[string]*page{}, l.day
	bodies := map[string][]byte{}
	for key, pg := range dirty {
		bodies[key], _ = json.Marshal(pg) // it holds only what JSON can
	}
	l.mu.Unlock()
	var g errgroup.Group
	g.SetLimit(64) // who share a sync of the disk
	for key, body := range bodies {
		g.Go(func() error {
			_, err := l.bucket.Put(ctx, key, body, store.Any)
			if err != nil {
				l.mu.Lock()
				l.dirty[key] = dirty[key]
				l.mu.Unlock()
			}
			return err
		})
	}
	err := g.Wait()
	if err == nil && tidy {
		err = l.tidy(ctx, day)
	}
	return err
}

// tidy deletes the pages that are too old on day.
func (l *ledger) tidy(ctx context.Context, day string) error {
	today, err := time.Parse(time.DateOnly, day)
	if err != nil { // nothing was spent yet
		return nil
	}
	first := today.AddDate(0, 0, -daysKept).Format(time.DateOnly)
	for key, err := range l.bucket.Keys(ctx, "") {
		if err == nil && key >= first {
			return nil
		}
		if err == nil {
			err = l.bucket.Delete(ctx, key)
		}
		if err != nil {
			return fmt.Errorf("delete old pages of the ledger: %w", err)
		}
	}
	return nil
}

// keepLedger writes down what is spent, until end is called, which writes the rest.
func (p *Pool) keepLedger(ctx context.Context) (end func()) {
	l, forever := &p.ledger, context.WithoutCancel(ctx)
	ctx, cancel := context.WithCancel(forever)
	var keeper sync.WaitGroup
	keeper.Go(func() {
		for {
			select {
			case <-ctx.Done():
				return
			case <-l.wake:
			}
			select {
			case <-ctx.Done():
				return
			case <-time.After(writeAfter):
			}
			_ = p.insist(ctx, "write the ledger", func(ctx context.Context) error { // ctx ended: end writes it
				return errors.Join(l.write(ctx), p.warnOwners(ctx))
			})
		}
	})
	return func() {
		cancel()
		keeper.Wait()
		if err := l.write(forever); err != nil {
			p.Log.Error("what was spent last is not written down", "err", err)
		}
	}
}
