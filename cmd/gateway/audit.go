package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"parley/store"
	"parley/tools"
)

const (
	maxUnaudited = 8192    // events that wait to be written down, a few megabytes
	maxAudited   = 500_000 // entries that are kept, some 150 MB (P28)
)

// An auditor keeps the audit log (R-S27). Nobody waits for it: what a tool does
// is in the log of its session, too. Of events that come faster than the disk
// takes them for so long that too many wait, only the number is noted.
type auditor struct {
	chain    *store.Chain
	events   chan store.Event
	lost     atomic.Int64 // events that found no room
	refusals refusals
}

func (h *house) openAudit() {
	h.auditor.events = make(chan store.Event, maxUnaudited)
	h.auditor.chain = store.NewChain(h.store.Log("audit"), h.store.Bucket("audit"))
}

// audit notes that who did what. What was refused is noted in sums: whoever is
// refused can try again without end, and would push what matters out of the audit log.
func (h *house) audit(kind, who, what string) {
	if kind == "refused" {
		h.auditor.refusals.add(who, h.redact(what))
		return
	}
	select {
	case h.auditor.events <- store.Event{Time: time.Now(), Kind: kind, Who: who, What: h.redact(what)}:
	default:
		h.auditor.lost.Add(1)
	}
}

// auditTools notes every call.
func (h *house) auditTools(t tools.Tool) tools.Tool {
	run := t.Run
	t.Run = func(ctx context.Context, c tools.Call) (tools.Result, error) {
		r, err := run(ctx, c)
		outcome := "done"
		if err != nil || r.Failed {
			outcome = "failed"
		}
		h.audit("tool", string(c.From.ID)+" at "+string(c.Session), fmt.Sprintf("%s %s, call %s", c.Name, outcome, c.Key()))
		return r, err
	}
	return t
}

// keepAudit writes down what is noted, until ctx ends.
func (h *house) keepAudit(ctx context.Context) {
	window := time.NewTicker(refusalWindow)
	defer window.Stop()
	for {
		select {
		case e := <-h.auditor.events:
			h.writeDown(e)
			h.writeLost()
		case <-window.C:
			h.writeRefusals()
			if err := h.auditor.chain.Trim(ctx, maxAudited); err != nil {
				h.Log.Warn("old entries of the audit log not removed", "err", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

// endAudit writes down what was noted and not written yet.
func (h *house) endAudit() {
	for len(h.auditor.events) > 0 {
		h.writeDown(<-h.auditor.events)
	}
	h.writeLost()
	h.writeRefusals()
}

// writeLost notes how many events were lost, once there is room again.
func (h *house) writeLost() {
	if n := h.auditor.lost.Swap(0); n > 0 {
		h.Log.Error("events lost for the audit log: too many were waiting", "events", n)
		h.writeDown(store.Event{Time: time.Now(), Kind: "audit", What: fmt.Sprintf("%d events were not written down: they came faster than the disk took them", n)})
	}
}

// writeRefusals writes down what was refused since the last time, in one entry.
func (h *house) writeRefusals() {
	if e, some := h.auditor.refusals.sum(); some {
		h.writeDown(e)
	}
}

const (
	refusalWindow = 10 * time.Minute // one entry of the audit log sums up the refusals of so long
	maxRefusals   = 100              // told apart in one window
	toldRefusals  = 5                // listed in one entry, those that came most often
)

// A refusal is what was refused to whom.
type refusal struct{ what, who string }

// refusals counts what was refused since the last entry of the audit log. The
// zero value is ready to use.
type refusals struct {
	mu    sync.Mutex
	began time.Time
	total int
	count map[refusal]int // the first maxRefusals different ones
}

func (r *refusals) add(who, what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		r.began, r.count = time.Now(), map[refusal]int{}
	}
	r.total++
	one := refusal{what, who}
	if _, known := r.count[one]; known || len(r.count) < maxRefusals {
		r.count[one]++
	}
}

// sum returns one event for all that was added since the last sum, if there is any.
func (r *refusals) sum() (e store.Event, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.total == 0 {
		return store.Event{}, false
	}
	most := slices.SortedFunc(maps.Keys(r.count), func(a, b refusal) int {
		return cmp.Or(r.count[b]-r.count[a], cmp.Compare(a.what, b.what), cmp.Compare(a.who, b.who))
	})
	e = store.Event{Time: time.Now(), Kind: "refused", Who: most[0].who}
	rest := r.total
	var texts []string
	for _, one := range most[:min(len(most), toldRefusals)] {
		rest -= r.count[one]
		texts = append(texts, fmt.Sprintf("%s from %s: %d", one.what, one.who, r.count[one]))
	}
	if rest > 0 {
		texts = append(texts, fmt.Sprintf("others: %d", rest))
	}
	e.What = fmt.Sprintf("%s (since %s)", strings.Join(texts, "; "), r.began.UTC().Format(time.DateTime+" MST"))
	r.total, r.count = 0, nil
	return e, true
}

func (h *house) writeDown(e store.Event) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if err := h.auditor.chain.Append(ctx, e); err != nil {
		h.Log.Error("not in the audit log", "kind", e.Kind, "who", e.Who, "what", e.What, "err", err)
	}
}
