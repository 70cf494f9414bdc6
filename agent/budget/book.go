// Package budget keeps the one book of what was spent: answers, requests,
// tokens, money, subagents and bytes, by day and account. Limits, /usage, the
// owner's usage page and the history of scheduled jobs all read it, so that
// they agree. The book is in memory, and on disk a moment later: no turn waits
// for it, and a crash forgets no more than that.
package budget

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/llm"
	"parley/store"
	"parley/texts"
)

const (
	daysKept     = 40 // for which accounts are kept; what persons have used is kept for good
	runDaysKept  = 2  // for which runs of jobs are kept after they last spent anything
	idleDaysKept = 1  // for which conversations and runs stay in memory

	// maxIdle is how many accounts stay in memory that are on the disk as they are. They are read again when
	// somebody spends. (P15)
	maxIdle = 1000
)

// Config is what a [Book] is made of.
type Config struct {
	Bucket store.Bucket
	Texts  *texts.Limits
	Log    *slog.Logger
	Zone   *time.Location // in which days begin

	// Limits returns those that count by now.
	Limits func() Limits
	// Price returns what u costs of model by now; known is false if nobody knows.
	Price func(model string, u llm.Usage) (cost float64, known bool)
	// Warn tells owners what runs out for everybody, once for each id. nil: nobody is told.
	Warn func(ctx context.Context, id, text string) error
	// Retry does what must be done until it is done or ctx ends.
	Retry func(ctx context.Context, what string, do func(context.Context) error) error
}

// A Book tells what each account has used.
type Book struct {
	cfg  Config
	disk *store.WriteBehind
	read store.Table[usage] // what disk has written

	day atomic.Pointer[day] // today, when it was asked for last

	mu      sync.Mutex
	used    map[string]*usage // of accounts of today and of those that last, by their keys
	cleaned string            // the day on which old accounts were deleted last
	leaving uint64            // how often accounts have left the memory
}

// A day is one in Config.Zone.
type day struct {
	name         string // "2026-11-21"
	begins, ends time.Time
}

// A usage is what one account has used.
type usage struct {
	Spent  Amounts     `json:"spent"`
	Raised []string    `json:"raised,omitempty"` // keys of the messages by which owners raised the limit
	Warned [kinds]bool `json:"warned"`           // of what it was said that it is running out
	Told   bool        `json:"told,omitempty"`   // that nothing is left

	// Models is what was used of each model, of persons and conversations.
	Models map[string]ModelUsage `json:"models,omitempty"`
	// Day is that of the last change, of accounts that last longer than a day.
	Day string `json:"day,omitempty"`

	key     string // in the book: "2026-11-21/person/owner"
	opened  string // the day on which it was last looked at
	ended   bool   // the conversation before it is over
	changed bool   // since it was last handed to be written
}

// New returns the Book in c.Bucket.
func New(c Config) *Book {
	return &Book{
		cfg: c, disk: store.NewWriteBehind(c.Bucket, c.Log, "ledger"), used: map[string]*usage{},
		read: store.NewTable(c.Bucket, store.Forget[usage](c.Log, "what was spent")), // it counts from zero
	}
}

// zoneNow names the time zone of days as clocks do by now: "CET".
func (b *Book) zoneNow() string { return time.Now().In(b.cfg.Zone).Format("MST") }

// today names the day.
func (b *Book) today() string {
	now := time.Now()
	if d := b.day.Load(); d != nil && !now.Before(d.begins) && now.Before(d.ends) {
		return d.name
	}
	now = now.In(b.cfg.Zone)
	begins := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, b.cfg.Zone)
	b.day.Store(&day{name: now.Format(time.DateOnly), begins: begins, ends: begins.AddDate(0, 0, 1)})
	return now.Format(time.DateOnly)
}

// daysAgo names the day so many days before today.
func (b *Book) daysAgo(n int) string {
	return time.Now().In(b.cfg.Zone).AddDate(0, 0, -n).Format(time.DateOnly)
}

// open locks the book and looks up what accounts have used. The book is not
// locked while the disk is read: an account that was looked up before may have left
// the memory meanwhile, so that all are looked up again.
func (b *Book) open(ctx context.Context, accounts []account) (unlock func()) {
	today := b.today()
	b.mu.Lock()
	for i := 0; i < len(accounts); i++ {
		used := b.used[accounts[i].key]
		if used == nil {
			read, err := b.readAccount(ctx, accounts[i].key)
			if err != nil {
				accounts[i].used = read
				continue
			}
			i = -1
			continue
		}
		used.opened = today
		accounts[i].used = used
	}
	return b.mu.Unlock
}

// readAccount returns what the account of that key has used, which is not in memory
// yet. b.mu is held, but not while the disk is read. An account that could not be
// read is not kept: it would be written over what is on the disk.
func (b *Book) readAccount(ctx context.Context, key string) (*usage, error) {
	for {
		before := b.leaving
		b.mu.Unlock()
		read, err := b.load(ctx, key)
		b.mu.Lock()
		switch used := b.used[key]; {
		case used != nil:
			return used, err
		case err != nil:
			return read, err
		case b.leaving == before: // or it was here meanwhile, and what was read may be older
			b.used[key] = read
			return read, nil
		}
	}
}

// load reads what the account of that key has used, and tries until it can or
// ctx ends. A damaged value counts from zero (P21).
func (b *Book) load(ctx context.Context, key string) (*usage, error) {
	used := &usage{key: key}
	err := b.cfg.Retry(ctx, "read the ledger", func(context.Context) error {
		read, _, err := b.read.Get(context.WithoutCancel(ctx), key)
		if errors.Is(err, store.ErrNotFound) {
			return nil
		}
		read.key = key
		used = &read
		return err
	})
	return used, err
}

// write has used written. b.mu is held.
func (b *Book) write(used *usage) {
	if lasting(used.key) {
		used.Day = b.today()
	}
	used.changed = true
	b.disk.Wake()
}

// encodeChanges hands over what is to be written. An account that changes with every
// request is encoded once for all of them.
func (b *Book) encodeChanges() {
	b.mu.Lock()
	defer b.mu.Unlock()
	for key, used := range b.used {
		if used.changed {
			used.changed = false
			body, _ := json.Marshal(used) // it holds only what JSON can
			b.disk.Set(key, body)
		}
	}
}

// Keep writes down what is spent until stop is called.
func (b *Book) Keep(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var writer sync.WaitGroup
	writer.Go(func() {
		b.disk.Run(ctx, func() {
			b.warnOwners(ctx)
			b.encodeChanges()
			b.clean(context.WithoutCancel(ctx))
		})
	})
	return func() {
		cancel()
		writer.Wait()
	}
}

// clean removes from memory what is not needed any more, and once a day old
// accounts from the disk.
func (b *Book) clean(ctx context.Context) {
	today := b.today()
	b.mu.Lock()
	maps.DeleteFunc(b.used, func(key string, used *usage) bool {
		if lasting(key) {
			return used.opened < b.daysAgo(idleDaysKept)
		}
		return key < today
	})
	if len(b.used) > maxIdle {
		maps.DeleteFunc(b.used, func(key string, used *usage) bool { return !used.changed && !b.disk.IsPending(key) })
		b.leaving++
	}
	if len(b.used) > maxIdle {
		b.disk.Wake() // what is not written yet can go next time
	}
	done := b.cleaned == today
	b.cleaned = today
	b.mu.Unlock()
	if done {
		return
	}
	for key, err := range b.cfg.Bucket.Keys(ctx, "") {
		if err != nil || key >= b.daysAgo(daysKept) {
			break
		}
		if _, _, ofPerson := personOf(key); !ofPerson {
			b.disk.Set(key, nil)
		}
	}
	for run, err := range b.read.Each(ctx, runPrefix) {
		if err != nil {
			break
		}
		if run.Value.Day < b.daysAgo(runDaysKept) {
			b.disk.Set(run.Key, nil)
		}
	}
}

// The keys of accounts that last longer than a day.
const (
	conversationPrefix = "conversation/"
	runPrefix          = "run/"
	importedPrefix     = "imported/" // what was used before the book counted by model
)

// lasting reports whether the account of that key lasts longer than a day.
func lasting(key string) bool {
	return strings.HasPrefix(key, conversationPrefix) || strings.HasPrefix(key, runPrefix)
}
