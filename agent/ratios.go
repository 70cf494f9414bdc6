package agent

import (
	"cmp"
	"sync"
)

// ratios tell how many tokens of each model one estimated token really is.
type ratios struct {
	mu sync.Mutex
	by map[string]float64
}

func (r *ratios) of(model string) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return cmp.Or(r.by[model], 1)
}

// set makes ratio that of model.
func (r *ratios) set(model string, ratio float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]float64{}
	}
	r.by[model] = ratio
}

// learn takes in that model counted real tokens where estimated were thought.
// It moves a fifth of the way at a time: one odd answer does not mislead it.
func (r *ratios) learn(model string, estimated, real int) {
	if estimated < 100 || real == 0 {
		return
	}
	now := min(max(float64(real)/float64(estimated), 0.25), 4)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.by == nil {
		r.by = map[string]float64{}
	}
	x := cmp.Or(r.by[model], 1)
	r.by[model] = x + (now-x)/5
}
