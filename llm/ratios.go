package llm

import (
	"cmp"
	"sync"
)

// TokenRatios tell, for each model, how many tokens one estimated token really is.
type TokenRatios struct {
	mu      sync.Mutex
	byModel map[string]float64
}

// Of returns the ratio of model, 1 if nothing is known of it.
func (r *TokenRatios) Of(model string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.byModel[model], 1)
}

// Set makes ratio that of model.
func (r *TokenRatios) Set(model string, ratio float64) {
	r.change(model, func(float64) float64 { return ratio })
}

// Learn notes that model counted real tokens where estimated were expected. The
// ratio moves a fifth of the way at a time, so that one odd answer does not
// mislead it.
func (r *TokenRatios) Learn(model string, estimated, real int) {
	if estimated < 100 || real == 0 {
		return
	}
	counted := min(max(float64(real)/float64(estimated), 0.25), 4)
	r.change(model, func(known float64) float64 { return known + (counted-known)/5 })
}

func (r *TokenRatios) change(model string, to func(known float64) float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byModel == nil {
		r.byModel = map[string]float64{}
	}
	r.byModel[model] = to(cmp.Or(r.byModel[model], 1))
}
