package tools

import (
	"context"
	"strings"
	"sync"

	"parley/chat"
)

// Texts for the model about calls that were not executed.
const (
	wordsTwin    = "identical call in the same batch was not executed again; repeat it in a later step if you mean it"
	wordsEarlier = "\n\n(already looked up in this turn; this is the earlier result)"
	wordsEnough  = "repeated external lookup blocked. Use the results you already have to answer, or try a " +
		"meaningfully different source."
)

// Dedupe avoids repeating work, and effects that the model asked for twice at once:
//   - A read-only call with a Twin gets the twin's result, if nothing may have changed
//     in between. Any other call with a Twin is not executed.
//   - A lookup with the same Query as an earlier one in the turn gets that result, with
//     a note; further ones are refused (E-012, D-086).
//   - Other calls of Cacheable tools are answered from cache, which all turns share and
//     which may be nil. Scheduled jobs never use it, because they look for
//     changes.
func Dedupe(cache *Cache) Middleware {
	if cache == nil {
		cache = NewCache(0)
	}
	return around((&past{cache: cache}).run)
}

// A past remembers the calls of a turn.
type past struct {
	cache   *Cache
	results sync.Map // ID -> Result of read-only calls since the last call that may have changed something
	lookups sync.Map // tool and Query -> *lookup
}

// A lookup is the result of the calls with one Query, of which one runs at a time.
type lookup struct {
	busy   chan struct{}
	times  int    // number of answers given
	call   string // ID of the first call
	result Result // result of the first call
}

// run answers a call from what is known, or executes it.
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
		r.Skipped = true
		r.Twin = c.Twin
		return r, nil
	}
	r, err := p.look(ctx, t, c)
	if err != nil {
		return r, err
	}
	p.results.Store(c.ID, r)
	return r, nil
}

// again returns r as the result of another call, without what only the first call
// did.
func (r Result) again() Result {
	r.Took = 0
	r.Told = ""
	r.End = ""
	return r
}

// look answers a read-only call.
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
		r.Cached = true
		r.Twin = l.call
		if !t.JSON { // the JSON says it itself
			r.Text += wordsEarlier
		}
		return r, nil
	}
	r, err := p.recall(ctx, t, c)
	if err != nil || r.Failed || r.Verdict != Fine { // E-011; a round with a poor result may be rolled back (E-026)
		return r, err
	}
	l.times = 1
	l.call = c.ID
	l.result = r
	return r, nil
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
	if err != nil || r.Failed {
		return r, err
	}
	p.cache.put(key, r)
	return r, nil
}
