package tools

import (
	"cmp"
	"context"
	"sync"
)

const (
	wordsTwin    = "identical call in the same batch was not executed again; repeat it in a later step if you mean it"
	wordsEarlier = "(already looked up in this turn; this is the earlier result)"
	wordsEnough  = "repeated external lookup blocked. Use the results you already have to answer, or try a meaningfully different source."
)

// Dedupe spares work that was done before; what takes effect is spared only
// the model's slip of asking twice at once:
//   - A call with a Twin is not executed: it has the twin's result if it
//     is read-only, unless something may have changed since, and else a word on it.
//   - A lookup with the Query of an earlier one of the turn has its result and a
//     note; after that there is none any more (E-012, D-086).
//   - Other calls that are read-only are answered by cache.
//
// It belongs to one turn, which it remembers; cache is for all.
func Dedupe(cache *Cache) Middleware {
	d := &past{cache: cache, results: map[string]Result{}, lookups: map[string]*lookup{}}
	return around(d.run)
}

// A past is what was called in a turn.
type past struct {
	cache *Cache

	mu      sync.Mutex
	results map[string]Result // of read-only calls, by their IDs, since the last one that was not
	lookups map[string]*lookup
}

// A lookup is what came of the calls with one Query, of which one works at a time.
type lookup struct {
	busy   chan struct{}
	times  int // that it was answered
	call   string
	result Result // of call
}

func (p *past) run(ctx context.Context, t Tool, c Call) (Result, error) {
	if !t.ReadOnly {
		if c.Twin != "" {
			return Result{Text: wordsTwin, Skipped: true, Twin: c.Twin}, nil
		}
		defer p.changed()
		return t.Run(ctx, c)
	}
	p.mu.Lock()
	r, known := p.results[c.Twin]
	p.mu.Unlock()
	if known && c.Twin != "" {
		r = r.again()
		r.Skipped, r.Twin = true, c.Twin
		return r, nil
	}
	r, err := p.look(ctx, t, c)
	if err == nil {
		p.mu.Lock()
		p.results[c.ID] = r
		p.mu.Unlock()
	}
	return r, err
}

// changed forgets what a call that took effect may have made untrue.
func (p *past) changed() {
	p.mu.Lock()
	clear(p.results)
	p.mu.Unlock()
	p.cache.changed()
}

// again returns r as the result of another call, which has not done what r's did.
func (r Result) again() Result {
	r.Took, r.Told, r.End = 0, "", ""
	return r
}

// look answers a call that is read-only.
func (p *past) look(ctx context.Context, t Tool, c Call) (Result, error) {
	query := ""
	if t.Query != nil {
		query = t.Query(c.Input)
	}
	if query == "" {
		return p.recall(ctx, t, c)
	}
	l := p.lookup(cmp.Or(t.AliasOf, t.Name) + ":" + query)
	select {
	case l.busy <- struct{}{}:
		defer func() { <-l.busy }()
	case <-ctx.Done():
		return Result{}, context.Cause(ctx)
	}
	switch l.times {
	case 0:
		r, err := p.recall(ctx, t, c)
		if err == nil && !r.Failed { // E-011
			l.times, l.call, l.result = 1, c.ID, r
		}
		return r, err
	case 1:
		l.times++
		r := l.result.again()
		r.Cached, r.Twin = true, l.call
		if !t.JSON { // whose envelope says it
			r.Text += "\n\n" + wordsEarlier
		}
		return r, nil
	}
	r := Failf(CodeDenied, wordsEnough)
	r.Twin = l.call
	return r, nil
}

func (p *past) lookup(key string) *lookup {
	p.mu.Lock()
	defer p.mu.Unlock()
	l := p.lookups[key]
	if l == nil {
		l = &lookup{busy: make(chan struct{}, 1)}
		p.lookups[key] = l
	}
	return l
}

// recall answers a call from the cache, or executes it.
func (p *past) recall(ctx context.Context, t Tool, c Call) (Result, error) {
	if p.cache.lasts(t) <= 0 {
		return t.Run(ctx, c)
	}
	key := keyOf(t, c)
	r, era, ok := p.cache.get(key)
	if ok {
		r = r.again()
		r.Cached = true
		return r, nil
	}
	r, err := t.Run(ctx, c)
	if err == nil && !r.Failed {
		p.cache.put(t, key, r, era)
	}
	return r, err
}
