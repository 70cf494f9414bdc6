package tools

import (
	"context"
	"strings"
	"sync"

	"parley/chat"
)

// Words for the model on calls that were not executed.
const (
	wordsTwin    = "identical call in the same batch was not executed again; repeat it in a later step if you mean it"
	wordsEarlier = "\n\n(already looked up in this turn; this is the earlier result)"
	wordsEnough  = "repeated external lookup blocked. Use the results you already have to answer, or try a " +
		"meaningfully different source."
)

// Dedupe spares work that was done before, and what takes effect only where the
// model asked twice at once:
//   - A call with a Twin has its result if it is read-only and nothing may have
//     changed since; one that is not is not executed.
//   - A lookup with the Query of an earlier one of the turn has its result and a
//     note; after that there is none any more (E-012, D-086).
//   - Other calls of Cacheable tools are answered by cache, which is for all
//     turns and may be nil. Scheduled jobs look anew: they are there
//     to see what has changed.
func Dedupe(cache *Cache) Middleware {
	if cache == nil {
		cache = NewCache(0)
	}
	return around((&past{cache: cache}).run)
}

// A past is what was called in a turn.
type past struct {
	cache   *Cache
	results sync.Map // ID -> Result of read-only calls, since the last that was not
	lookups sync.Map // tool and Query -> *lookup
}

// A lookup is what came of the calls with one Query, of which one works at a time.
type lookup struct {
	busy   chan struct{}
	times  int // that it was answered
	call   string
	result Result // of call
}

func (p *past) run(ctx context.Context, t Tool, c Call) (Result, error) {
	if !t.ReadOnly && c.Twin != "" {
		return Result{Text: wordsTwin, Skipped: true, Twin: c.Twin}, nil
	}
	if !t.ReadOnly {
		defer p.results.Clear()
		return t.Run(ctx, c)
	}
	if first, ok := p.results.Load(c.Twin); ok && c.Twin != "" {
		r := first.(Result).again()
		r.Skipped, r.Twin = true, c.Twin
		return r, nil
	}
	r, err := p.look(ctx, t, c)
	if err == nil {
		p.results.Store(c.ID, r)
	}
	return r, err
}

// again returns r as the result of another call, which has not done what r's did.
func (r Result) again() Result {
	r.Took = 0
	r.Told = ""
	r.End = ""
	return r
}

// look answers a call that is read-only.
func (p *past) look(ctx context.Context, t Tool, c Call) (Result, error) {
	if t.Query == nil || t.Query(c.Input) == "" {
		return p.recall(ctx, t, c)
	}
	key := t.canonical() + ":" + strings.TrimPrefix(t.Query(c.Input), t.Name+"_") // E-006 puts the name first
	known, _ := p.lookups.LoadOrStore(key, &lookup{busy: make(chan struct{}, 1)})
	l := known.(*lookup)
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	if l.times > 1 {
		r := Failf(CodeDenied, wordsEnough)
		r.Twin = l.call
		return r, nil
	}
	if l.times == 1 {
		l.times++
		r := l.result.again()
		if r.Cached, r.Twin = true, l.call; !t.JSON { // whose envelope says it
			r.Text += wordsEarlier
		}
		return r, nil
	}
	r, err := p.recall(ctx, t, c)
	if err == nil && !r.Failed && r.Verdict == Fine { // E-011; what found nothing may be taken back (E-026)
		l.times = 1
		l.call = c.ID
		l.result = r
	}
	return r, err
}

// recall answers a call from the cache, or executes it.
func (p *past) recall(ctx context.Context, t Tool, c Call) (Result, error) {
	if !t.Cacheable || !p.cache.enabled() || c.Origin == chat.FromSchedule {
		return t.Run(ctx, c)
	}
	key := p.cache.keyOf(t, c)
	r, ok := p.cache.get(key)
	if ok {
		r = r.again()
		r.Cached = true
		return r, nil
	}
	r, err := t.Run(ctx, c)
	if err == nil && !r.Failed {
		p.cache.put(key, r)
	}
	return r, err
}
