// Package audit has the audit log: who signed in, changed something or used a
// tool. Its records form a chain, in which every later change is detected (R-S27).
package audit

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"parley/store"
)

const (
	maxWaiting = 8192    // events waiting to be written, a few megabytes
	maxRecords = 500_000 // some 150 MB (P28)
)

// KindRefused marks events that are summed up, instead of written one by one.
const KindRefused = "refused"

// A Log writes the audit log in the background, so that nobody waits for the disk.
// If too many events are waiting to be written, further ones are only counted. All
// methods may be called concurrently.
type Log struct {
	chain    *Chain
	redact   func(string) string
	log      *slog.Logger
	events   chan Event
	lost     atomic.Int64 // events dropped because too many were waiting
	refusals refusals
}

// New returns the audit log in s. redact removes secrets from events.
func New(s store.Store, redact func(string) string, log *slog.Logger) *Log {
	return &Log{
		chain:  NewChain(s.Log(store.LogAudit), s.Bucket(store.BucketAudit)),
		redact: redact,
		log:    log,
		events: make(chan Event, maxWaiting),
	}
}

// Chain returns the records that were written.
func (l *Log) Chain() *Chain { return l.chain }

// Add records that who did what. It does not block. Refusals are summed up per
// time window: somebody who is refused can try again endlessly, which would
// otherwise push out important records.
func (l *Log) Add(kind, who, what string) {
	what = l.redact(what)
	if kind == KindRefused {
		l.refusals.add(who, what)
		return
	}
	select {
	case l.events <- Event{Time: time.Now(), Kind: kind, Who: who, What: what}:
	default:
		l.lost.Add(1)
	}
}

// Limit removes records until there are no more than are ever kept.
func (l *Log) Limit(ctx context.Context, t store.Trimming) error {
	return l.chain.TrimTo(ctx, t, maxRecords)
}

// Run writes events until ctx ends. Call [Log.Flush] afterwards, when no more events are
// added.
func (l *Log) Run(ctx context.Context) {
	window := time.NewTicker(refusalWindow)
	defer window.Stop()
	for {
		select {
		case e := <-l.events:
			l.write(e)
			l.writeLost()
		case <-window.C:
			l.writeRefusals()
		case <-ctx.Done():
			return
		}
	}
}

// Flush writes all events that were not written yet.
func (l *Log) Flush() {
	for len(l.events) > 0 {
		l.write(<-l.events)
	}
	l.writeLost()
	l.writeRefusals()
}

// writeLost records how many events were dropped since the last time.
func (l *Log) writeLost() {
	n := l.lost.Swap(0)
	if n == 0 {
		return
	}
	l.log.Error("audit events lost: too many were waiting", "events", n)
	what := fmt.Sprintf("%d events were not written down: they came faster than the disk took them", n)
	l.write(Event{Time: time.Now(), Kind: "audit", What: what})
}

// writeRefusals writes one record for all refusals since the last time.
func (l *Log) writeRefusals() {
	if e, any := l.refusals.takeSum(); any {
		l.write(e)
	}
}

func (l *Log) write(e Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := l.chain.Append(ctx, e); err != nil {
		l.log.Error("audit record not written", "kind", e.Kind, "who", e.Who, "what", e.What, "err", err)
	}
}
