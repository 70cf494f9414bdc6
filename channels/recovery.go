package channels

import "sync"

// A recovery wakes those who wait until their network can be reached again.
type recovery struct {
	mu        sync.Mutex
	recovered chan struct{} // nil while nobody waits
}

// next returns a channel that is closed at the next recovery.
func (r *recovery) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recovered == nil {
		r.recovered = make(chan struct{})
	}
	return r.recovered
}

// announce wakes all who wait.
func (r *recovery) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.recovered != nil {
		close(r.recovered)
		r.recovered = nil
	}
}
