package retention

import "sync"

// Faults are the parts whose archive could not be written when it was tried last. What is
// old of them stays in the store. The zero value has none. All methods may be called
// concurrently.
type Faults struct {
	mu      sync.Mutex
	byCause map[cause]error
}

// A cause is what removes entries of a part: its age, or its limit. Either may work while the
// other does not.
type cause struct {
	part  string
	limit bool
}

// First returns the first of the parts, in alphabetical order, and why its archive could not
// be written; err is nil if there is none.
func (f *Faults) First() (part string, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for c, fault := range f.byCause {
		if err == nil || c.part < part || c.part == part && !c.limit {
			part, err = c.part, fault
		}
	}
	return part, err
}

// set notes how it went with the archive: err is nil if it could be written, or nothing is to be
// written.
func (f *Faults) set(c cause, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err == nil {
		delete(f.byCause, c)
		return
	}
	if f.byCause == nil {
		f.byCause = map[cause]error{}
	}
	f.byCause[c] = err
}
