package store

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Pending is the part of a queue that is in memory: which work is free and which is
// held. It is for drivers whose queues belong to one process. Work is known by its
// number; the lowest is the oldest.
type Pending struct {
	wake chan struct{} // holds one token when work may be free
	end  chan struct{}

	mu   sync.Mutex
	work map[uint64]bool // all that was not dropped
	free []uint64        // in order; may still name work that was dropped
}

// NewPending returns a Pending without work.
func NewPending() *Pending {
	return &Pending{wake: make(chan struct{}, 1), end: make(chan struct{}), work: map[uint64]bool{}}
}

// Add adds work that is free to be pulled.
func (p *Pending) Add(ns ...uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, n := range ns {
		p.work[n] = true
		p.release(n)
	}
}

// Pull waits for the oldest free work and holds it. It returns the error of
// ctx, or ErrClosed after Close.
func (p *Pending) Pull(ctx context.Context) (uint64, error) {
	for {
		if err := ctx.Err(); err != nil {
			p.signal() // another call may need the token that this one has taken
			return 0, err
		}
		select {
		case <-p.end:
			return 0, ErrClosed
		default:
		}
		if n, ok := p.take(); ok {
			return n, nil
		}
		select {
		case <-p.wake:
		case <-ctx.Done():
		case <-p.end:
		}
	}
}

// Return returns work that the caller holds after d, unless it is dropped by then.
func (p *Pending) Return(n uint64, d time.Duration) {
	if d > 0 {
		time.AfterFunc(d, func() { p.Return(n, 0) })
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.work[n] {
		p.release(n)
	}
}

// Later returns the function Later of the [Item] that holds n now. It works once: by
// the second time another Item may hold n.
func (p *Pending) Later(n uint64) func(time.Duration) {
	var once sync.Once
	return func(d time.Duration) { once.Do(func() { p.Return(n, d) }) }
}

// Drop removes work, whoever holds it.
func (p *Pending) Drop(n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.work, n)
}

// Len counts the work that was not dropped.
func (p *Pending) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.work)
}

// Close ends every Pull. It must be called once.
func (p *Pending) Close() { close(p.end) }

func (p *Pending) release(n uint64) {
	at, _ := slices.BinarySearch(p.free, n)
	p.free = slices.Insert(p.free, at, n)
	p.signal()
}

func (p *Pending) take() (uint64, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.free) > 0 {
		n := p.free[0]
		p.free = p.free[1:]
		if !p.work[n] {
			continue
		}
		if len(p.free) > 0 {
			p.signal()
		}
		return n, true
	}
	return 0, false
}

func (p *Pending) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
