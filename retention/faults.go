package retention

import (
	"maps"
	"slices"
	"sync"
)

// Faults are the parts whose archive could not be written when it was tried last. What is
// old of them stays in the store. The zero value has none. All methods may be called
// concurrently.
type Faults struct {
	mu     sync.Mutex
	byPart map[string]error
}

// First returns the first of the parts, in alphabetical order, and why its archive could not
// be written; err is nil if there is none.
func (f *Faults) First() (part string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.byPart) == 0 {
		return "", nil
	}
	part = slices.Min(slices.Collect(maps.Keys(f.byPart)))
	return part, f.byPart[part]
}

// set notes how it went with the archive of a part: err is nil if it could be written, or
// nothing is to be written.
func (f *Faults) set(part string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.byPart, part)
		return
	}
	if f.byPart == nil {
		f.byPart = map[string]error{}
	}
	f.byPart[part] = err
}
