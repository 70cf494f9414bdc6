package serve

import (
	"sync"
	"time"
)

// repeatTime is how long a client that may have lost its connection has to make its call again.
const repeatTime = time.Minute

// A repeats knows which calls are made again before they have ended.
type repeats struct {
	mu   sync.Mutex
	made map[string]chan struct{} // by call: closed when it is made again
}

// begin begins a call, and returns what is closed when the same is made again before end is called.
func (r *repeats) begin(call string) (again <-chan struct{}, end func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if earlier := r.made[call]; earlier != nil {
		close(earlier)
	}
	own := make(chan struct{})
	r.made[call] = own
	return own, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.made[call] == own {
			delete(r.made, call)
		}
	}
}
