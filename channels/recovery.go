package channels

import "sync"

// A recovery tells those who wait that their network can be reached again.
type recovery struct {
	mu    sync.Mutex
	again chan struct{} // nil while nobody waits
}

// next returns what is closed at the next recovery.
func (r *recovery) next() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again == nil {
		r.again = make(chan struct{})
	}
	return r.again
}

// announce ends the wait of all who wait.
func (r *recovery) announce() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.again != nil {
		close(r.again)
		r.again = nil
	}
}
